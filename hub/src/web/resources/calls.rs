//! Calls by their ids: those that run, those that ended in the last minutes, and those with a key for a day.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use footbridge_shared::ErrorCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::events::{OnClose, accepts_events, end_only, follow, last_event_id};
use super::invoke::{failed_reply, reply};
use crate::api::MAX_PAGE;
use crate::api::calls::{CallList, CallState, CallSummary, CallView};
use crate::api::problem::Problem;
use crate::dispatch::calls::{CallEntry, CallResult};
use crate::dispatch::found::Found;
use crate::domain::principal::{Principal, Role};
use crate::domain::scope::Scope;
use crate::web::body::{Named, Params};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Longest wait of one request, milliseconds.
const MAX_WAIT_MS: u64 = 60_000;

/// Lists the calls of the token's subject, the newest 1000; an admin sees everybody's.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/calls", tag = "calls",
    params(("tenant" = String, Path), ("project" = String, Path)),
    responses((status = 200, body = CallList), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
) -> Json<CallList> {
    let calls = state.dispatcher.calls().list(&scope);
    let theirs = calls.iter().filter(|call| is_theirs(call, &principal));
    let calls = theirs.take(MAX_PAGE).map(|call| summary(call)).collect();
    Json(CallList { calls })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// Wait for the end this long, milliseconds, at most 60000. Default: 0.
    wait_ms: Option<u64>,
}

/// One call, with its result once it has ended. The result is for the call's own subject; an admin sees how it ended.
///
/// With `Accept: text/event-stream` its own subject gets the events behind `Last-Event-ID`, as from the call itself.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/calls/{id}", tag = "calls",
    params(("tenant" = String, Path), ("project" = String, Path), ("id" = String, Path), Wait,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that came; absent: none")),
    responses(
        (status = 200, content((CallView = "application/json"), (String = "text/event-stream"))),
        (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(id): Named,
    Params(Wait { wait_ms }): Params<Wait>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let mut found = find(&state, &scope, &principal, &id).await?;
    if accepts_events(&headers) {
        let seen = last_event_id(&headers)?;
        if found.entry.subject != principal.subject {
            return Err(ApiError::new(ErrorCode::Forbidden, "what a call says is for its own subject"));
        }
        return Ok(match found.away() {
            None => follow(found.entry.follow(seen), OnClose::Leave, principal.ended.clone()),
            Some(left) => end_only(seen + 1, end_of_away(state, found, left)),
        });
    }
    let wait = Duration::from_millis(wait_ms.unwrap_or(0).min(MAX_WAIT_MS));
    if !wait.is_zero() {
        found = state.dispatcher.await_end(found, wait).await;
    }
    Ok(shown(&found.entry, &principal))
}

/// The end of a call that a foot has while nobody waits for it here, or that there was none in time.
async fn end_of_away(state: Arc<AppState>, found: Found, left: Duration) -> (CallResult, Duration) {
    /// How long the foot may take to come back and tell of a call whose time is over.
    const GRACE: Duration = Duration::from_secs(30);
    let found = state.dispatcher.await_end(found, left + GRACE).await;
    let unknown = || (Arc::new(Err(found.unknown())), found.entry.elapsed());
    found.entry.result().unwrap_or_else(unknown)
}

/// Cancels a call and answers how it stands a moment later. Harmless for one that has ended.
#[utoipa::path(delete, path = "/v1/{tenant}/{project}/calls/{id}", tag = "calls",
    params(("tenant" = String, Path), ("project" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = CallView), (status = "4XX", body = Problem)))]
pub(super) async fn cancel(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(id): Named,
) -> ApiResult<Response> {
    /// How long the answer waits for the tool to stop.
    const STOP_WAIT: Duration = Duration::from_secs(2);
    let found = find(&state, &scope, &principal, &id).await?;
    state.dispatcher.stop(&found);
    let found = state.dispatcher.await_end(found, STOP_WAIT).await;
    Ok(shown(&found.entry, &principal))
}

fn is_theirs(call: &CallEntry, principal: &Principal) -> bool {
    call.subject == principal.subject || principal.has(Role::Admin)
}

async fn find(state: &AppState, scope: &Scope, principal: &Principal, id: &str) -> ApiResult<Found> {
    let found = state.dispatcher.find(scope, id).await.map_err(|failure| {
        if let Some(cause) = &failure.cause {
            tracing::error!(call = id, cause, "a call could not be looked up");
        }
        let mut error = ApiError::from(failure);
        // To look at a call is none.
        error.0.outcome = None;
        error
    })?;
    found.filter(|found| is_theirs(&found.entry, principal)).ok_or_else(|| {
        ApiError::new(ErrorCode::NotFound, "there is no such call here")
            .hint("results are kept for five minutes after a call ended, those of calls with a key for a day")
    })
}

fn summary(entry: &CallEntry) -> CallSummary {
    let result = entry.result();
    let ended = result.as_ref().map(|(result, _)| match &**result {
        Ok(output) => (output.is_error, output.code),
        Err(failure) => (true, Some(failure.code)),
    });
    CallSummary {
        call: entry.call.to_string(),
        tool: entry.tool.to_string(),
        source: entry.source.as_str().to_owned(),
        subject: entry.subject.to_string(),
        process: entry.process.clone(),
        started_at: entry.started_at,
        state: if result.is_some() { CallState::Ended } else { CallState::Running },
        elapsed_ms: u64::try_from(entry.elapsed().as_millis()).unwrap_or(u64::MAX),
        is_error: ended.map(|(is_error, _)| is_error),
        code: ended.and_then(|(_, code)| code),
    }
}

/// A call as its subject sees it; for anybody else without the result.
fn shown(entry: &CallEntry, principal: &Principal) -> Response {
    let ended = entry.result().filter(|_| entry.subject == principal.subject);
    let result = ended.as_ref().map(|(result, took)| {
        // Here a call that did not run is a result like any other: the request for it went well.
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        reply(result, *took).unwrap_or_else(|failure| failed_reply(&failure, millis))
    });
    Json(CallView { summary: summary(entry), result }).into_response()
}
