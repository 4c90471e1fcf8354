//! What a document says of an MCP server.
//!
//! Nothing here can be printed: addresses, headers and variables hold credentials.

use std::time::Duration;

use footbridge_shared::message::Raw;
use globset::GlobSet;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;

use super::redact::Redactor;

/// How long a handshake may take where the document does not say.
pub(in crate::sources::configured) const DEFAULT_INIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Idle time of a call where the document does not say.
pub(in crate::sources::configured) const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// An MCP server and how it is used.
pub(in crate::sources::configured) struct ServerConfig {
    /// Where it is.
    pub(in crate::sources::configured) target: Target,
    /// Idle time of a call; `None`: the document does not say.
    pub(in crate::sources::configured) call_timeout: Option<Duration>,
    /// How long a handshake, and each page of a listing, may take.
    pub(in crate::sources::configured) init_timeout: Duration,
    /// Who shares a connection.
    pub(in crate::sources::configured) session: SessionMode,
    /// What fills arguments and overrides them.
    pub(in crate::sources::configured) arguments: GivenArguments,
    /// Which tools are offered.
    pub(in crate::sources::configured) offered: Offered,
    /// Calls that run at once; `None`: as many as there are.
    pub(in crate::sources::configured) concurrency: Option<usize>,
    /// Takes the document's credentials out of texts.
    pub(in crate::sources::configured) redactor: Redactor,
    /// Of all parameters: two documents with the same one mean the same server.
    pub(in crate::sources::configured) digest: [u8; 32],
}

/// Where a server is.
pub(in crate::sources::configured) enum Target {
    /// A program that the hub starts.
    Stdio(Program),
    /// Elsewhere, over HTTP.
    Http(Box<Endpoint>),
}

/// A program to start.
#[derive(Clone)]
pub(in crate::sources::configured) struct Program {
    /// A name that is looked for in the hub's `PATH`, or an absolute path.
    pub(in crate::sources::configured) command: String,
    /// Its arguments.
    pub(in crate::sources::configured) args: Vec<String>,
    /// Where it starts; the hub's own folder if nobody says.
    pub(in crate::sources::configured) cwd: Option<String>,
    /// Variables beside those that every child gets.
    pub(in crate::sources::configured) env: Vec<(String, String)>,
}

/// A server over HTTP.
#[derive(Clone)]
pub(in crate::sources::configured) struct Endpoint {
    /// Without user and password.
    pub(in crate::sources::configured) url: Url,
    /// Sent with every request, credentials that do not change included.
    pub(in crate::sources::configured) headers: HeaderMap,
    /// Credentials that have to be fetched.
    pub(in crate::sources::configured) oauth: Option<ClientCredentials>,
    /// How its certificate is judged.
    pub(in crate::sources::configured) tls: Tls,
    /// Server-sent events as in 2024-11-05.
    pub(in crate::sources::configured) legacy: bool,
}

/// Credentials of a request.
pub(in crate::sources::configured) enum Auth {
    /// None.
    None,
    /// A header.
    Header(HeaderName, HeaderValue),
    /// A part of the query.
    Query(String, String),
    /// To be fetched.
    ClientCredentials(ClientCredentials),
}

/// OAuth 2.0 client credentials.
#[derive(Clone)]
pub(in crate::sources::configured) struct ClientCredentials {
    /// Where tokens are given out.
    pub(in crate::sources::configured) token_url: Url,
    /// Who asks.
    pub(in crate::sources::configured) client_id: String,
    /// And proves it with this.
    pub(in crate::sources::configured) client_secret: String,
    /// What for.
    pub(in crate::sources::configured) scopes: Vec<String>,
}

/// How a certificate is judged.
#[derive(Clone, Default)]
pub(in crate::sources::configured) struct Tls {
    /// Not at all.
    pub(in crate::sources::configured) skip_verification: bool,
    /// Beside the public authorities also by these, as PEM.
    pub(in crate::sources::configured) ca_pem: Option<String>,
}

/// Who shares a connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sources::configured) enum SessionMode {
    /// Everybody. The server can ask nobody.
    Shared,
    /// Each subject has one.
    Subject,
    /// Each process has one; without a process each MCP session, and without that each subject.
    Process,
}

/// What a document adds to the arguments of calls.
#[derive(Default)]
pub(in crate::sources::configured) struct GivenArguments {
    /// For what the caller leaves out.
    pub(in crate::sources::configured) defaults: Vec<(String, Raw)>,
    /// Whatever the caller says.
    pub(in crate::sources::configured) forced: Vec<(String, Raw)>,
}

/// Which tools are offered, by their names on the server.
pub(in crate::sources::configured) struct Offered {
    /// `None`: all.
    pub(in crate::sources::configured) include: Option<GlobSet>,
    /// None of these.
    pub(in crate::sources::configured) exclude: GlobSet,
}

impl Offered {
    /// Whether a tool is.
    pub(in crate::sources::configured) fn admits(&self, original: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(original)) && !self.exclude.is_match(original)
    }
}

impl Target {
    /// Whether another one is the same server, with whatever variables and headers.
    pub(in crate::sources::configured) fn is_same_server(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stdio(a), Self::Stdio(b)) => (&a.command, &a.args, &a.cwd) == (&b.command, &b.args, &b.cwd),
            (Self::Http(a), Self::Http(b)) => a.url == b.url,
            (Self::Stdio(_), Self::Http(_)) | (Self::Http(_), Self::Stdio(_)) => false,
        }
    }

    /// What people may know of it: the program's name, or the server's host.
    pub(in crate::sources::configured) fn shown(&self) -> String {
        match self {
            Self::Stdio(program) => program.command.rsplit('/').next().unwrap_or_default().to_owned(),
            // An address may hold keys in its path and its query.
            Self::Http(endpoint) => endpoint.url.origin().ascii_serialization(),
        }
    }
}
