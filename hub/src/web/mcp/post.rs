//! POST: messages of the client.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::headers::{JSON, SESSION_ID};
use footbridge_mcp::{Fields, Raw, RpcError, Version, codes, meta as names, response_text};
use footbridge_shared::ErrorCode;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::client::{Client, Stated, Way};
use super::hello::{Hello, session_version};
use super::message::{self, Body, Incoming, MAX_CAPABILITIES_BYTES, Refusal, Request};
use super::mode::{self, Mode};
use super::peer::{Peer, View};
use super::serve::{Accepts, Answers, cut_off, serve};
use super::session::{Session, session_over};
use super::stateless::stateless;
use super::stream::Stream;
use super::{Query, batch, methods};
use crate::domain::call::Caller;
use crate::domain::mcp::McpServer;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::bodies::Place;
use crate::web::body::{Params, Whole};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Whoever posts.
pub(super) struct Sender {
    state: Arc<AppState>,
    scope: Arc<Scope>,
    principal: Arc<Principal>,
    view: View,
    found: Option<Arc<dyn McpServer>>,
    pub(super) accepts: Accepts,
    body: Place,
}

impl Sender {
    pub(super) fn peer(&self, version: Version, session: Option<Arc<Session>>) -> Arc<Peer> {
        Arc::new(Peer {
            state: self.state.clone(),
            scope: self.scope.clone(),
            principal: self.principal.clone(),
            caller: Arc::new(Caller::of(&self.principal)),
            version,
            view: self.view.clone(),
            found: self.found.clone(),
            session,
            body: self.body.clone(),
        })
    }
}

/// Takes a message, or a batch of such.
pub(super) async fn post(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Extension(place): Extension<Place>,
    Params(query): Params<Query>,
    headers: HeaderMap,
    body: ApiResult<Whole>,
) -> ApiResult<Response> {
    let Whole(body) = body?;
    let accepts = Accepts::of(&headers);
    if !accepts.json && !accepts.events {
        return Ok(super::not_acceptable("application/json, text/event-stream"));
    }
    if !is_json(&headers) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, "the body is no `application/json`"));
    }
    let (view, found) = query.view(&state, &scope, &principal).await?;
    let sender = Sender { state, scope, principal, view, found, accepts, body: place };
    let body = match message::read(&body) {
        Ok(body) => body,
        Err(refusal) => return Ok(refusal.into_response()),
    };
    let session = match mode::header_version(&headers) {
        // Without sessions the header says nothing.
        Ok(Some(version)) if version == Version::V2026_07_28.as_str() => None,
        _ => named_session(&sender, &headers)?,
    };
    match body {
        Body::One(incoming) => match mode::of(&headers, &incoming, session) {
            Ok(mode) => one(sender, &headers, mode, incoming).await,
            Err(refusal) => Ok(refusal.into_response()),
        },
        Body::Batch(batch) => Ok(batch::many(&sender, &headers, session, batch).await),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

fn named_session(sender: &Sender, headers: &HeaderMap) -> ApiResult<Option<Arc<Session>>> {
    let Some(id) = headers.get(&SESSION_ID) else { return Ok(None) };
    super::session_of(&sender.state, &sender.scope, &sender.principal, &sender.view, id).map(Some)
}

async fn one(sender: Sender, headers: &HeaderMap, mode: Mode, incoming: Incoming) -> ApiResult<Response> {
    match (incoming, mode) {
        (Incoming::Request(request), Mode::Opens) => open(&sender, request).await,
        (Incoming::Request(request), Mode::Session(session)) => {
            session.touch();
            let peer = sender.peer(session.version, Some(session));
            let stream = Arc::new(Stream::default());
            let asked = vec![request.id.clone()];
            let work = in_session(&peer, sender.accepts, &stream, request);
            Ok(serve(&peer, sender.accepts, stream, asked, work.map(Answers::one).boxed()).await)
        }
        (Incoming::Request(request), Mode::Plain(version)) => {
            let peer = sender.peer(version, None);
            let stream = Arc::new(Stream::default());
            let asked = vec![request.id.clone()];
            let work = alone(&peer, sender.accepts, &stream, request);
            Ok(serve(&peer, sender.accepts, stream, asked, work.map(Answers::one).boxed()).await)
        }
        (Incoming::Request(request), Mode::Stateless) => {
            let peer = sender.peer(Version::V2026_07_28, None);
            Ok(stateless(peer, sender.accepts, headers, request).await)
        }
        (Incoming::Notification { method, params }, mode) => {
            if let Mode::Session(session) = mode {
                notified(&session, &method, &params);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        (Incoming::Response { id, outcome }, Mode::Session(session)) => {
            session.touch();
            Ok(match id.map_or(Ok(()), |id| session.answered(&id, outcome)) {
                Ok(()) => StatusCode::ACCEPTED.into_response(),
                Err(error) => Refusal::bad(error).into_response(),
            })
        }
        (Incoming::Response { .. }, _) => {
            let error = RpcError::new(codes::INVALID_REQUEST, "without a session nothing was asked");
            Ok(Refusal::bad(error).into_response())
        }
    }
}

pub(super) fn notified(session: &Session, method: &str, params: &Fields) {
    session.touch();
    if method == "notifications/cancelled"
        && let Some(id) = params.read("requestId")
    {
        session.cancel(&id);
    }
}

/// `initialize`
async fn open(sender: &Sender, request: Request) -> ApiResult<Response> {
    let state = &sender.state;
    if state.lifecycle.soft().is_cancelled() {
        return Err(ApiError::new(ErrorCode::Draining, "the hub is going down").hint("try again shortly"));
    }
    let wanted: String = request.params.read("protocolVersion").unwrap_or_default();
    let version = session_version(&wanted);
    let peer = sender.peer(version, None);
    let capabilities = request.params.get("capabilities").filter(|raw| raw.get().starts_with('{'));
    if capabilities.is_some_and(|raw| raw.get().len() > MAX_CAPABILITIES_BYTES) {
        return Ok(Refusal::to(&request.id, message::too_many_capabilities()).into_response());
    }
    let capabilities = capabilities.cloned().unwrap_or_else(|| message::object([]));
    let hello = match Hello::of(&peer).await {
        Ok(hello) => hello,
        Err(error) => return Ok(answer_now(&peer, sender.accepts, response_text(Some(&request.id), Err(&error))).await),
    };
    let scope = sender.scope.clone();
    let session = state.mcp.sessions().open(scope, &sender.principal, version, capabilities, sender.view.clone())?;
    let text = response_text(Some(&request.id), Ok(&hello.initialized(version)));
    let mut response = answer_now(&peer, sender.accepts, text).await;
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION_ID.clone(), id);
    }
    Ok(response)
}

/// An answer that is there.
async fn answer_now(peer: &Peer, accepts: Accepts, text: String) -> Response {
    let ready = std::future::ready(Answers::one(Some(text)));
    serve(peer, accepts, Arc::new(Stream::default()), Vec::new(), ready.boxed()).await
}

/// The token under which the client wants to hear of progress, if it can.
pub(super) fn progress(accepts: Accepts, meta: &Fields) -> Option<Raw> {
    meta.get(names::PROGRESS_TOKEN).filter(|_| accepts.events).cloned()
}

/// A request in a session: `None` if it was cancelled.
pub(super) fn in_session(
    peer: &Arc<Peer>,
    accepts: Accepts,
    stream: &Arc<Stream>,
    request: Request,
) -> BoxFuture<'static, Option<String>> {
    let Some(session) = peer.session.clone() else { return std::future::ready(None).boxed() };
    let running = match session.begin(&request.id) {
        Ok(running) => running,
        Err(error) => return std::future::ready(Some(response_text(Some(&request.id), Err(&error)))).boxed(),
    };
    let stated = Stated { progress: progress(accepts, &request.meta), ..Stated::default() };
    let ended = session.ended.clone();
    let way = if accepts.events { Way::Session(session) } else { Way::Nobody };
    let client = Client::new(peer, way, stated, stream.clone());
    let (peer, hard) = (peer.clone(), peer.state.lifecycle.hard().clone());
    async move {
        let Request { id, method, params, meta } = request;
        tokio::select! {
            biased;
            () = running.stop.cancelled() => {
                ended.is_cancelled().then(|| response_text(Some(&id), Err(&session_over())))
            }
            outcome = methods::answer(peer, client, &method, params, meta) => Some(response_text(Some(&id), outcome.as_deref())),
            () = hard.cancelled() => Some(response_text(Some(&id), Err(&cut_off()))),
        }
    }
    .boxed()
}

/// A request of a version with sessions, without one.
pub(super) fn alone(
    peer: &Arc<Peer>,
    accepts: Accepts,
    stream: &Arc<Stream>,
    request: Request,
) -> BoxFuture<'static, Option<String>> {
    let stated = Stated { progress: progress(accepts, &request.meta), ..Stated::default() };
    let client = Client::new(peer, Way::Nobody, stated, stream.clone());
    let peer = peer.clone();
    async move {
        let Request { id, method, params, meta } = request;
        let outcome = methods::answer(peer, client, &method, params, meta).await;
        Some(response_text(Some(&id), outcome.as_deref()))
    }
    .boxed()
}
