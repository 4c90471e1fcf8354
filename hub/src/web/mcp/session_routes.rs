//! GET and DELETE: what belongs to a session and to no message.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::call_text;
use footbridge_mcp::headers::{LAST_EVENT_ID, SESSION_ID};
use footbridge_shared::ErrorCode;
use futures::FutureExt as _;

use super::listen::{Listener, Wanted};
use super::message::Refusal;
use super::mode;
use super::peer::Peer;
use super::serve::Accepts;
use super::session::Session;
use super::sse::{Showing, place, respond};
use super::stream::Reader;
use super::{Query, session_of};
use crate::domain::call::Caller;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::bodies::Place;
use crate::web::body::Params;
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

async fn session(
    state: &Arc<AppState>,
    scope: &Arc<Scope>,
    principal: &Principal,
    query: &Query,
    headers: &HeaderMap,
    with_sessions: bool,
) -> ApiResult<Arc<Session>> {
    let (view, _) = query.view(state, scope, principal).await?;
    let Some(id) = headers.get(&SESSION_ID).filter(|_| with_sessions) else {
        return Err(ApiError::new(
            ErrorCode::MethodNotAllowed,
            "this is for sessions: the header Mcp-Session-Id is missing",
        )
        .hint("`initialize` opens a session"));
    };
    session_of(state, scope, principal, &view, id)
}

/// Streams what belongs to no request, or the rest of a stream that was lost.
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Params(query): Params<Query>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    if !Accepts::of(&headers).events {
        return Ok(super::not_acceptable("text/event-stream"));
    }
    let with_sessions = match mode::check_version(&headers) {
        Ok(with_sessions) => with_sessions,
        Err(error) => return Ok(Refusal::bad(error).into_response()),
    };
    let session = session(&state, &scope, &principal, &query, &headers, with_sessions).await?;
    session.touch();
    let unknown = || {
        ApiError::new(ErrorCode::BadRequest, "`Last-Event-ID` is of no stream that is kept")
            .hint("leave it out to hear what comes from now on; a request whose answer was lost has to be sent again")
    };
    let mut seen = None;
    if let Some(last) = headers.get(&LAST_EVENT_ID) {
        let (number, event) = last.to_str().ok().and_then(place).ok_or_else(unknown)?;
        if number > 0 {
            let stream = session.stream(number).filter(|stream| event <= stream.last()).ok_or_else(unknown)?;
            let reader = Reader { stream, seen: event };
            let token = principal.ended.clone();
            // It ends with its answer, also when the session does.
            return Ok(respond(Showing {
                reader,
                primed: session.primes(),
                token,
                until: None,
                feed: None,
                _guard: (),
            }));
        }
        seen = Some(event);
    }
    let (stream, until, guard) = session.listen();
    let last = stream.last();
    // Who says nothing of what it has seen begins now.
    let seen = seen.unwrap_or(last);
    if seen > last {
        return Err(unknown());
    }
    let primed = session.primes();
    let token = principal.ended.clone();
    let peer = Arc::new(Peer {
        state,
        scope,
        caller: Arc::new(Caller::of(&principal)),
        principal,
        version: session.version,
        view: session.view.clone(),
        // It listens for long: servers come and go meanwhile.
        found: None,
        session: Some(session),
        body: Place::default(),
    });
    let (soft, told, stop) = (peer.state.lifecycle.soft().clone(), stream.clone(), until.clone());
    let mut listener = Listener::started(peer, Wanted::lists()).await;
    let feed = async move {
        loop {
            tokio::select! {
                () = soft.cancelled() => break,
                (method, params) = listener.next() => told.tell(call_text(None, &method, Some(&params))),
            }
        }
        stop.cancel();
    };
    let reader = Reader { stream, seen };
    let until = Some(until);
    Ok(respond(Showing { reader, primed, token, until, feed: Some(feed.boxed()), _guard: guard }))
}

/// Ends a session.
pub(super) async fn delete(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Params(query): Params<Query>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let with_sessions = match mode::check_version(&headers) {
        Ok(with_sessions) => with_sessions,
        Err(error) => return Ok(Refusal::bad(error).into_response()),
    };
    let session = session(&state, &scope, &principal, &query, &headers, with_sessions).await?;
    state.mcp.sessions().remove(&session);
    Ok(StatusCode::NO_CONTENT.into_response())
}
