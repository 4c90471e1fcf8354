//! Feet's WebSockets: from axum's socket to the frames of [`crate::sources::feet`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use footbridge_shared::ErrorCode;
use footbridge_shared::limits::{MAX_FRAME_BYTES, MAX_SOCKET_MESSAGE_BYTES};
use footbridge_shared::version::{SUPPORTED, negotiate};
use futures::{Sink, Stream};

use crate::domain::principal::Principal;
use crate::sources::feet::{Close, FeetRegistry, Frame, SocketError};
use crate::web::error::ApiError;

/// Read buffer of one socket, in bytes. It is there from the start, so ten thousand idle feet pay for it.
const READ_BUFFER_BYTES: usize = 32 * 1024;
/// Bytes that are gathered before they are written without being asked to.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
/// Most that may wait in the socket's own buffer, in bytes: what is gathered, and a frame that does not go out.
const MAX_WRITE_BUFFER_BYTES: usize = WRITE_BUFFER_BYTES + 4 * MAX_FRAME_BYTES;
/// What the library says of a message that is larger than it reads.
const TOO_BIG: &str = "too long";

/// Upgrades a request of an authenticated foot, if there is a version that both sides speak; otherwise answers 400 and
/// names those that this hub speaks.
pub fn upgrade(upgrade: WebSocketUpgrade, registry: FeetRegistry, principal: Arc<Principal>) -> Response {
    let offered: Vec<&str> = upgrade.requested_protocols().filter_map(|value| value.to_str().ok()).collect();
    let Some(version) = negotiate(&offered.join(",")) else { return no_common_version() };
    upgrade
        .protocols([version])
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(MAX_WRITE_BUFFER_BYTES)
        .max_message_size(MAX_SOCKET_MESSAGE_BYTES)
        .max_frame_size(MAX_SOCKET_MESSAGE_BYTES)
        .on_failed_upgrade(|error| tracing::debug!(%error, "a foot's connection was not upgraded"))
        .on_upgrade(move |socket| serve(socket, registry, principal))
}

/// Hands an upgraded socket to the registry, whose task it is from then on.
pub async fn serve(socket: WebSocket, registry: FeetRegistry, principal: Arc<Principal>) {
    registry.connect(AxumSocket(socket), principal);
}

fn no_common_version() -> Response {
    let detail = format!("this hub speaks {}; name it in `Sec-WebSocket-Protocol`", SUPPORTED.join(", "));
    ApiError::new(ErrorCode::UnsupportedVersion, detail).into_response()
}

/// Frames instead of axum's messages.
struct AxumSocket(WebSocket);

impl Stream for AxumSocket {
    type Item = Result<Frame, SocketError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx).map(|next| next.map(|message| message.map(frame_of).map_err(error_of)))
    }
}

impl Sink<Frame> for AxumSocket {
    type Error = SocketError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        Pin::new(&mut self.0).poll_ready(cx).map_err(error_of)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Frame) -> Result<(), SocketError> {
        let message = message_of(frame)?;
        Pin::new(&mut self.0).start_send(message).map_err(error_of)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        Pin::new(&mut self.0).poll_flush(cx).map_err(error_of)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        Pin::new(&mut self.0).poll_close(cx).map_err(error_of)
    }
}

fn frame_of(message: Message) -> Frame {
    match message {
        Message::Text(text) => Frame::Text(text.into()),
        Message::Binary(data) => Frame::Binary(data),
        Message::Ping(_) | Message::Pong(_) => Frame::Heartbeat,
        Message::Close(close) => {
            let CloseFrame { code, reason } = close.unwrap_or(CloseFrame {
                code: axum::extract::ws::close_code::STATUS,
                reason: Utf8Bytes::from_static(""),
            });
            Frame::Close(Close { code, reason: reason.to_string() })
        }
    }
}

fn message_of(frame: Frame) -> Result<Message, SocketError> {
    Ok(match frame {
        Frame::Text(text) => {
            Message::Text(Utf8Bytes::try_from(text).map_err(|error| SocketError::Broken(error.to_string()))?)
        }
        Frame::Binary(data) => Message::Binary(data),
        Frame::Heartbeat => Message::Ping(Bytes::new()),
        Frame::Close(Close { code, reason }) => Message::Close(Some(CloseFrame { code, reason: reason.into() })),
    })
}

/// The library's error has no type that could be asked.
fn error_of(error: axum::Error) -> SocketError {
    let text = error.to_string();
    if text.contains(TOO_BIG) { SocketError::TooBig } else { SocketError::Broken(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::sync::CancellationToken;

    use crate::clock::SystemClock;
    use crate::dispatch::keyed::KeyedCalls;
    use crate::domain::changes::SurfaceChanges;
    use crate::domain::failure::Failure;
    use crate::domain::principal::{Reach, Role};
    use crate::domain::scope::Scope;
    use crate::lifecycle::Lifecycle;
    use crate::sources::feet::{FeetConfig, FeetParts, ScopeCheck};
    use crate::store::journal::StoredJournal;
    use crate::store::memory::MemoryStore;

    struct NoScopes;

    #[async_trait::async_trait]
    impl ScopeCheck for NoScopes {
        async fn exists(&self, _: &Scope) -> Result<bool, Failure> {
            Ok(false)
        }
    }

    async fn registry(lifecycle: &Lifecycle) -> FeetRegistry {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let late = KeyedCalls::new(Arc::new(StoredJournal::new(store.clone())), clock.clone());
        FeetRegistry::open(FeetParts {
            config: FeetConfig::default(),
            store,
            late,
            clock,
            lifecycle: lifecycle.clone(),
            scopes: Arc::new(NoScopes),
            built_ins: BTreeSet::new(),
            surfaces: SurfaceChanges::default(),
        })
        .await
        .unwrap()
    }

    /// Asks a hub that serves feet alone for an upgrade; gives the socket and the head of the answer.
    async fn knock(lifecycle: &Lifecycle, protocols: &str) -> (TcpStream, String) {
        let registry = registry(lifecycle).await;
        let principal = Arc::new(Principal {
            token: "t".into(),
            subject: "ada".parse().unwrap(),
            roles: vec![Role::Foot],
            reach: Reach::HUB,
            act_as: Vec::new(),
            ended: CancellationToken::new(),
        });
        let handler = move |socket: WebSocketUpgrade| async move { upgrade(socket, registry, principal) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hard = lifecycle.hard().clone();
        lifecycle.spawn("test-server", async move {
            let serving = axum::serve(listener, Router::new().route("/ws/foot", get(handler))).into_future();
            tokio::select! {
                () = hard.cancelled() => {}
                served = serving => served.unwrap(),
            }
        });
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET /ws/foot HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocols}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(char::from(socket.read_u8().await.unwrap()));
        }
        (socket, head.to_lowercase())
    }

    /// One short frame of a server: its first byte and its payload.
    async fn frame(socket: &mut TcpStream) -> (u8, Vec<u8>) {
        let (first, length) = (socket.read_u8().await.unwrap(), socket.read_u8().await.unwrap());
        let mut payload = vec![0; usize::from(length)];
        socket.read_exact(&mut payload).await.unwrap();
        (first, payload)
    }

    #[tokio::test]
    async fn a_foot_that_speaks_a_version_of_ours_is_challenged() {
        let lifecycle = Lifecycle::new();
        let (mut socket, head) = knock(&lifecycle, "footbridge.v9, footbridge.v1").await;
        assert!(head.starts_with("http/1.1 101"), "{head}");
        assert!(head.contains("sec-websocket-protocol: footbridge.v1"), "{head}");
        let (first, payload) = frame(&mut socket).await;
        assert_eq!(first, 0x81, "a whole text frame");
        assert!(String::from_utf8(payload).unwrap().starts_with(r#"{"type":"challenge","nonce":""#));
        drop(socket);
        assert_eq!(lifecycle.shut_down(Duration::from_millis(10)).await, 0);
    }

    #[tokio::test]
    async fn a_message_beyond_the_limit_is_told_so_before_the_end() {
        let lifecycle = Lifecycle::new();
        let (mut socket, _) = knock(&lifecycle, "footbridge.v1").await;
        frame(&mut socket).await;
        // The head of a masked text frame of 2 MiB; its data need not come.
        let mut large = vec![0x81, 0x80 | 127];
        large.extend_from_slice(&(2_u64 << 20).to_be_bytes());
        large.extend_from_slice(&[0; 4]);
        socket.write_all(&large).await.unwrap();
        let (first, payload) = frame(&mut socket).await;
        assert_eq!(first, 0x81);
        assert!(String::from_utf8(payload).unwrap().contains(r#""code":"bad_frame""#));
        let (first, payload) = frame(&mut socket).await;
        assert_eq!((first, &payload[..2]), (0x88, 1009_u16.to_be_bytes().as_slice()), "a close");
        drop(socket);
        assert_eq!(lifecycle.shut_down(Duration::from_millis(10)).await, 0);
    }

    #[tokio::test]
    async fn a_foot_of_another_version_is_told_which_there_are() {
        let lifecycle = Lifecycle::new();
        let (mut socket, head) = knock(&lifecycle, "footbridge.v2").await;
        assert!(head.starts_with("http/1.1 400") && head.contains("application/problem+json"), "{head}");
        let mut body = vec![0; 2048];
        let read = socket.read(&mut body).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body[..read]).unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&"unsupported_version".into(), &400.into()));
        assert_ne!(problem["type"], "about:blank", "a type of its own, as all errors have");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("footbridge.v1")), "{problem}");
        drop(socket);
        assert_eq!(lifecycle.shut_down(Duration::from_millis(10)).await, 0);
    }
}
