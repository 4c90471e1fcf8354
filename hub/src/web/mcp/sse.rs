//! Streams as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use footbridge_mcp::headers::EVENT_STREAM;
use footbridge_mcp::sse;
use futures::future::BoxFuture;
use futures::stream;
use tokio_util::sync::CancellationToken;

use super::stream::{Next, Reader};

/// How often a silent stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a client that lost a stream shall come again.
const RETRY: Duration = Duration::from_secs(1);
/// Up to how many bytes a message is copied into its event. A larger one is sent as it is kept, between what makes it an event:
/// of an answer that waits to be read there is one.
const MAX_COPIED_BYTES: usize = 16 * 1024;

/// The empty line that ends an event, and the end of the line before.
const EVENT_END_BYTES: usize = 2;

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
    let mut begun = VecDeque::new();
    if showing.primed {
        begun.push_back(priming(showing.reader.stream.number(), showing.reader.seen));
    }
    let body = Body::from_stream(stream::unfold((showing, begun), |(mut showing, mut pieces)| async move {
        if pieces.is_empty() {
            pieces = next_pieces(&mut showing).await?;
        }
        let piece = pieces.pop_front()?;
        Some((Ok::<_, Infallible>(piece), (showing, pieces)))
    }));
    event_stream(body)
}

/// What is to be sent next; never nothing.
async fn next_pieces<G>(showing: &mut Showing<G>) -> Option<VecDeque<Bytes>> {
    let Showing { reader, token, until, feed, .. } = showing;
    loop {
        tokio::select! {
            biased;
            () = token.cancelled() => return None,
            next = reader.next() => return match next {
                Next::Message(number, text) => Some(event(reader.stream.number(), number, text)),
                Next::End => None,
            },
            () = over(until.as_ref()) => return None,
            () = fed(feed) => *feed = None,
            () = tokio::time::sleep(KEEP_ALIVE) => {
                return Some([Bytes::from_static(sse::KEEP_ALIVE.as_bytes())].into());
            }
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

fn event(stream: Option<u64>, number: u64, text: Bytes) -> VecDeque<Bytes> {
    let written = |data: &[u8]| match stream {
        Some(stream) => sse::message_text(Some(format_args!("{stream}-{number}")), data),
        None => sse::message_text(None, data),
    };
    if text.len() <= MAX_COPIED_BYTES {
        return [written(&text).into()].into();
    }
    let mut before = Bytes::from(written(b""));
    let after = before.split_off(before.len() - EVENT_END_BYTES);
    [before, text, after].into()
}

fn priming(stream: Option<u64>, seen: u64) -> Bytes {
    let id = stream.map(|stream| format!("{stream}-{seen}"));
    sse::Event { id, retry: Some(RETRY), ..sse::Event::data("") }.to_text().into()
}

/// Where a client was: the numbers of a stream and of an event.
pub(super) fn place(last_event_id: &str) -> Option<(u64, u64)> {
    let (stream, number) = last_event_id.trim().split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_message_is_sent_as_it_is_kept() {
        for stream in [None, Some(7)] {
            for bytes in [0, MAX_COPIED_BYTES, MAX_COPIED_BYTES + 1] {
                let text = Bytes::from(vec![b'x'; bytes]);
                let pieces = event(stream, 3, text.clone());
                let id = stream.map(|stream| format!("id: {stream}-3\n")).unwrap_or_default();
                let expected = [id.as_bytes(), b"data: ", &text, b"\n\n"].concat();
                assert_eq!(pieces.iter().flatten().copied().collect::<Vec<u8>>(), expected);
                let is_shared = pieces.iter().any(|piece| bytes > 0 && piece.as_ptr() == text.as_ptr());
                assert_eq!(is_shared, bytes > MAX_COPIED_BYTES);
            }
        }
    }

    #[test]
    fn a_stream_begins_with_where_it_is() {
        let begins = priming(Some(2), 5);
        assert_eq!(std::str::from_utf8(&begins).unwrap(), "id: 2-5\nretry: 1000\ndata: \n\n");
    }
}
