//! A call as a stream of server-sent events: what it says, each with a number, and at the end what it came to.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use footbridge_shared::ErrorCode;
use footbridge_shared::message::Stream as OutputStream;
use futures::{Stream, StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::invoke::{reply, token_ended};
use crate::api::calls::{OutputEvent, ProgressEvent, SkippedEvent};
use crate::dispatch::calls::{CallEntry, CallResult};
use crate::dispatch::events::{Follower, Heard};
use crate::domain::call::CallEvent;
use crate::web::error::{ApiError, ApiResult};

/// How often a silent event stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The header with which a client says what it has seen.
const LAST_EVENT_ID: &str = "last-event-id";

/// Whether the answer shall be a stream.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}

/// The number of the last event that the client has seen; 0: none.
pub(super) fn last_event_id(headers: &HeaderMap) -> ApiResult<u64> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(0) };
    let seen = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    // Behind the greatest number there is none for the end of the call.
    seen.filter(|seen| *seen < u64::MAX).ok_or_else(|| {
        ApiError::new(ErrorCode::BadRequest, "`Last-Event-ID` is no number of an event")
            .hint("send the `id` of the last event that came, or leave the header out")
    })
}

/// What a client that closes its stream does to the call.
pub(super) enum OnClose {
    /// Nothing.
    Leave,
    /// It cancels it. Harmless once the call has ended.
    Cancel(Arc<CallEntry>),
}

impl Drop for OnClose {
    fn drop(&mut self) {
        if let Self::Cancel(entry) = self {
            entry.cancel();
        }
    }
}

/// Streams a call. Nothing is read ahead: a client that does not read holds nothing here but its place.
pub(super) fn follow(follower: Follower, on_close: OnClose, token: CancellationToken) -> Response {
    let began = Instant::now();
    let events = stream::unfold(Some((follower, on_close)), move |state| {
        let token = token.clone();
        async move {
            let (mut follower, on_close) = state?;
            tokio::select! {
                biased;
                // What lives on a token ends with it.
                () = token.cancelled() => Some((end_event(None, &token_ended(), began.elapsed()), None)),
                heard = follower.next() => Some(match heard {
                    Heard::Ended { id, result, took } => (end_event(Some(id), &result, took), None),
                    heard => (said(heard), Some((follower, on_close))),
                }),
            }
        }
    });
    respond(events.map(Ok))
}

/// Streams the end of a call whose events are not known here, once it is there.
pub(super) fn end_only(id: u64, end: impl Future<Output = (CallResult, Duration)> + Send + 'static) -> Response {
    respond(stream::once(async move {
        let (result, took) = end.await;
        Ok(end_event(Some(id), &result, took))
    }))
}

fn respond(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

fn said(heard: Heard) -> Event {
    let (id, written) = match heard {
        Heard::Event { id, event: CallEvent::Progress { progress, total, message } } => {
            (id, Event::default().event("progress").json_data(ProgressEvent { progress, total, message }))
        }
        Heard::Event { id, event: CallEvent::Output { stream, data, skipped_bytes } } => {
            let stream = match stream {
                OutputStream::Stdout => "stdout",
                OutputStream::Stderr => "stderr",
            };
            let data = OutputEvent { stream: stream.to_owned(), data, skipped_bytes };
            (id, Event::default().event("output").json_data(data))
        }
        Heard::Skipped { id, events } => (id, Event::default().event("skipped").json_data(SkippedEvent { events })),
        Heard::Ended { id, result, took } => return end_event(Some(id), &result, took),
    };
    // Plain data can be written; were it not so, its number would still be told.
    written.unwrap_or_default().id(id.to_string())
}

/// The last event. Without a number when it is this stream's end and not the call's.
fn end_event(id: Option<u64>, result: &CallResult, took: Duration) -> Event {
    let event = match reply(result, took) {
        Ok(reply) => Event::default().event("result").json_data(reply).unwrap_or_else(|_| error_event(&unwritable())),
        Err(failure) => error_event(&ApiError::from(failure)),
    };
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}

fn error_event(error: &ApiError) -> Event {
    Event::default().event("error").data(serde_json::to_string(&error.0).unwrap_or_default())
}

/// A result that is no JSON: nothing that came as raw JSON can be that.
pub(super) fn unwritable() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the result could not be written")
}
