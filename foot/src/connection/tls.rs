//! Whom a foot trusts to be its hub.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::Connector;

use crate::error::FootError;

/// The public authorities, and the certificates of a file.
pub(super) fn connector(ca: Option<&Path>) -> Result<Connector, FootError> {
    let mut config = client_config(ca)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Connector::Rustls(Arc::new(config)))
}

/// The same for other uses.
pub(crate) fn client_config(ca: Option<&Path>) -> Result<ClientConfig, FootError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = ca {
        let fail = |reason: String| FootError::Certificates { path: path.display().to_string(), reason };
        let public = roots.len();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fail(error.to_string()))? {
            let certificate = certificate.map_err(|error| fail(error.to_string()))?;
            roots.add(certificate).map_err(|error| fail(error.to_string()))?;
        }
        if roots.len() == public {
            return Err(fail("there is no certificate in it".to_owned()));
        }
    }
    let fail = |error: rustls::Error| FootError::Certificates { path: String::new(), reason: error.to_string() };
    Ok(ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(fail)?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FootConfig, Token, TokenSource};
    use crate::connection::{Dialer, Ended};
    use footbridge_shared::id::{ProjectName, TenantName};
    use futures::SinkExt as _;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

    #[test]
    fn a_file_without_certificates_is_refused() {
        assert!(connector(None).is_ok());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no certificate\n").unwrap();
        for path in [file.path(), Path::new("/nonexistent")] {
            assert!(matches!(connector(Some(path)), Err(FootError::Certificates { .. })), "{}", path.display());
        }
    }

    /// Serves one connection with a certificate of its own for `name`; returns how a foot that trusts it, or the public
    /// authorities, fares at `localhost`.
    async fn dial(name: &str, trust: bool) -> Result<String, Ended> {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let ca = dir.path().join("ca.pem");
        std::fs::write(&ca, certified.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
        let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hub = format!("https://localhost:{}", listener.local_addr().unwrap().port()).parse().unwrap();
        let token = TokenSource::Value(Token::parse("t").unwrap());
        let (tenant, project) = (TenantName::parse("acme").unwrap(), ProjectName::parse("web").unwrap());
        let config = FootConfig::new(hub, token, tenant, project, vec![], dir.path().to_owned()).unwrap();
        let dialer = Dialer::new(&FootConfig { ca: trust.then_some(ca), ..config }).unwrap();

        let serve = async {
            let stream = listener.accept().await.unwrap().0;
            let Ok(stream) = TlsAcceptor::from(Arc::new(server)).accept(stream).await else { return };
            let upgrade = |request: &Request, mut response: Response| {
                let protocol = request.headers().get("sec-websocket-protocol").unwrap().clone();
                response.headers_mut().insert("sec-websocket-protocol", protocol);
                Ok(response)
            };
            let mut socket = tokio_tungstenite::accept_hdr_async(stream, upgrade).await.unwrap();
            socket.send(Message::text(r#"{"type": "challenge", "nonce": "over tls"}"#)).await.unwrap();
        };
        let (challenged, ()) = tokio::join!(dialer.dial(), serve);
        challenged.map(|challenged| challenged.nonce)
    }

    #[tokio::test]
    async fn only_a_hub_with_a_certificate_we_trust_gets_the_token() {
        assert_eq!(dial("localhost", true).await.unwrap(), "over tls");
        for (name, trust) in [("localhost", false), ("hub.example.org", true)] {
            let Err(Ended::Lost { why, .. }) = dial(name, trust).await else { panic!("{name}") };
            assert!(why.contains("certificate"), "{name}: {why}");
        }
    }
}
