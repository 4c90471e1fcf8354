//! `subscriptions/listen`: how clients without a session hear of changes.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use footbridge_mcp::{Fields, Raw, RequestId, RpcError, call_text, codes, meta as names, response_text};
use futures::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::client::{Client, Stated, Way};
use super::hello::{offers, own_info};
use super::listen::{Listener, Wanted};
use super::message::{Refusal, Request};
use super::methods::ask;
use super::peer::{Peer, View};
use super::resources;
use super::serve::Accepts;
use super::session::{MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS};
use super::sse::{Showing, respond};
use super::stream::{Reader, Stream};
use crate::domain::mcp::{ListKind, McpServer};
use crate::lifecycle::Lifecycle;

/// Answers with a stream that lasts until the client closes it, or the hub goes down.
pub(super) async fn subscribe(peer: Arc<Peer>, accepts: Accepts, request: Request) -> Response {
    if !accepts.events {
        return super::not_acceptable("text/event-stream");
    }
    let Some(asked) = request.params.get("notifications").and_then(|raw| Fields::of(raw)) else {
        let error = RpcError::new(codes::INVALID_PARAMS, "`notifications` is missing");
        return Refusal::to(&request.id, error).into_response();
    };
    let (listener, guard) = match accept(&peer, &asked).await {
        Ok(accepted) => accepted,
        Err(error) => return Refusal::to(&request.id, error).into_response(),
    };
    // It lasts, and of what it said no more than this does.
    peer.body.shrink(listener.wanted().bytes());
    let stream = Arc::new(Stream::default());
    let accepted = accepted(listener.wanted());
    let mut params = Fields::new();
    params.set("notifications", accepted);
    stream.send(tagged("notifications/subscriptions/acknowledged", &request.id, params));
    let token = peer.principal.ended.clone();
    let soft = peer.state.lifecycle.soft().clone();
    let feed = feed(soft, listener, request.id, stream.clone()).boxed();
    respond(Showing {
        reader: Reader { stream, seen: 0 },
        primed: false,
        token,
        until: None,
        feed: Some(feed),
        _guard: guard,
    })
}

/// Listens to what of it can be heard, and what ends it. Who listens is there before servers and client are told so: nothing
/// falls in between.
async fn accept(peer: &Arc<Peer>, asked: &Fields) -> Result<(Listener, Followed), RpcError> {
    let is = |name: &str| asked.read::<bool>(name).unwrap_or(false);
    let prompts = is("promptsListChanged")
        && match &peer.view {
            View::All => true,
            View::Pack(name) => offers(&peer.server(name).await?, "prompts"),
        };
    let wanted =
        Wanted { tools: is("toolsListChanged"), resources: is("resourcesListChanged"), prompts, followed: Vec::new() };
    let mut followed = Followed { peer: peer.clone(), resources: Vec::new() };
    let uris: Vec<String> = asked.read("resourceSubscriptions").unwrap_or_default();
    if uris.len() > MAX_SUBSCRIPTIONS || 2 * uris.iter().map(String::len).sum::<usize>() > MAX_SUBSCRIPTION_BYTES {
        let message = format!(
            "at most {MAX_SUBSCRIPTIONS} resources are followed, whose URIs have {} bytes",
            MAX_SUBSCRIPTION_BYTES / 2
        );
        return Err(RpcError::new(codes::INVALID_PARAMS, message));
    }
    let mut listener = Listener::started(peer.clone(), wanted).await;
    for uri in uris {
        let found = match &peer.view {
            View::All => resources::resolved(peer, ListKind::Resources, &uri).await.unwrap_or_default(),
            View::Pack(name) => peer.server(name).await.ok().map(|server| (server, uri.clone())),
        };
        let Some((server, original)) = found else { continue };
        listener.follow_resource(server.name().to_string(), original.clone(), uri);
        if tell_server(peer, &server, "resources/subscribe", &original).await.is_ok() {
            followed.resources.push((server, original));
        } else {
            listener.forget_last_resource();
        }
    }
    Ok((listener, followed))
}

async fn tell_server(peer: &Arc<Peer>, server: &Arc<dyn McpServer>, method: &str, uri: &str) -> Result<Raw, RpcError> {
    let client = Client::new(peer, Way::Nobody, Stated::default(), Arc::new(Stream::default()));
    let mut params = Fields::new();
    params.set_value("uri", uri);
    ask(peer, &client, server, method, params).await
}

fn accepted(wanted: &Wanted) -> Raw {
    let mut accepted = Fields::new();
    for (name, is) in [
        ("toolsListChanged", wanted.tools),
        ("promptsListChanged", wanted.prompts),
        ("resourcesListChanged", wanted.resources),
    ] {
        if is {
            accepted.set_value(name, &true);
        }
    }
    if !wanted.followed.is_empty() {
        let uris: Vec<&str> = wanted.followed.iter().map(|(.., known)| known.as_str()).collect();
        accepted.set_value("resourceSubscriptions", &uris);
    }
    accepted.to_raw()
}

/// A notification that says to which request it belongs.
fn tagged(method: &str, id: &RequestId, mut params: Fields) -> String {
    let mut meta = params.get("_meta").and_then(|raw| Fields::of(raw)).unwrap_or_default();
    meta.set_value(names::SUBSCRIPTION_ID, id);
    params.set("_meta", meta.to_raw());
    call_text(None, method, Some(&params.to_raw()))
}

async fn feed(soft: CancellationToken, mut listener: Listener, id: RequestId, stream: Arc<Stream>) {
    loop {
        tokio::select! {
            () = soft.cancelled() => break,
            (method, params) = listener.next() => {
                stream.tell(tagged(&method, &id, Fields::of(&params).unwrap_or_default()));
            }
        }
    }
    let mut meta = Fields::new();
    meta.set_value(names::SUBSCRIPTION_ID, &id);
    meta.set(names::SERVER_INFO, own_info());
    let mut result = Fields::new();
    result.set_value("resultType", &Value::from("complete"));
    result.set("_meta", meta.to_raw());
    stream.send(response_text(Some(&id), Ok(&result.to_raw())));
    stream.end();
}

/// What is followed at servers, until it is dropped.
struct Followed {
    peer: Arc<Peer>,
    resources: Vec<(Arc<dyn McpServer>, String)>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        if self.resources.is_empty() {
            return;
        }
        let (peer, resources) = (self.peer.clone(), std::mem::take(&mut self.resources));
        let lifecycle: Lifecycle = peer.state.lifecycle.clone();
        lifecycle.spawn_work(async move {
            for (server, uri) in resources {
                // It may be gone; then there is nothing to end.
                let _ = tell_server(&peer, &server, "resources/unsubscribe", &uri).await;
            }
        });
    }
}
