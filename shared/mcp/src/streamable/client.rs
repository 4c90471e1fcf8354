//! The HTTP client that connections are made with.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// How soon a connection on which nothing comes is looked after: streams may be silent for hours.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long a connection that is not in use is kept. Below what servers and proxies in between usually keep.
const IDLE: Duration = Duration::from_secs(55);

/// How servers are reached.
#[derive(Debug, Clone)]
pub struct HttpClientOptions {
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Certificates of authorities that are trusted beside the public ones, as PEM.
    pub authorities: Option<Vec<u8>>,
    /// What it calls itself.
    pub user_agent: String,
    /// Whether proxies of the environment are used.
    pub proxies: bool,
}

/// Makes a client for [`HttpTarget`](crate::HttpTarget): it follows no redirects, keeps connections, and sends small
/// messages at once.
///
/// # Errors
/// What is wrong with the certificates.
pub fn http_client(options: &HttpClientOptions) -> Result<reqwest::Client, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in CertificateDer::pem_slice_iter(options.authorities.as_deref().unwrap_or_default()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(options.connect_timeout)
        .tcp_keepalive(KEEPALIVE)
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(&options.user_agent);
    let builder = if options.proxies { builder } else { builder.no_proxy() };
    builder.build().map_err(|error| super::reason(&error))
}
