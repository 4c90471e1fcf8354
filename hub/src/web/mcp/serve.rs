//! How a request is answered over HTTP: as JSON when nothing but its answer is to be said, else as a stream.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::headers::{EVENT_STREAM, JSON};
use footbridge_mcp::{RequestId, RpcError, response_text};
use footbridge_shared::{ErrorCode, Outcome};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::message::json_response;
use super::peer::{Peer, rpc_error};
use super::sse::{Showing, respond};
use super::stream::{Reader, Stream};
use super::work::{Orphan, Work};
use crate::domain::failure::Failure;
use crate::web::error::ApiError;

/// After how long a silent request becomes a stream: what waits between client and hub then sees that it lives.
const OPEN_AFTER: Duration = Duration::from_secs(5);
/// The same in a session, where a client that loses its connection can come back to the stream for the answer. What takes
/// less is answered as JSON, which costs less.
const OPEN_RESUMABLE_AFTER: Duration = Duration::from_millis(50);

/// What a client can read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// As its header says; without one it takes anything.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self { json: !headers.contains_key(ACCEPT), events: !headers.contains_key(ACCEPT) };
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for part in values.flat_map(|value| value.split(',')) {
            let mut words = part.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default();
            let refused = words.any(|word| {
                let weight = word.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
                weight.is_some_and(|weight| weight <= 0.0)
            });
            if refused {
                continue;
            }
            let is = |name: &str| kind.eq_ignore_ascii_case(name);
            accepts.json |= is(JSON) || is("application/*") || is("*/*");
            accepts.events |= is(EVENT_STREAM) || is("text/*") || is("*/*");
        }
        accepts
    }
}

/// The answers to what was posted.
pub(super) struct Answers {
    pub(super) texts: Vec<String>,
    /// Whether they go in an array, however many there are.
    pub(super) batch: bool,
    pub(super) status: StatusCode,
}

impl Answers {
    /// One answer, or none when the request was cancelled.
    pub(super) fn one(text: Option<String>) -> Self {
        Self { texts: text.into_iter().collect(), batch: false, status: StatusCode::OK }
    }

    /// The answers to requests that the end of the hub cuts off.
    fn cut_off(asked: &[RequestId]) -> Self {
        let error = cut_off();
        let texts = asked.iter().map(|id| response_text(Some(id), Err(&error))).collect();
        Self { texts, batch: false, status: StatusCode::OK }
    }

    fn into_json(mut self) -> Response {
        if self.batch && !self.texts.is_empty() {
            return json_response(self.status, format!("[{}]", self.texts.join(",")));
        }
        match self.texts.pop() {
            Some(text) => json_response(self.status, text),
            // Whoever cancelled it waits for no answer.
            None => StatusCode::ACCEPTED.into_response(),
        }
    }
}

/// Does the work, and answers with what comes of it. What is written to `stream` meanwhile comes first.
pub(super) async fn serve(
    peer: &Peer,
    accepts: Accepts,
    stream: Arc<Stream>,
    asked: Vec<RequestId>,
    work: BoxFuture<'static, Answers>,
) -> Response {
    let unopened = Unopened(Some(stream.clone()));
    // Without a session the client's connection is all that there is of it.
    let (orphan, open_after) = match peer.session {
        Some(_) => (Orphan::GoesOn, OPEN_RESUMABLE_AFTER),
        None => (Orphan::Stops, OPEN_AFTER),
    };
    let lifecycle = &peer.state.lifecycle;
    let mut work = Work::new(work, orphan, lifecycle.clone());
    if accepts.json {
        tokio::select! {
            biased;
            answers = work.outcome() => {
                let Some(answers) = answers else { return draining() };
                if stream.is_unused() || !accepts.events || answers.status != StatusCode::OK {
                    return answers.into_json();
                }
                finish(&stream, answers);
            }
            () = stream.first(), if accepts.events => {}
            () = tokio::time::sleep(open_after), if accepts.events => {}
            () = peer.principal.ended.cancelled() => return token_ended(),
            () = lifecycle.hard().cancelled() => return draining(),
        }
    }
    unopened.opens();
    let token = peer.principal.ended.clone();
    if let Some(session) = &peer.session {
        session.open(&stream);
    }
    let gone = CancellationToken::new();
    let guard = (orphan == Orphan::Stops).then(|| gone.clone().drop_guard());
    if !stream.has_ended() {
        let (written, hard, session) = (stream.clone(), lifecycle.hard().clone(), peer.session.clone());
        lifecycle.spawn_work(async move {
            tokio::select! {
                biased;
                answers = work.outcome() => finish(&written, answers.unwrap_or_else(|| Answers::cut_off(&asked))),
                () = gone.cancelled() => {}
                () = hard.cancelled() => finish(&written, Answers::cut_off(&asked)),
            }
            if let Some(session) = session {
                session.make_room();
            }
        });
    }
    let primed = peer.session.as_ref().is_some_and(|session| session.primes());
    respond(Showing { reader: Reader { stream, seen: 0 }, primed, token, until: None, feed: None, _guard: guard })
}

fn finish(stream: &Stream, answers: Answers) {
    for text in answers.texts {
        stream.send(text);
    }
    stream.end();
}

/// A stream that nobody has been shown yet. If that stays so, for its client has hung up, nobody reads what is asked there.
struct Unopened(Option<Arc<Stream>>);

impl Unopened {
    fn opens(mut self) {
        self.0 = None;
    }
}

impl Drop for Unopened {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            stream.end();
        }
    }
}

/// The end of the hub cut off what ran.
fn stopped() -> Failure {
    Failure::new(ErrorCode::Draining, Outcome::Unknown, "the hub went down while the request ran")
        .hint("see whether it was done before you send it again")
}

/// The same as an answer to a request.
pub(super) fn cut_off() -> RpcError {
    rpc_error(&stopped())
}

fn draining() -> Response {
    ApiError::from(stopped()).into_response()
}

fn token_ended() -> Response {
    ApiError::new(ErrorCode::Unauthorized, "the token ended while the request ran").into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_stream_that_nobody_was_shown_ends() {
        let (left, opened) = (Arc::new(Stream::default()), Arc::new(Stream::default()));
        drop(Unopened(Some(left.clone())));
        Unopened(Some(opened.clone())).opens();
        assert!(left.has_ended() && !opened.has_ended());
    }

    #[test]
    fn each_request_that_is_cut_off_has_an_answer() {
        let cut_off = Answers::cut_off(&[RequestId::number(1), RequestId::number(2)]);
        for (text, id) in cut_off.texts.iter().zip(1..=2) {
            let answer: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(answer["id"], id);
            assert_eq!(answer["error"]["data"]["code"], "draining");
            assert_eq!(answer["error"]["data"]["outcome"], "unknown");
        }
        assert_eq!(cut_off.texts.len(), 2);
    }

    #[test]
    fn what_a_client_accepts_is_read_with_its_weights() {
        for (accept, json, events) in [
            ("application/json, text/event-stream", true, true),
            ("text/event-stream;q=0.5", false, true),
            ("application/json;q=0, text/event-stream", false, true),
            ("*/*", true, true),
            ("text/html", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            let accepts = Accepts::of(&headers);
            assert_eq!((accepts.json, accepts.events), (json, events), "{accept}");
        }
    }
}
