//! The scripted server on streamable HTTP.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use futures::{StreamExt as _, stream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::log;
use super::message::Message;
use super::server::{From, Server, Tasks};
use crate::Result;
use crate::bench::say;

const SESSION: &str = "mcp-session-id";

struct Site {
    server: Arc<Server>,
    tasks: Mutex<Tasks>,
    /// Calls that each session made.
    sessions: Mutex<HashMap<String, usize>>,
    opened: AtomicUsize,
    calls: AtomicUsize,
}

/// Listens, and says where.
///
/// # Errors
/// When it cannot listen, or there is no script.
pub async fn run(folder: PathBuf, address: &str) -> Result<()> {
    let server = Arc::new(Server::new(folder)?);
    let listener = TcpListener::bind(address).await?;
    say(&format!("listening on http://{}/mcp", listener.local_addr()?));
    if server.script.silent {
        return keep_silent(&server, listener).await;
    }
    let site = Site {
        tasks: Mutex::new(Tasks::new(server.clone())),
        server,
        sessions: Mutex::default(),
        opened: AtomicUsize::default(),
        calls: AtomicUsize::default(),
    };
    let app = Router::new().route("/mcp", post(posted).get(listen).delete(ended)).with_state(Arc::new(site));
    let listener = listener.tap_io(|socket| {
        // Without it a small answer may wait for an acknowledgement.
        let _ = socket.set_nodelay(true);
    });
    Ok(axum::serve(listener, app).await?)
}

/// Accepts, and never reads or writes.
async fn keep_silent(server: &Server, listener: TcpListener) -> Result<()> {
    let mut held = Vec::new();
    loop {
        let (socket, from) = listener.accept().await?;
        server.log.event(log::CONNECTED, &from.to_string());
        held.push(socket);
    }
}

impl Site {
    /// Whether a message may come in this session, and counts the calls of it.
    fn admit(&self, session: &str, is_call: bool) -> bool {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let number: usize = session.strip_prefix("s-").and_then(|number| number.parse().ok()).unwrap_or_default();
        let Some(calls) = sessions.get_mut(session) else { return false };
        let lives_for = number.checked_sub(1).and_then(|index| self.server.script.forgets_after.get(index));
        if lives_for.is_some_and(|lives_for| *calls >= *lives_for && (is_call || *calls > 0)) {
            return false;
        }
        *calls += usize::from(is_call);
        true
    }
}

async fn posted(State(site): State<Arc<Site>>, headers: HeaderMap, text: String) -> Response {
    let Ok(message) = Message::parse(&text) else { return StatusCode::BAD_REQUEST.into_response() };
    let method = message.method.as_deref().unwrap_or_default();
    let is_call = method == "tools/call";
    let mut session = headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let from = |session: Option<String>| From {
        session,
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
    };
    if let Some(session) = &session
        && !site.admit(session, is_call)
    {
        site.server.log.event("forgotten", session);
        return StatusCode::NOT_FOUND.into_response();
    }
    if is_call {
        let turn = site.calls.fetch_add(1, Ordering::Relaxed);
        let status = site.server.script.statuses.get(turn).copied().unwrap_or_default();
        if let Ok(status) = StatusCode::from_u16(status) {
            site.server.log.event("refused", &text);
            return status.into_response();
        }
    }
    if method == "initialize" {
        let opened = format!("s-{}", site.opened.fetch_add(1, Ordering::Relaxed) + 1);
        site.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(opened.clone(), 0);
        // The log shows what came with the request: no session.
        let answer = answer(&site, text, from(session.take())).await;
        return ([(SESSION, opened)], answer).into_response();
    }
    if message.id.is_none() || message.method.is_none() {
        let (out, _) = mpsc::unbounded_channel();
        site.server.handle(&text, from(session), out).await;
        return StatusCode::ACCEPTED.into_response();
    }
    answer(&site, text, from(session)).await
}

/// One message is answered as JSON, more as a stream of events.
async fn answer(site: &Site, text: String, from: From) -> Response {
    let (out, mut messages) = mpsc::unbounded_channel();
    site.tasks.lock().unwrap_or_else(PoisonError::into_inner).handle(text, from, out);
    match messages.recv().await {
        Some(first) if Message::parse(&first).is_ok_and(|message| message.method.is_none()) => {
            ([("content-type", "application/json")], first).into_response()
        }
        Some(first) => events(stream::iter([first]).chain(stream::poll_fn(move |context| messages.poll_recv(context)))),
        // It never answers; nor does it end the connection.
        None if site.server.script.mute => std::future::pending().await,
        None => events(stream::empty()),
    }
}

fn events(messages: impl futures::Stream<Item = String> + Send + 'static) -> Response {
    let events = messages.map(|message| Ok::<_, Infallible>(format!("event: message\ndata: {message}\n\n")));
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

/// What belongs to no request.
async fn listen(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let known = headers
        .get(SESSION)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|session| site.sessions.lock().unwrap_or_else(PoisonError::into_inner).contains_key(session));
    if !known {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let general = site.server.general.subscribe();
    events(stream::unfold(general, |mut general| async move { general.recv().await.ok().map(|told| (told, general)) }))
}

async fn ended(State(site): State<Arc<Site>>, headers: HeaderMap) -> StatusCode {
    if let Some(session) = headers.get(SESSION).and_then(|value| value.to_str().ok()) {
        site.server.log.event("ended", session);
        site.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }
    StatusCode::NO_CONTENT
}
