//! For whom requests of browsers are: a web page must not reach the hub by a name that it chose itself, nor speak for
//! whoever reads it.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri};
use footbridge_shared::ErrorCode;
use footbridge_shared::text::clean_and_cut;

use super::error::ApiError;

/// Under which names the hub is reached, and which pages may speak to it.
#[derive(Debug, Clone, Default)]
pub struct HostRules {
    /// Whether it listens for this machine alone.
    loopback: bool,
    public: Option<Site>,
    hosts: Vec<(String, Option<u16>)>,
    origins: Vec<Site>,
}

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Site {
    scheme: String,
    host: String,
    port: u16,
}

impl Site {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.trim().trim_end_matches('/').parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let authority = uri.authority()?;
        let port = authority.port_u16().or(match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })?;
        Some(Self { scheme, host: plain(authority.host()), port })
    }

    /// As a browser says where a page is from: nothing but scheme, host and port.
    fn of_page(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("://")?;
        if rest.contains(['/', '@', '?', '#']) { None } else { Self::parse(text) }
    }
}

/// A host's name as names are compared.
fn plain(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl HostRules {
    /// For a hub that listens there. What cannot be read of the rest was refused with the configuration.
    pub fn new(listens: SocketAddr, public_url: Option<&str>, hosts: &[String], origins: &[String]) -> Self {
        let parse = |text: &String| {
            let authority: Authority = text.parse().ok()?;
            Some((plain(authority.host()), authority.port_u16()))
        };
        let rules = Self {
            loopback: listens.ip().is_loopback(),
            public: public_url.and_then(Site::parse),
            hosts: hosts.iter().filter_map(parse).collect(),
            origins: origins.iter().filter_map(|origin| Site::parse(origin)).collect(),
        };
        if !rules.checks_names() {
            tracing::warn!(
                "the header Host is not checked: set `publicUrl`, or `allowedHosts`, to the names by which the hub is reached"
            );
        }
        rules
    }

    /// Whether it is known by which names the hub is reached.
    fn checks_names(&self) -> bool {
        self.loopback || self.public.is_some() || !self.hosts.is_empty()
    }

    /// Checks where a request means to go, and which page sent it: its origin, if a page did.
    pub(super) fn check<'a>(&self, target: &Uri, headers: &'a HeaderMap) -> Result<Option<&'a HeaderValue>, ApiError> {
        if target.authority().is_some() {
            // Who reads it and who reads the header would differ.
            return Err(ApiError::new(ErrorCode::BadRequest, "the target of the request is a whole URL")
                .hint("send its path alone; the header Host says the rest"));
        }
        let host = host(headers).ok_or_else(|| {
            ApiError::new(ErrorCode::BadRequest, "the header Host is missing, is there twice, or is no name and port")
        })?;
        if !self.knows(&host) {
            let detail =
                format!("the header Host says `{}`, and the hub is not known by that name", shown(host.as_str()));
            let hint = "ask for it by a name that it knows; its operator adds others with the setting `allowedHosts`, or \
                        `publicUrl`";
            return Err(refused("The hub does not answer by this name.", detail, hint));
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(None) };
        let text = origin.to_str().unwrap_or_default();
        if origins.next().is_none() && Site::of_page(text).is_some_and(|site| self.trusts(&site, &host)) {
            Ok(Some(origin))
        } else {
            let detail =
                format!("the header Origin says `{}`, and pages from there may not speak to the hub", shown(text));
            let hint = "the hub's operator adds the page's site with the setting `allowedOrigins`; programs that are no \
                        browser leave the header out";
            Err(refused("The hub does not answer pages of this site.", detail, hint))
        }
    }

    fn knows(&self, host: &Authority) -> bool {
        if !self.checks_names() {
            return true;
        }
        let (name, port) = (plain(host.host()), host.port_u16());
        // Nobody can make a number stand for another machine.
        let number = !self.loopback && name.parse::<IpAddr>().is_ok();
        number
            || is_loopback(&name)
            || self.public.as_ref().is_some_and(|public| public.host == name)
            || self.hosts.iter().any(|(known, at)| *known == name && (at.is_none() || *at == port))
    }

    fn trusts(&self, origin: &Site, host: &Authority) -> bool {
        let own = plain(host.host()) == origin.host && host.port_u16().unwrap_or(80) == origin.port;
        own || self.public.as_ref() == Some(origin) || self.origins.contains(origin)
    }
}

/// A refusal that has nothing to do with tokens and roles.
fn refused(title: &str, detail: String, hint: &str) -> ApiError {
    let mut error = ApiError::new(ErrorCode::Forbidden, detail).hint(hint);
    error.0.title = title.to_owned();
    error
}

/// The name by which the hub is asked for, if exactly one is there.
fn host(headers: &HeaderMap) -> Option<Authority> {
    let mut values = headers.get_all(HOST).iter();
    let host: Authority = values.next()?.to_str().ok()?.parse().ok()?;
    // A name of a user before it is for readers that do not look closely.
    (values.next().is_none() && !host.as_str().contains('@')).then_some(host)
}

fn shown(text: &str) -> String {
    clean_and_cut(text, 100)
}

/// How the hub is reached, as far as it knows: without a slash at the end.
pub(super) fn base_url(rules: &HostRules, headers: &HeaderMap) -> String {
    match (&rules.public, host(headers)) {
        (Some(Site { scheme, host, port }), _) => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            match (scheme.as_str(), port) {
                ("http", 80) | ("https", 443) => format!("{scheme}://{host}"),
                _ => format!("{scheme}://{host}:{port}"),
            }
        }
        (None, Some(host)) => format!("http://{host}"),
        (None, None) => "http://localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(rules: &HostRules, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        rules.check(&Uri::from_static("/mcp/a/b"), &headers).is_ok()
    }

    fn rules(listens: &str, public: Option<&str>, hosts: &[&str], origins: &[&str]) -> HostRules {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        HostRules::new(listens.parse().unwrap(), public, &owned(hosts), &owned(origins))
    }

    #[test]
    fn a_hub_for_this_machine_is_reached_by_names_of_this_machine() {
        let rules = rules("127.0.0.1:7800", None, &[], &[]);
        for host in ["localhost:7800", "127.0.0.1:7800", "[::1]:7800", "LOCALHOST"] {
            assert!(passes(&rules, host, None), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:7800", "192.168.0.7:7800", "localhost.evil.example"] {
            assert!(!passes(&rules, host, None), "{host}");
        }
    }

    #[test]
    fn a_hub_for_others_is_reached_by_the_names_that_it_was_given() {
        let open = rules("0.0.0.0:7800", None, &[], &[]);
        assert!(passes(&open, "anything.example", None));
        let named = rules("0.0.0.0:7800", Some("https://hub.example"), &["inner:7800"], &[]);
        assert!(passes(&named, "hub.example", None));
        assert!(passes(&named, "inner:7800", None));
        assert!(passes(&named, "10.0.0.1:7800", None));
        assert!(!passes(&named, "inner:7801", None));
        assert!(!passes(&named, "evil.example", None));
    }

    #[test]
    fn a_refusal_names_what_is_wrong_and_the_setting() {
        let rules = rules("127.0.0.1:7800", None, &[], &[]);
        for (host, origin, setting) in
            [("evil.example", None, "allowedHosts"), ("localhost", Some("https://app.example"), "allowedOrigins")]
        {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            let problem = rules.check(&Uri::from_static("/mcp/a/b"), &headers).unwrap_err().0;
            assert_eq!((problem.code, problem.status), (ErrorCode::Forbidden, 403));
            assert!(!problem.title.contains("role"), "{}", problem.title);
            assert!(problem.detail.contains(origin.unwrap_or(host)), "{}", problem.detail);
            assert!(problem.hint.unwrap().contains(setting));
        }
    }

    #[test]
    fn only_own_and_named_pages_may_speak() {
        let rules = rules("127.0.0.1:7800", Some("https://hub.example"), &[], &["https://app.example"]);
        assert!(passes(&rules, "localhost:7800", Some("http://localhost:7800")));
        assert!(passes(&rules, "hub.example", Some("https://hub.example")));
        assert!(passes(&rules, "localhost:7800", Some("https://app.example")));
        for origin in ["http://localhost:3000", "https://evil.example", "null", "http://app.example"] {
            assert!(!passes(&rules, "localhost:7800", Some(origin)), "{origin}");
        }
    }
    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let rules = rules("127.0.0.1:7800", None, &[], &["https://app.example"]);
        for host in ["evil.example@localhost", "evil.example:80@localhost:7800", "localhost/x", ""] {
            assert!(!passes(&rules, host, None), "{host}");
        }
        for origin in
            ["https://evil.example@app.example", "https://app.example/x", "https://app.example/", "app.example"]
        {
            assert!(!passes(&rules, "localhost", Some(origin)), "{origin}");
        }
        let target = Uri::from_static("/mcp/a/b");
        for (name, one, other) in [
            (HOST, "localhost", "localhost"),
            (HOST, "localhost", "evil.example"),
            (ORIGIN, "https://app.example", "https://evil.example"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost"));
            headers.insert(name.clone(), HeaderValue::from_static(one));
            assert!(rules.check(&target, &headers).is_ok());
            headers.append(name, HeaderValue::from_static(other));
            assert!(rules.check(&target, &headers).is_err(), "{other}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        assert!(rules.check(&Uri::from_static("http://localhost/mcp/a/b"), &headers).is_err());
    }
}
