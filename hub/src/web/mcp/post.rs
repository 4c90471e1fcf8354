//! POST: messages of the client.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::{Fields, Raw, RpcError, Version, codes, meta as names};
use footbridge_shared::ErrorCode;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tokio::sync::mpsc;

use super::client::{Client, MAX_ASKS, Stated, Way};
use super::hello::{Hello, session_version};
use super::message::{self, Body, Incoming, JSON, MAX_CAPABILITIES_BYTES, Refusal, Request, response_text};
use super::mode::{self, Mode, SESSION_HEADER};
use super::peer::{Peer, View};
use super::serve::{Accepts, Answers, cut_off, serve};
use super::session::Session;
use super::stream::Stream;
use super::tickets::{About, Asked, result_or_question};
use super::work::{Orphan, Work};
use super::{Query, methods, subscribe, tools};
use crate::domain::call::Caller;
use crate::domain::mcp::McpServer;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::bodies::Place;
use crate::web::body::{Params, Whole};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Whoever posts.
struct Sender {
    state: Arc<AppState>,
    scope: Arc<Scope>,
    principal: Arc<Principal>,
    view: View,
    found: Option<Arc<dyn McpServer>>,
    accepts: Accepts,
    body: Place,
}

impl Sender {
    fn peer(&self, version: Version, session: Option<Arc<Session>>) -> Arc<Peer> {
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
        Body::Batch(batch) => Ok(many(&sender, &headers, session, batch).await),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

fn named_session(sender: &Sender, headers: &HeaderMap) -> ApiResult<Option<Arc<Session>>> {
    let Some(id) = headers.get(SESSION_HEADER) else { return Ok(None) };
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
            if let Some(id) = id {
                session.answered(&id, outcome);
            }
            Ok(StatusCode::ACCEPTED.into_response())
        }
        (Incoming::Response { .. }, _) => {
            let error = RpcError::new(codes::INVALID_REQUEST, "without a session nothing was asked");
            Ok(Refusal::bad(error).into_response())
        }
    }
}

fn notified(session: &Session, method: &str, params: &Fields) {
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
        Err(error) => return Ok(answer_now(&peer, sender.accepts, response_text(&request.id, &Err(error))).await),
    };
    let scope = sender.scope.clone();
    let session = state.mcp.sessions().open(scope, &sender.principal, version, capabilities, sender.view.clone())?;
    let text = response_text(&request.id, &Ok(hello.initialized(version)));
    let mut response = answer_now(&peer, sender.accepts, text).await;
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(HeaderName::from_static(SESSION_HEADER), id);
    }
    Ok(response)
}

/// An answer that is there.
async fn answer_now(peer: &Peer, accepts: Accepts, text: String) -> Response {
    let ready = std::future::ready(Answers::one(Some(text)));
    serve(peer, accepts, Arc::new(Stream::default()), Vec::new(), ready.boxed()).await
}

/// The token under which the client wants to hear of progress, if it can.
fn progress(accepts: Accepts, meta: &Fields) -> Option<Raw> {
    meta.get(names::PROGRESS_TOKEN).filter(|_| accepts.events).cloned()
}

/// A request in a session: `None` if it was cancelled.
fn in_session(
    peer: &Arc<Peer>,
    accepts: Accepts,
    stream: &Arc<Stream>,
    request: Request,
) -> BoxFuture<'static, Option<String>> {
    let Some(session) = peer.session.clone() else { return std::future::ready(None).boxed() };
    let running = match session.begin(&request.id) {
        Ok(running) => running,
        Err(error) => return std::future::ready(Some(response_text(&request.id, &Err(error)))).boxed(),
    };
    let stated = Stated { progress: progress(accepts, &request.meta), ..Stated::default() };
    let way = if accepts.events { Way::Session(session) } else { Way::Nobody };
    let client = Client::new(peer, way, stated, stream.clone());
    let (peer, hard) = (peer.clone(), peer.state.lifecycle.hard().clone());
    async move {
        let Request { id, method, params, meta } = request;
        tokio::select! {
            biased;
            () = running.stop.cancelled() => None,
            outcome = methods::answer(peer, client, &method, params, meta) => Some(response_text(&id, &outcome)),
            () = hard.cancelled() => Some(response_text(&id, &Err(cut_off()))),
        }
    }
    .boxed()
}

/// A request of a version with sessions, without one.
fn alone(
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
        Some(response_text(&id, &outcome))
    }
    .boxed()
}

/// A request of a version without sessions.
async fn stateless(peer: Arc<Peer>, accepts: Accepts, headers: &HeaderMap, request: Request) -> Response {
    if request.method == "subscriptions/listen" {
        return subscribe::subscribe(peer.lasting(), accepts, request).await;
    }
    if request.method == "tools/call"
        && let Err(error) = tools::check_headers(&peer, headers, &request.params).await
    {
        return Refusal::to(&request.id, error).into_response();
    }
    let stream = Arc::new(Stream::default());
    let asked = vec![request.id.clone()];
    let begun = begin(&peer, accepts, &stream, request);
    serve(&peer, accepts, stream, asked, begun).await
}

/// Begins a request, or goes on with one that waited for its client.
fn begin(peer: &Arc<Peer>, accepts: Accepts, stream: &Arc<Stream>, request: Request) -> BoxFuture<'static, Answers> {
    let Request { id, method, params, meta } = request;
    let name = params.read::<String>("name").or_else(|| params.read("uri"));
    let about = About {
        scope: peer.scope.clone(),
        subject: peer.caller.subject.clone(),
        view: peer.view.clone(),
        method: method.clone(),
        name: name.map(|name| blake3::hash(name.as_bytes())),
    };
    let progress = progress(accepts, &meta);
    let (tickets, token) = (peer.state.mcp.tickets(), peer.principal.ended.clone());
    let waited = match params.read::<String>("requestState").filter(|state| tickets.is_ticket(state)) {
        None => None,
        Some(state) => match tickets.take(&state, &about) {
            Some(asked) => Some(asked),
            None => {
                let error = RpcError::new(codes::INVALID_PARAMS, "`requestState` is none that waits here (any more)");
                return std::future::ready(stateless_answer(&id, Err(error))).boxed();
            }
        },
    };
    let asked = match waited {
        Some(mut asked) => {
            let responses = params.get("inputResponses").and_then(|raw| Fields::of(raw)).unwrap_or_default();
            asked.client.attach(stream.clone(), progress);
            asked.answer(&responses);
            asked
        }
        None => {
            let stated = Stated { capabilities: mode::capabilities(&meta), level: mode::log_level(&meta), progress };
            let (tell, asks) = mpsc::channel(MAX_ASKS);
            let can_be_asked = matches!(method.as_str(), "tools/call" | "prompts/get" | "resources/read");
            let way = if can_be_asked { Way::Answer(tell) } else { Way::Nobody };
            let client = Client::new(peer, way, stated, stream.clone());
            let answer = {
                let (peer, client, token) = (peer.clone(), client.clone(), token.clone());
                async move {
                    let answer = async {
                        let result = methods::answer(peer, client.clone(), &method, params, meta).await?;
                        Ok(client.named_result(result).await)
                    };
                    // It may wait for its client for long, and nobody else watches the token meanwhile.
                    tokio::select! {
                        biased;
                        answer = answer => answer,
                        () = token.cancelled() => Err(RpcError::new(codes::INTERNAL_ERROR, "the token has ended")),
                    }
                }
                .boxed()
            };
            let work = Work::new(answer, Orphan::Stops, peer.state.lifecycle.clone());
            Asked::begin(work, client, asks, token)
        }
    };
    let peer = peer.clone();
    async move {
        match result_or_question(peer.state.mcp.tickets(), about, asked).await {
            Some(outcome) => stateless_answer(&id, outcome),
            None => Answers::one(None),
        }
    }
    .boxed()
}

/// An answer with the status that goes with it.
fn stateless_answer(id: &footbridge_mcp::RequestId, outcome: Result<Raw, RpcError>) -> Answers {
    let status = match &outcome {
        Err(error) if error.code == codes::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        // Versions, capabilities and headers that do not fit.
        Err(error)
            if [codes::HEADER_MISMATCH, codes::MISSING_CAPABILITY, codes::UNSUPPORTED_VERSION]
                .contains(&error.code) =>
        {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    Answers { status, ..Answers::one(Some(response_text(id, &outcome))) }
}

/// A batch, as 2025-03-26 has it.
async fn many(
    sender: &Sender,
    headers: &HeaderMap,
    session: Option<Arc<Session>>,
    batch: Vec<Result<Incoming, Refusal>>,
) -> Response {
    let version = match (&session, mode::header_version(headers)) {
        (Some(session), _) => Some(session.version),
        (None, Ok(None)) => Some(Version::V2025_03_26),
        (None, Ok(Some(version))) => Version::parse(version),
        (None, Err(_)) => None,
    };
    if version != Some(Version::V2025_03_26) {
        let error = RpcError::new(codes::INVALID_REQUEST, "this version has no batches");
        return Refusal::bad(error).into_response();
    }
    let peer = sender.peer(Version::V2025_03_26, session.clone());
    let stream = Arc::new(Stream::default());
    let (mut works, mut asked) = (Vec::new(), Vec::new());
    for message in batch {
        match message {
            Err(Refusal { id, error, .. }) => {
                let text = id
                    .map_or_else(|| message::unnamed_error_text(&error), |id| response_text(&id, &Err(error.clone())));
                works.push(std::future::ready(Some(text)).boxed());
            }
            Ok(Incoming::Request(request)) if request.method == "initialize" => {
                let error = RpcError::new(codes::INVALID_REQUEST, "`initialize` stands alone");
                works.push(std::future::ready(Some(response_text(&request.id, &Err(error)))).boxed());
            }
            Ok(Incoming::Request(request)) if session.is_some() => {
                asked.push(request.id.clone());
                works.push(in_session(&peer, sender.accepts, &stream, request));
            }
            Ok(Incoming::Request(request)) => {
                asked.push(request.id.clone());
                works.push(alone(&peer, sender.accepts, &stream, request));
            }
            Ok(Incoming::Notification { method, params }) => {
                if let Some(session) = &session {
                    notified(session, &method, &params);
                }
            }
            Ok(Incoming::Response { id, outcome }) => {
                if let (Some(session), Some(id)) = (&session, id) {
                    session.answered(&id, outcome);
                }
            }
        }
    }
    if works.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let all = join_all(works).map(|texts| Answers {
        texts: texts.into_iter().flatten().collect(),
        batch: true,
        status: StatusCode::OK,
    });
    serve(&peer, sender.accepts, stream, asked, all.boxed()).await
}
