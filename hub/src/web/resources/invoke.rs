//! A direct call: JSON, or server-sent events while it runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use footbridge_shared::id::CallId;
use footbridge_shared::{ErrorCode, Outcome};

use super::events::{OnClose, accepts_events, follow, last_event_id, unwritable};
use crate::api::calls::{InvokeReply, InvokeRequest};
use crate::api::problem::Problem;
use crate::api::{CALL_HEADER, IDEMPOTENCY_KEY_HEADER, REPLAYED_HEADER};
use crate::dispatch::calls::CallResult;
use crate::dispatch::{CallRequest, RunningCall};
use crate::domain::arguments::Arguments;
use crate::domain::call::Caller;
use crate::domain::failure::Failure;
use crate::domain::key::IdempotencyKey;
use crate::domain::output::{ToolOutput, text_content};
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::body::{Json, Named};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Calls a tool. A client that goes away cancels the call, unless it has an idempotency key.
///
/// Answers 200 also when the tool failed (`isError`); a call that certainly did not run is a problem document. With
/// `Accept: text/event-stream` the answer is a stream of the events `progress`, `output`, `skipped`, and at the end
/// `result`, or `error` with a problem document. With `Idempotency-Key` the call happens at most once in 24 hours, however
/// often it is asked for: a call that runs is joined, one that ended is answered as it was.
#[utoipa::path(post, path = "/v1/{tenant}/{project}/tools/{name}/invoke", tag = "tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 printable ASCII characters"),
        ("Last-Event-ID" = Option<String>, Header, description = "With a key: the `id` of the last event that came of it")),
    request_body = InvokeRequest,
    responses(
        (status = 200, content((InvokeReply = "application/json"), (String = "text/event-stream")),
            headers(("Footbridge-Call" = String, description = "The id of the call"),
                ("Footbridge-Replayed" = String, description = "`true`: the stored end of an earlier try with the same key"))),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn invoke(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    headers: HeaderMap,
    body: ApiResult<Json<InvokeRequest>>,
) -> ApiResult<Response> {
    let Json(body) = body.map_err(ApiError::not_run)?;
    let key = key(&headers).map_err(ApiError::not_run)?;
    let seen = last_event_id(&headers).map_err(ApiError::not_run)?;
    let caller = Arc::new(Caller::of(&principal));
    let id_of_key = key.as_ref().map(|key| key.call_id(&scope, &caller));
    let started = state
        .dispatcher
        .start(CallRequest {
            scope,
            caller,
            name,
            arguments: body.arguments.map_or_else(Arguments::empty, Arguments::new),
            timeout: body.timeout_ms.map(|ms| Duration::from_millis(ms.get())),
            max_timeout: body.max_timeout_ms.map(|ms| Duration::from_millis(ms.get())),
            key,
            client: None,
            extra: None,
        })
        .await;
    let running = match started {
        Ok(running) => running,
        // Of an earlier try: it may have run, so this is a result like that of any call that was cut off.
        Err(failure) if failure.outcome != Outcome::NotRun => {
            return Ok(named(json_reply(&Arc::new(Err(failure)), Duration::ZERO), id_of_key.as_ref()));
        }
        Err(failure) => return Err(failure.into()),
    };
    let (call, replayed) = (running.entry().call.clone(), running.is_replayed());
    let response =
        if accepts_events(&headers) { streamed(running, seen, &principal) } else { whole(running, &principal).await };
    let mut response = named(response, Some(&call));
    if replayed {
        response.headers_mut().insert(HeaderName::from_static(REPLAYED_HEADER), HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// An answer that names its call.
fn named(mut response: Response, call: Option<&CallId>) -> Response {
    if let Some(call) = call.and_then(|call| HeaderValue::from_str(call.as_str()).ok()) {
        response.headers_mut().insert(HeaderName::from_static(CALL_HEADER), call);
    }
    response
}

/// The answer when the call has ended.
async fn whole(running: RunningCall, principal: &Principal) -> Response {
    let began = Instant::now();
    tokio::select! {
        (result, took) = running.wait() => json_reply(&result, took),
        // What lives on a token ends with it: dropping the call cancels it, unless it has a key.
        () = principal.ended.cancelled() => json_reply(&token_ended(), began.elapsed()),
    }
}

/// The answer while the call runs. A stream is read at the reader's pace, and the call must not wait for that.
fn streamed(running: RunningCall, seen: u64, principal: &Principal) -> Response {
    let follower = running.entry().follow(seen);
    let entry = running.detach();
    let on_close = if entry.keyed.is_some() { OnClose::Leave } else { OnClose::Cancel(entry) };
    follow(follower, on_close, principal.ended.clone())
}

/// The key with which a client makes a call repeatable.
fn key(headers: &HeaderMap) -> ApiResult<Option<IdempotencyKey>> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY_HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wrong = |detail: String| {
        Err(ApiError::new(ErrorCode::BadRequest, detail)
            .hint("a random id for each call that you mean, the same for each try of it"))
    };
    if values.next().is_some() {
        return wrong("`Idempotency-Key` stands twice".to_owned());
    }
    match IdempotencyKey::parse(value.to_str().unwrap_or_default()) {
        Ok(key) => Ok(Some(key)),
        Err(error) => wrong(error.to_string()),
    }
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
pub(super) fn reply(result: &CallResult, took: Duration) -> Result<InvokeReply<'_>, Failure> {
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match &**result {
        Ok(ToolOutput { content, structured, is_error, meta, code, hint, extra: _ }) => Ok(InvokeReply {
            content: Cow::Borrowed(content),
            structured: structured.as_deref().map(Cow::Borrowed),
            is_error: *is_error,
            meta: meta.as_deref().map(Cow::Borrowed),
            code: *code,
            hint: hint.as_deref().map(Cow::Borrowed),
            outcome: is_error.then_some(Outcome::Completed),
            duration_ms,
        }),
        Err(failure) if failure.outcome == Outcome::NotRun => Err(failure.clone()),
        Err(failure) => Ok(failed_reply(failure, duration_ms)),
    }
}

/// The body for a call that gave no result.
pub(super) fn failed_reply(failure: &Failure, duration_ms: u64) -> InvokeReply<'static> {
    InvokeReply {
        content: Cow::Owned(text_content(&failure.message)),
        structured: None,
        is_error: true,
        meta: None,
        code: Some(failure.code),
        hint: failure.hint.clone().map(Cow::Owned),
        outcome: Some(failure.outcome),
        duration_ms,
    }
}

/// The tool had begun, so this is a result like that of any call that was cut off: it may have run.
pub(super) fn token_ended() -> CallResult {
    Arc::new(Err(Failure::new(ErrorCode::Unauthorized, Outcome::Unknown, "the token ended while the call ran")))
}
