//! A direct call: JSON, or server-sent events while it runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use footbridge_shared::message::Stream as OutputStream;
use footbridge_shared::{ErrorCode, Outcome};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use crate::api::CALL_HEADER;
use crate::api::calls::{InvokeReply, InvokeRequest, OutputEvent, ProgressEvent};
use crate::api::problem::Problem;
use crate::dispatch::CallRequest;
use crate::dispatch::calls::{CallEntry, CallResult};
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallEvent, Caller, EVENT_QUEUE};
use crate::domain::failure::Failure;
use crate::domain::output::{ToolOutput, text_content};
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::body::{Json, Named};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// How often a silent event stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The header with which a client makes a call repeatable.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Calls a tool. A client that goes away cancels the call.
///
/// Answers 200 also when the tool failed (`isError`); a call that certainly did not run is a problem document. With
/// `Accept: text/event-stream` the answer is a stream of the events `progress`, `output`, and at the end `result`, or
/// `error` with a problem document.
#[utoipa::path(post, path = "/v1/{tenant}/{project}/tools/{name}/invoke", tag = "tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    request_body = InvokeRequest,
    responses(
        (status = 200, content((InvokeReply = "application/json"), (String = "text/event-stream")),
            headers(("Footbridge-Call" = String, description = "The id of the call"))),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn invoke(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    headers: HeaderMap,
    Json(body): Json<InvokeRequest>,
) -> ApiResult<Response> {
    if headers.contains_key(IDEMPOTENCY_KEY) {
        return Err(ApiError::new(ErrorCode::NotSupported, "idempotency keys are not supported yet")
            .hint("leave the header out; a call without a key runs at most once"));
    }
    let wants_events = accepts_events(&headers);
    let (sender, events) = wants_events.then(|| mpsc::channel(EVENT_QUEUE)).unzip();
    let running = state
        .dispatcher
        .start(CallRequest {
            scope,
            caller: Arc::new(Caller::of(&principal)),
            name,
            arguments: body.arguments.map_or_else(Arguments::empty, Arguments::new),
            timeout: body.timeout_ms.map(|ms| Duration::from_millis(ms.get())),
            max_timeout: body.max_timeout_ms.map(|ms| Duration::from_millis(ms.get())),
            events: sender,
        })
        .await?;
    let call = HeaderValue::from_str(running.entry().call.as_str()).ok();
    let (ended, began) = (principal.ended.clone(), Instant::now());
    let mut response = match events {
        // A stream is read at the reader's pace, and the call must not wait for that.
        Some(events) => {
            let stream = event_stream(Waiter(running.detach()), events, ended);
            Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
        }
        None => tokio::select! {
            (result, took) = running.wait() => json_reply(&result, took),
            // What lives on a token ends with it: dropping the call cancels it.
            () = ended.cancelled() => json_reply(&token_ended(), began.elapsed()),
        },
    };
    if let Some(call) = call {
        response.headers_mut().insert(HeaderName::from_static(CALL_HEADER), call);
    }
    Ok(response)
}

/// Cancels the call of a client that went away. Harmless once the call has ended.
struct Waiter(Arc<CallEntry>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}

fn json_reply(result: &CallResult, took: Duration) -> Response {
    match reply(result, took) {
        Ok(reply) => match serde_json::to_vec(&reply) {
            Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
            Err(_) => unwritable().into_response(),
        },
        Err(failure) => ApiError::from(failure).into_response(),
    }
}

/// The body for what a call came to; the failure itself when it certainly did not run.
pub(super) fn reply(result: &CallResult, took: Duration) -> Result<InvokeReply, Failure> {
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match &**result {
        Ok(ToolOutput { content, structured, is_error, meta, code, hint }) => Ok(InvokeReply {
            content: content.clone(),
            structured: structured.clone(),
            is_error: *is_error,
            meta: meta.clone(),
            code: *code,
            hint: hint.clone(),
            outcome: is_error.then_some(Outcome::Completed),
            duration_ms,
        }),
        Err(failure) if failure.outcome == Outcome::NotRun => Err(failure.clone()),
        Err(failure) => Ok(failed_reply(failure, duration_ms)),
    }
}

/// The body for a call that gave no result.
pub(super) fn failed_reply(failure: &Failure, duration_ms: u64) -> InvokeReply {
    InvokeReply {
        content: text_content(&failure.message),
        structured: None,
        is_error: true,
        meta: None,
        code: Some(failure.code),
        hint: failure.hint.clone(),
        outcome: Some(failure.outcome),
        duration_ms,
    }
}

/// The tool had begun, so this is a result like that of any call that was cut off: it may have run.
fn token_ended() -> CallResult {
    Arc::new(Err(Failure::new(ErrorCode::Unauthorized, Outcome::Unknown, "the token ended while the call ran")))
}

/// The events of a call, then its end. The waiter lives in the stream: a client that closes it cancels the call, and so does
/// the end of the token.
fn event_stream(
    waiter: Waiter,
    events: mpsc::Receiver<CallEvent>,
    ended: CancellationToken,
) -> impl Stream<Item = Result<Event, Infallible>> {
    // The sender lives in the call's context, so the channel closes when the call has ended.
    let running = ReceiverStream::new(events)
        .filter_map(|event| async move { event_of(event) })
        .take_until(ended.clone().cancelled_owned());
    let began = Instant::now();
    let end = stream::once(async move {
        tokio::select! {
            biased;
            () = ended.cancelled() => end_event(&token_ended(), began.elapsed()),
            (result, took) = waiter.0.wait() => end_event(&result, took),
        }
    });
    running.chain(end).map(Ok)
}

fn event_of(event: CallEvent) -> Option<Event> {
    match event {
        CallEvent::Progress { progress, total, message } => {
            Event::default().event("progress").json_data(ProgressEvent { progress, total, message }).ok()
        }
        CallEvent::Output { stream, data, skipped_bytes } => {
            let stream = match stream {
                OutputStream::Stdout => "stdout",
                OutputStream::Stderr => "stderr",
            };
            let data = OutputEvent { stream: stream.to_owned(), data, skipped_bytes };
            Event::default().event("output").json_data(data).ok()
        }
    }
}

fn end_event(result: &CallResult, took: Duration) -> Event {
    match reply(result, took) {
        Ok(reply) => Event::default().event("result").json_data(reply).unwrap_or_else(|_| error_event(&unwritable())),
        Err(failure) => error_event(&ApiError::from(failure)),
    }
}

fn error_event(error: &ApiError) -> Event {
    let event = Event::default().event("error");
    let text = serde_json::to_string(&error.0).unwrap_or_default();
    event.data(text)
}

fn unwritable() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the result could not be written")
}
