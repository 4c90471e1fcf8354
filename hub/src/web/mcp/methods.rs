//! The methods, by what the client sees.

use std::sync::Arc;

use footbridge_mcp::{Fields, Raw, RpcError, codes};
use footbridge_shared::id::CallId;
use footbridge_shared::limits::{DEFAULT_MAX_TIMEOUT, DEFAULT_TIMEOUT};
use serde::Deserialize as _;

use super::client::{Asking, Client};
use super::hello::{Hello, method_not_found, offers};
use super::level::Level;
use super::message::object;
use super::peer::{Peer, View};
use super::{completion, pack, prompts, resources, result, tools};
use crate::clock::random_id;
use crate::domain::call::{CallClock, CallContext};
use crate::domain::mcp::McpServer;
use crate::domain::tool::ToolCaller;

/// Answers a request. Dropped, whatever runs because of it is cancelled.
pub(super) async fn answer(
    peer: Arc<Peer>,
    client: Arc<Client>,
    method: &str,
    params: Fields,
    meta: Fields,
) -> Result<Raw, RpcError> {
    if method == "tools/call" {
        return tools::call(&peer, client, params, &meta).await;
    }
    let result = match (method, peer.is_stateless()) {
        ("server/discover", true) => return Ok(Hello::of(&peer).await?.discovered()),
        ("ping", false) => Ok(object([])),
        ("logging/setLevel", false) => set_level(&peer, &client, params).await,
        ("resources/subscribe" | "resources/unsubscribe", true) => Err(method_not_found(method)),
        ("initialize" | "server/discover" | "ping" | "logging/setLevel" | "subscriptions/listen", _) => {
            Err(method_not_found(method))
        }
        ("tools/list", _) => tools::list(&peer, &params).await,
        _ => match &peer.view {
            View::Pack(name) => pack::relayed(&peer, &client, name, method, params).await,
            View::All => everything(&peer, &client, method, params).await,
        },
    }?;
    Ok(result::finished(&peer, method, result))
}

async fn everything(peer: &Arc<Peer>, client: &Arc<Client>, method: &str, params: Fields) -> Result<Raw, RpcError> {
    match method {
        "resources/list" => resources::list(peer, &params).await,
        "resources/templates/list" => resources::templates(peer, &params).await,
        "resources/read" => resources::read(peer, client, params).await,
        "resources/subscribe" | "resources/unsubscribe" => resources::follow(peer, client, method, params).await,
        "prompts/list" => prompts::list(peer, &params).await,
        "prompts/get" => prompts::get(peer, client, params).await,
        "completion/complete" => completion::complete(peer, client, params).await,
        _ => Err(method_not_found(method)),
    }
}

/// Says from which level on log messages are wanted.
async fn set_level(peer: &Arc<Peer>, client: &Arc<Client>, params: Fields) -> Result<Raw, RpcError> {
    let wrong = || RpcError::new(codes::INVALID_PARAMS, "`level` is no level");
    let text: String = params.read("level").ok_or_else(wrong)?;
    let level = Level::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(&text))
        .map_err(|_| wrong())?;
    let Some(session) = &peer.session else { return Ok(object([])) };
    session.set_level(level);
    if let View::Pack(name) = &peer.view {
        let server = peer.server(name).await?;
        if offers(&server, "logging") {
            return ask(peer, client, &server, "logging/setLevel", params).await;
        }
    }
    Ok(object([]))
}

/// Passes a request on to a server, within the limits of a call.
pub(super) async fn ask(
    peer: &Arc<Peer>,
    client: &Arc<Client>,
    server: &Arc<dyn McpServer>,
    method: &str,
    params: Fields,
) -> Result<Raw, RpcError> {
    client.asked_by(Asking::Server(server.name().to_string()));
    let internal = || RpcError::new(codes::INTERNAL_ERROR, "no id could be drawn");
    let call = CallId::parse(&random_id()).map_err(|_| internal())?;
    let tools: Arc<dyn ToolCaller> = peer.state.dispatcher.clone();
    let clock = CallClock::start(DEFAULT_TIMEOUT, DEFAULT_MAX_TIMEOUT);
    let mut ctx = CallContext::new(call, peer.scope.clone(), peer.caller.clone(), clock, tools, Some(client.clone()));
    ctx.client = Some(client.clone());
    // Whoever serves it hears of the end of whoever wanted it.
    let _gone = ctx.cancel.clone().drop_guard();
    tokio::select! {
        biased;
        result = server.request(&ctx, method, params.to_raw()) => result,
        () = peer.state.lifecycle.hard().cancelled() => {
            Err(RpcError::new(codes::INTERNAL_ERROR, "the hub is going down"))
        }
    }
}
