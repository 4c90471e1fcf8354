//! The CLI's one HTTP client: it speaks to the hub as any other client would.

use std::net::IpAddr;
use std::time::Duration;

use footbridge_mcp::HttpTarget;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Url};

use super::error::CliError;
use crate::config::connection::Connection;
use crate::config::secret::Secret;

mod invoke;
mod request;
mod sse;
#[cfg(test)]
mod tests;

pub use invoke::{Invocation, Update};
pub use request::{Precondition, Request, TextReply};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take, for requests that run no tool.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// How soon a connection on which nothing comes any more is looked after: calls may be silent for minutes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A path below `/v1`, as segments that need no escaping by the caller.
#[derive(Debug, Clone, Copy)]
pub enum At<'a> {
    /// Of the hub: `/v1/tokens`.
    Hub(&'a [&'a str]),
    /// Of the connection's tenant and project: `/v1/{tenant}/{project}/tools`.
    Scope(&'a [&'a str]),
}

/// Speaks to one hub with one token.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Secret,
    connection: Connection,
}

impl Client {
    /// Makes a client; sends nothing yet. Plain `http` goes to this machine only, unless `plain_http`.
    ///
    /// # Errors
    /// There is no hub's address or token, or the address is none to send a token to.
    pub fn new(connection: Connection, plain_http: bool) -> Result<Self, CliError> {
        let Some(url) = &connection.url else {
            return Err(CliError::usage_hint(
                "no hub runs in this folder or above it",
                "start one with `footbridge up`, or name one with --url or FOOTBRIDGE_URL",
            ));
        };
        let base = parse_url(url)?;
        let Some(token) = connection.token.clone() else {
            return Err(CliError::usage_hint(
                format!("there is no token for {url}"),
                "use --token-file or FOOTBRIDGE_TOKEN; the token of this folder's hub goes to that hub only",
            ));
        };
        let local = is_this_machine(&base);
        if base.scheme() == "http" && !local && !plain_http {
            return Err(CliError::usage_hint(
                format!("{url} would carry the token in the clear"),
                "use https, or --allow-plain-http where the network in between is yours",
            ));
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEPALIVE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("footbridge/", env!("CARGO_PKG_VERSION")));
        if local {
            // A proxy could not reach it, and must not see the token.
            builder = builder.no_proxy();
        }
        if base.scheme() == "http" {
            // Without this the client does not start on a machine that has no certificates.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| CliError::Unreachable {
            url: url.clone(),
            reason: request::innermost(&error),
            hint: None,
            maybe_sent: false,
        })?;
        Ok(Self { http, base, token, connection })
    }

    /// The tenant of the connection.
    ///
    /// # Errors
    /// A usage error: nobody named one.
    pub fn tenant(&self) -> Result<&str, CliError> {
        self.connection
            .tenant
            .as_deref()
            .ok_or_else(|| CliError::usage_hint("which tenant is not said", "use --tenant or FOOTBRIDGE_TENANT"))
    }

    /// The project of the connection.
    ///
    /// # Errors
    /// A usage error: nobody named one.
    pub fn project(&self) -> Result<&str, CliError> {
        self.connection
            .project
            .as_deref()
            .ok_or_else(|| CliError::usage_hint("which project is not said", "use --project or FOOTBRIDGE_PROJECT"))
    }

    /// Where the hub is an MCP server for the connection's tenant and project: of all its tools, or of one pack's.
    ///
    /// # Errors
    /// Nobody named the tenant or the project, or the token cannot be sent.
    pub fn mcp(&self, pack: Option<&str>) -> Result<HttpTarget, CliError> {
        let mut url = self.url_of(["mcp", self.tenant()?, self.project()?])?;
        if let Some(pack) = pack {
            url.query_pairs_mut().append_pair("pack", pack);
        }
        let token = format!("Bearer {}", self.token.reveal()).parse();
        let mut token: HeaderValue = token.map_err(|_| CliError::usage("the token holds characters that none has"))?;
        token.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, token)]);
        Ok(HttpTarget { url, headers, client: self.http.clone() })
    }

    /// For whom the token of the current folder's hub speaks, where the connection is to that hub.
    pub fn subject_of_folder(&self) -> Option<&str> {
        self.connection.hub.as_ref().map(|hub| hub.subject.as_str())
    }

    /// Reads.
    ///
    /// # Errors
    /// The path cannot be asked for.
    pub fn get(&self, at: At<'_>) -> Result<Request, CliError> {
        self.request(Method::GET, at)
    }

    /// Writes.
    ///
    /// # Errors
    /// The path cannot be asked for.
    pub fn put(&self, at: At<'_>) -> Result<Request, CliError> {
        self.request(Method::PUT, at)
    }

    /// Makes something.
    ///
    /// # Errors
    /// The path cannot be asked for.
    pub fn post(&self, at: At<'_>) -> Result<Request, CliError> {
        self.request(Method::POST, at)
    }

    /// Deletes.
    ///
    /// # Errors
    /// The path cannot be asked for.
    pub fn delete(&self, at: At<'_>) -> Result<Request, CliError> {
        self.request(Method::DELETE, at)
    }

    fn request(&self, method: Method, at: At<'_>) -> Result<Request, CliError> {
        Ok(Request::new(self.clone(), method, self.url(at)?))
    }

    /// The hub's address, as people write it.
    fn address(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    fn url(&self, at: At<'_>) -> Result<Url, CliError> {
        let mut segments = vec!["v1"];
        match at {
            At::Hub(path) => segments.extend(path),
            At::Scope(path) => {
                segments.extend([self.tenant()?, self.project()?]);
                segments.extend(path);
            }
        }
        self.url_of(segments)
    }

    fn url_of<'a>(&self, segments: impl IntoIterator<Item = &'a str, IntoIter: Clone>) -> Result<Url, CliError> {
        let segments = segments.into_iter();
        // These would be resolved, and then mean another path.
        if let Some(odd) = segments.clone().find(|segment| matches!(*segment, "" | "." | "..")) {
            return Err(CliError::usage(format!("`{odd}` is no name")));
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(segments),
            Err(()) => return Err(CliError::usage(format!("{} takes no paths", self.base))),
        };
        Ok(url)
    }
}

fn parse_url(url: &str) -> Result<Url, CliError> {
    let wrong = || {
        CliError::usage_hint(
            format!("`{url}` is no hub's address"),
            "write it as http://127.0.0.1:7800 or https://host",
        )
    };
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    let plain = parsed.username().is_empty() && parsed.password().is_none() && parsed.query().is_none();
    if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() && plain { Ok(parsed) } else { Err(wrong()) }
}

fn is_this_machine(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
