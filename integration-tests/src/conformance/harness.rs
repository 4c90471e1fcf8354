//! What stands between the suite and a hub: the suite sends no token and forgets queries. Everything else goes through
//! unchanged, streams as they come.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Result;

/// A harness, until it is dropped.
pub(super) struct Harness {
    /// Where the suite finds the endpoint.
    pub(super) url: String,
    _server: JoinSet<()>,
}

#[derive(Clone)]
struct Behind {
    client: Client<HttpConnector, Body>,
    endpoint: Uri,
    authorization: HeaderValue,
}

impl Harness {
    /// Stands before `endpoint`.
    ///
    /// # Errors
    /// When it cannot listen, or its arguments are none.
    pub(super) async fn start(endpoint: &str, token: &str) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let behind = Behind {
            client: Client::builder(TokioExecutor::new()).build(connector),
            endpoint: endpoint.parse()?,
            authorization: HeaderValue::try_from(format!("Bearer {token}"))?,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let app = Router::new().fallback(forward).with_state(behind);
        let listener = listener.tap_io(|socket| {
            // Without it a small answer may wait for an acknowledgement.
            let _ = socket.set_nodelay(true);
        });
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It serves until it is dropped.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { url, _server: server })
    }
}

async fn forward(State(behind): State<Behind>, mut request: Request) -> Response {
    *request.uri_mut() = behind.endpoint;
    request.headers_mut().insert(AUTHORIZATION, behind.authorization);
    match behind.client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::routing::any;

    use super::*;

    #[tokio::test]
    async fn a_request_gets_the_token_and_the_query_and_keeps_the_rest() {
        let seen = |uri: Uri, headers: HeaderMap, body: String| async move {
            let get = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            format!("{uri} {:?} {:?} {:?} {body}", get("authorization"), get("host"), get("origin"))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut behind = JoinSet::new();
        behind.spawn(async move { axum::serve(listener, Router::new().fallback(any(seen))).await.unwrap() });
        let harness = Harness::start(&format!("http://{address}/mcp/a/b?pack=p"), "secret").await.unwrap();
        // A second installation answers an error, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let request = reqwest::Client::builder().no_proxy().build().unwrap().post(&harness.url);
        let request = request.header("host", "evil.example.com").header("origin", "http://evil.example.com");
        let text = request.body("asked").send().await.unwrap().text().await.unwrap();
        assert_eq!(
            text,
            r#"/mcp/a/b?pack=p Some("Bearer secret") Some("evil.example.com") Some("http://evil.example.com") asked"#
        );
    }
}
