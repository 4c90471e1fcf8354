//! The address of a hub.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Where feet connect, below the hub's address.
const SOCKET_PATH: &str = "/ws/foot";

/// Why a text is no hub address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is no hub address: {reason}")]
pub struct HubUrlError {
    url: String,
    reason: &'static str,
}

/// The address of a hub: `https://…` or `wss://…`, and without TLS only on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubUrl {
    tls: bool,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Empty, or `/…` without a slash at the end.
    base: String,
}

impl HubUrl {
    /// Whether the connection is encrypted.
    pub(crate) const fn is_tls(&self) -> bool {
        self.tls
    }

    /// What to connect to.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The URI of the WebSocket.
    pub(crate) fn socket(&self) -> String {
        let scheme = if self.tls { "wss" } else { "ws" };
        format!("{scheme}://{}{}{SOCKET_PATH}", self.authority(), self.base)
    }

    /// Whether an address is one of this hub: the same host and port, and the same beginning of the path where the hub has
    /// one, for other servers may be beside it then. All names of this machine are one.
    pub(crate) fn is_at(&self, url: &str) -> bool {
        let Ok(url) = footbridge_mcp::Url::parse(url) else { return false };
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
        let (host, own) = (plain(host), plain(&self.host));
        let below = url.path().strip_prefix(self.base.as_str());
        let is_below = below.is_some_and(|below| below.is_empty() || below.starts_with('/') || self.base.is_empty());
        port == self.port && is_below && (host == own || (is_this_machine(&host) && is_this_machine(&own)))
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }
}

impl fmt::Display for HubUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.base)
    }
}

impl FromStr for HubUrl {
    type Err = HubUrlError;

    fn from_str(url: &str) -> Result<Self, HubUrlError> {
        // Credentials may stand in front of an `@`: they are neither used nor shown.
        let shown = if url.contains('@') { "…@…".to_owned() } else { crate::failure::shown(url) };
        let fail = |reason| HubUrlError { url: shown.clone(), reason };
        let uri: http::Uri = url.parse().map_err(|_| fail("write for instance https://hub.example.org"))?;
        let (tls, default_port) = match uri.scheme_str() {
            Some("https" | "wss") => (true, 443),
            Some("http" | "ws") => (false, 80),
            _ => return Err(fail("it starts with https://, or on this machine with http://")),
        };
        let authority = uri.authority().ok_or_else(|| fail("there is no host"))?;
        if authority.as_str().contains('@') {
            return Err(fail("there must be no user or password in it; use a token file"));
        }
        if uri.query().is_some() {
            return Err(fail("there must be no query in it"));
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(fail("there is no host"));
        }
        if !tls && !is_loopback(&host) {
            return Err(fail("without TLS only this machine can be reached: write https://"));
        }
        let port = uri.port_u16().unwrap_or(default_port);
        let base = uri.path().trim_end_matches('/').trim_end_matches(SOCKET_PATH).to_owned();
        Ok(Self { tls, host, port, base })
    }
}

/// A host without the ways in which it can be written.
fn plain(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

/// Whether a host, as [`plain`] writes it, is this machine.
fn is_this_machine(host: &str) -> bool {
    let ip = host.parse::<IpAddr>().map(|ip| ip.to_canonical());
    // One that is not specified is dialled as this machine too.
    host == "localhost" || host.ends_with(".localhost") || ip.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_lies_below_the_hubs_address() {
        for (url, socket) in [
            ("https://hub.example.org", "wss://hub.example.org:443/ws/foot"),
            ("https://hub.example.org/", "wss://hub.example.org:443/ws/foot"),
            ("wss://hub.example.org:8443/tools/", "wss://hub.example.org:8443/tools/ws/foot"),
            ("wss://hub.example.org/ws/foot", "wss://hub.example.org:443/ws/foot"),
            ("http://localhost:7070", "ws://localhost:7070/ws/foot"),
            ("ws://127.0.0.1", "ws://127.0.0.1:80/ws/foot"),
            ("http://[::1]:7070", "ws://[::1]:7070/ws/foot"),
        ] {
            assert_eq!(url.parse::<HubUrl>().unwrap().socket(), socket, "{url}");
        }
    }

    #[test]
    fn an_address_is_the_hubs_whatever_its_path() {
        let here: HubUrl = "http://localhost:7070".parse().unwrap();
        for url in [
            "http://localhost:7070",
            "http://127.0.0.1:7070/mcp/a/b",
            "http://[::1]:7070",
            "http://[::ffff:127.0.0.1]:7070",
            "http://0.0.0.0:7070",
            "http://hub.localhost.:7070",
        ] {
            assert!(here.is_at(url), "{url}");
        }
        for url in ["http://localhost", "http://10.0.0.1:7070", "localhost:7070", ""] {
            assert!(!here.is_at(url), "{url}");
        }
        let there: HubUrl = "https://Hub.example.org".parse().unwrap();
        assert!(there.is_at("https://hub.EXAMPLE.org.:443/mcp/a/b"));
        assert!(!there.is_at("https://example.org/mcp/a/b") && !there.is_at("http://hub.example.org/mcp"));
        let below: HubUrl = "https://example.org/tools".parse().unwrap();
        assert!(below.is_at("https://example.org/tools") && below.is_at("https://example.org/tools/mcp/a/b"));
        assert!(!below.is_at("https://example.org/tickets/mcp") && !below.is_at("https://example.org/toolsmith"));
    }

    #[test]
    fn a_token_never_travels_in_the_clear_and_never_stands_in_an_address() {
        for url in [
            "http://hub.example.org",
            "ws://10.0.0.1:7070",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "https://ada:secret@hub.example.org",
            "https://hub.example.org/?token=x",
            "hub.example.org",
            "ftp://localhost",
            "https://",
            "",
        ] {
            let error = url.parse::<HubUrl>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
