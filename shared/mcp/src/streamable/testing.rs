//! A server on HTTP that does what a test says, request by request.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::client::HttpTarget;

type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) struct HttpServer {
    pub(crate) target: HttpTarget,
    requests: mpsc::UnboundedReceiver<Served>,
    _tasks: JoinSet<()>,
}

/// A request that waits for what the test answers.
pub(crate) struct Served {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    reply: oneshot::Sender<Response<Body>>,
}

/// A stream that a test writes. Dropped, it ends.
pub(crate) struct Writing(mpsc::Sender<Result<Frame<Bytes>, io::Error>>);

impl Writing {
    pub(crate) async fn text(&self, text: &str) {
        let _ = self.0.send(Ok(Frame::data(Bytes::from(text.to_owned())))).await;
    }

    pub(crate) async fn message(&self, message: &Value) {
        self.text(&format!("data: {message}\n\n")).await;
    }

    /// Breaks it in the middle.
    pub(crate) async fn break_off(self) {
        let _ = self.0.send(Err(io::Error::other("broken"))).await;
    }

    /// Ends when the client does not read any more.
    pub(crate) async fn dropped(&self) {
        self.0.closed().await;
    }
}

impl HttpServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
        let options = super::HttpClientOptions {
            connect_timeout: std::time::Duration::from_secs(60),
            authorities: None,
            user_agent: "test".to_owned(),
            proxies: false,
        };
        let client = super::http_client(&options).unwrap();
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, "Bearer t".parse().unwrap())]);
        let (tell, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let tell = tell.clone();
                connections.spawn(async move {
                    let serve = service_fn(move |request| serve(request, tell.clone()));
                    let _ =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await;
                });
            }
        });
        Self { target: HttpTarget { url, headers, client }, requests, _tasks: tasks }
    }

    /// The next request of this HTTP method.
    pub(crate) async fn next(&mut self, method: Method) -> Served {
        let served = self.requests.recv().await.unwrap();
        assert_eq!(served.method, method, "{} {}", served.path, served.body);
        assert_eq!(served.headers["authorization"], "Bearer t");
        served
    }

    /// The next message.
    pub(crate) async fn expect(&mut self, method: &str) -> Served {
        let served = self.next(Method::POST).await;
        assert_eq!(served.body["method"], method, "{}", served.body);
        assert_eq!(served.headers["accept"], "application/json, text/event-stream");
        served
    }

    /// Whether there was no more.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

async fn serve(request: Request<Incoming>, tell: mpsc::UnboundedSender<Served>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (reply, replied) = oneshot::channel();
    let _ = tell.send(Served {
        method: head.method,
        path: head.uri.to_string(),
        headers: head.headers,
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        reply,
    });
    Ok(replied.await.unwrap_or_else(|_| respond(500, "text/plain", "nobody answers")))
}

fn respond(status: u16, kind: &str, body: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_owned())).map_err(|never| match never {}).boxed_unsync();
    let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    response.header("content-type", kind).body(body).unwrap()
}

impl Served {
    pub(crate) fn answer(self, status: u16, kind: &str, body: &str) {
        let _ = self.reply.send(respond(status, kind, body));
    }

    pub(crate) fn result(self, result: &Value) {
        self.result_in_session(result, None);
    }

    pub(crate) fn result_in_session(self, result: &Value, session: Option<&str>) {
        let body = serde_json::json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}).to_string();
        let mut response = respond(200, "application/json; charset=utf-8", &body);
        if let Some(session) = session {
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
        }
        let _ = self.reply.send(response);
    }

    pub(crate) fn error(self, status: u16, id: Value, code: i64, message: &str) {
        let error = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
        self.answer(status, "application/json", &error.to_string());
    }

    pub(crate) fn accept(self) {
        self.answer(202, "text/plain", "");
    }

    pub(crate) fn stream(self) -> Writing {
        let (write, read) = mpsc::channel(1);
        let stream = futures::stream::unfold(read, |mut read| async move { Some((read.recv().await?, read)) });
        let response = Response::builder().header("content-type", "text/event-stream");
        let _ = self.reply.send(response.body(StreamBody::new(stream).boxed_unsync()).unwrap());
        Writing(write)
    }
}
