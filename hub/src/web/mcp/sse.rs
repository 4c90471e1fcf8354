//! Streams as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use tokio_util::sync::CancellationToken;

use super::stream::{Next, Reader};

/// The content type of a stream.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// How often a silent stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a client that lost a stream shall come again, in milliseconds.
const RETRY_MS: u64 = 1_000;

/// How a stream is shown to one reader.
pub(super) struct Showing<G> {
    pub(super) reader: Reader,
    /// Whether to begin with an event that only says where the stream is.
    pub(super) primed: bool,
    /// The token of whoever reads: with it reading ends, also what was written before.
    pub(super) token: CancellationToken,
    /// Ends it early, when what was written has been read.
    pub(super) until: Option<CancellationToken>,
    /// Writes to it for as long as it is read.
    pub(super) feed: Option<BoxFuture<'static, ()>>,
    /// Dropped when the reader is gone.
    pub(super) _guard: G,
}

/// Answers with a stream. Nothing is read ahead.
pub(super) fn respond<G: Send + 'static>(showing: Showing<G>) -> Response {
    let primed = showing.primed;
    let state = (showing, primed);
    let body = Body::from_stream(stream::unfold(state, |(mut showing, prime)| async move {
        if prime {
            let number = showing.reader.stream.number();
            return Some((Ok::<_, Infallible>(priming(number, showing.reader.seen)), (showing, false)));
        }
        let chunk = next_chunk(&mut showing).await?;
        Some((Ok(chunk), (showing, false)))
    }));
    event_stream(body)
}

async fn next_chunk<G>(showing: &mut Showing<G>) -> Option<Bytes> {
    let Showing { reader, token, until, feed, .. } = showing;
    loop {
        tokio::select! {
            biased;
            () = token.cancelled() => return None,
            next = reader.next() => return match next {
                Next::Message(number, text) => Some(event(reader.stream.number(), number, &text)),
                Next::End => None,
            },
            () = over(until.as_ref()) => return None,
            () = fed(feed) => *feed = None,
            () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b": alive\n\n")),
        }
    }
}

async fn over(until: Option<&CancellationToken>) {
    match until {
        Some(until) => until.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn fed(feed: &mut Option<BoxFuture<'static, ()>>) {
    match feed {
        Some(feed) => feed.await,
        None => std::future::pending().await,
    }
}

/// An answer of this content type.
pub(super) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response
}

fn event(stream: Option<u64>, number: u64, text: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(text.len() + 48);
    if let Some(stream) = stream {
        event.extend_from_slice(format!("id: {stream}-{number}\n").as_bytes());
    }
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(text);
    event.extend_from_slice(b"\n\n");
    event.into()
}

fn priming(stream: Option<u64>, seen: u64) -> Bytes {
    let id = stream.map(|stream| format!("id: {stream}-{seen}\n")).unwrap_or_default();
    format!("{id}retry: {RETRY_MS}\ndata: \n\n").into()
}

/// Where a client was: the numbers of a stream and of an event.
pub(super) fn place(last_event_id: &str) -> Option<(u64, u64)> {
    let (stream, number) = last_event_id.trim().split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
