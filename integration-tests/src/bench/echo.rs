//! The comparison: the least that an HTTP server and a WebSocket server can do: answer with what they were sent, or, asked
//! for `bytes 123`, with so many.

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use futures::{SinkExt as _, StreamExt as _};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use super::say;
use crate::Result;

/// A bare axum server that answers each body with itself.
///
/// # Errors
/// When it cannot listen.
pub async fn serve_http() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(&format!("listening on http://{}", listener.local_addr()?));
    let echo = post(|body: Bytes| async move { asked_for(&body).map_or(body, Bytes::from) });
    let app = Router::new().route("/echo", echo);
    let listener = listener.tap_io(|socket| {
        // Without it a small answer may wait for an acknowledgement.
        let _ = socket.set_nodelay(true);
    });
    Ok(axum::serve(listener, app).await?)
}

/// A bare tokio-tungstenite server that answers each message with itself.
///
/// # Errors
/// When it cannot listen.
pub async fn serve_socket() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(&format!("listening on ws://{}", listener.local_addr()?));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let mut socket = tokio_tungstenite::accept_async(stream).await?;
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                let asked = asked_for(message.to_text()?.as_bytes());
                socket.send(asked.map_or(message, Message::text)).await?;
            }
        }
    }
}

/// The text that a request asks for, if it does.
fn asked_for(request: &[u8]) -> Option<String> {
    let bytes = std::str::from_utf8(request.strip_prefix(b"bytes ")?).ok()?.parse().ok()?;
    Some("x".repeat(bytes))
}
