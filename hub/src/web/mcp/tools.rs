//! `tools/list` and `tools/call`.

use std::sync::Arc;

use axum::http::HeaderMap;
use footbridge_mcp::{Fields, Raw, RpcError, codes};
use footbridge_shared::ErrorCode;

use super::client::{Asking, Client};
use super::peer::{Peer, View, rpc_error};
use super::{headers, message, page, result};
use crate::dispatch::calls::CallResult;
use crate::dispatch::catalog::{Catalog, Resolution};
use crate::dispatch::events::Heard;
use crate::dispatch::{CallRequest, RunningCall};
use crate::domain::arguments::Arguments;
use crate::domain::call::EventSink as _;
use crate::domain::key::IdempotencyKey;
use crate::domain::tool::{Origin, Tool, ToolSpec};
use crate::yaml::did_you_mean;

/// The `_meta` entry that makes a call one that happens at most once.
const KEY: &str = "footbridge/idempotencyKey";

/// The tools that the client sees, under the names that it sees, in a stable order.
pub(super) async fn seen(peer: &Peer) -> Result<Vec<(String, Arc<Tool>)>, RpcError> {
    let catalog = catalog(peer).await?;
    match &peer.view {
        View::All => {
            let tools = catalog.tools().into_iter();
            let tools = tools.filter(|tool| tool.spec.admits(&peer.caller) && !is_second_name(&catalog, tool));
            Ok(tools.map(|tool| (tool.spec.name.to_string(), tool)).collect())
        }
        View::Pack(name) => {
            let tools = peer.server(name).await?.tools();
            let offered = tools.names.iter().filter_map(|(original, public)| match catalog.resolve(public.as_str()) {
                Resolution::Tool(tool) if tool.spec.admits(&peer.caller) => Some((original.clone(), tool.clone())),
                _ => None,
            });
            Ok(offered.collect())
        }
    }
}

/// Whether the tool has a shorter name that leads to it: a foot's tool under the name that says which foot. It is not shown
/// twice, and can be called all the same.
fn is_second_name(catalog: &Catalog, tool: &Tool) -> bool {
    let Origin::Foot { local, .. } = &tool.spec.origin else { return false };
    tool.spec.name != *local
        && matches!(catalog.resolve(local.as_str()), Resolution::Tool(short) if short.spec.origin == tool.spec.origin)
}

async fn catalog(peer: &Peer) -> Result<Catalog, RpcError> {
    peer.state.dispatcher.catalog(&peer.scope, &peer.caller.subject).await.map_err(|failure| rpc_error(&failure))
}

/// `tools/list`
pub(super) async fn list(peer: &Peer, params: &Fields) -> Result<Raw, RpcError> {
    let after = page::after(params)?;
    let seen = seen(peer).await?;
    if let Some(session) = &peer.session
        && after.is_none()
    {
        let print = super::listen::print_of_tools(&seen);
        session.shown(|shown| shown.tools = Some(print));
    }
    let named = seen.into_iter().map(|(name, tool)| (name.clone(), (name, tool))).collect();
    let (tools, next) = page::of(named, after.as_deref(), |(_, tool)| size(&tool.spec))?;
    let objects: Vec<Raw> = tools.iter().map(|(name, tool)| object(peer, name, &tool.spec)).collect();
    Ok(page::result("tools", &objects, next.as_deref().map(page::cursor)))
}

/// What a tool takes of a page, about.
fn size(spec: &ToolSpec) -> usize {
    let others = [&spec.output_schema, &spec.annotations, &spec.extra];
    let others: usize = others.into_iter().flatten().map(|raw| raw.get().len()).sum();
    spec.description.len() + spec.input_schema.get().len() + others
}

/// A tool as MCP shows it.
fn object(peer: &Peer, name: &str, spec: &ToolSpec) -> Raw {
    let mut tool = Fields::new();
    tool.set_value("name", name);
    if let Some(title) = &spec.title {
        tool.set_value("title", title);
    }
    if !spec.description.is_empty() {
        tool.set_value("description", &spec.description);
    }
    tool.set("inputSchema", input_schema(&spec.input_schema));
    if let Some(schema) = &spec.output_schema
        // Before 2026-07-28 a structured result is an object, and clients refuse the whole list over a schema of another.
        && (peer.is_stateless() || says_object(schema))
    {
        tool.set("outputSchema", schema.clone());
    }
    if let Some(annotations) = &spec.annotations {
        tool.set("annotations", annotations.clone());
    }
    let extra = spec.extra.as_ref().and_then(|extra| Fields::of(extra)).unwrap_or_default();
    for (field, value) in extra.iter() {
        tool.set(field, value.clone());
    }
    tool.to_raw()
}

fn says_object(schema: &Raw) -> bool {
    Fields::of(schema).and_then(|schema| schema.read::<String>("type")).as_deref() == Some("object")
}

/// A schema of arguments: as it is, and of objects, as clients insist.
fn input_schema(schema: &Raw) -> Raw {
    let Some(mut fields) = Fields::of(schema) else {
        let mut any = Fields::new();
        any.set_value("type", "object");
        return any.to_raw();
    };
    if fields.get("type").is_some() {
        return schema.clone();
    }
    fields.set_value("type", "object");
    fields.to_raw()
}

/// The public name of a tool that the client calls by this one.
async fn public_name(peer: &Peer, name: &str) -> Result<Option<String>, RpcError> {
    match &peer.view {
        View::All => Ok(Some(name.to_owned())),
        View::Pack(pack) => {
            let tools = peer.server(pack).await?.tools();
            let found = tools.names.iter().find(|(original, _)| original == name);
            Ok(found.map(|(_, public)| public.to_string()))
        }
    }
}

/// Checks the headers of a call that say what its arguments say.
pub(super) async fn check_headers(peer: &Peer, http: &HeaderMap, params: &Fields) -> Result<(), RpcError> {
    let Some(name) = params.read::<String>("name") else { return Ok(()) };
    let Ok(Some(public)) = public_name(peer, &name).await else { return Ok(()) };
    let catalog = catalog(peer).await?;
    match catalog.resolve(&public) {
        Resolution::Tool(tool) if tool.spec.admits(&peer.caller) => {
            headers::check_arguments(http, &tool.spec.input_schema, params)
        }
        _ => Ok(()),
    }
}

/// There is no such tool for this client; perhaps another one was meant.
async fn unknown(peer: &Peer, name: &str) -> RpcError {
    let error = result::unknown_tool(name);
    // Who cannot be shown the list is told no more.
    let seen = seen(peer).await.unwrap_or_default();
    let Some(meant) = did_you_mean(name, seen.iter().map(|(name, _)| name.as_str())) else { return error };
    let hint = format!("did you mean `{meant}`?");
    let message = format!("{} ({hint})", error.message);
    RpcError { data: Some(message::object([("hint", hint.into())])), ..RpcError::new(error.code, message) }
}

/// `tools/call`
pub(super) async fn call(
    peer: &Arc<Peer>,
    client: Arc<Client>,
    mut params: Fields,
    meta: &Fields,
) -> Result<Raw, RpcError> {
    let wrong = |message: &str| RpcError::new(codes::INVALID_PARAMS, message);
    let name: String = params.read("name").ok_or_else(|| wrong("`name` is missing"))?;
    params.take("name");
    let arguments = match params.take("arguments") {
        None => Arguments::empty(),
        Some(raw) if result::is_object(&raw) || raw.get() == "null" => Arguments::new(raw),
        Some(_) => return Err(wrong("`arguments` must be an object")),
    };
    let key = match meta.get(KEY) {
        None => None,
        Some(key) => {
            let key: String = serde_json::from_str(key.get()).map_err(|_| wrong("the idempotency key is no text"))?;
            Some(IdempotencyKey::parse(&key).map_err(|error| wrong(&error.to_string()))?)
        }
    };
    let Some(public) = public_name(peer, &name).await? else { return Err(unknown(peer, &name).await) };
    client.asked_by(Asking::Tool(public.clone()));
    let listens = client.may_listen();
    let started = peer
        .state
        .dispatcher
        .start(CallRequest {
            scope: peer.scope.clone(),
            caller: peer.caller.clone(),
            name: public,
            arguments,
            timeout: None,
            max_timeout: None,
            key,
            client: Some(client.clone()),
            extra: params.into_raw_unless_empty().map(Arc::from),
        })
        .await;
    match started {
        Ok(running) => {
            let ended = if listens { told(running, &client).await } else { running.wait().await.0 };
            result::of_call(peer, &name, &ended)
        }
        Err(failure) if failure.code == ErrorCode::UnknownTool => Err(unknown(peer, &name).await),
        Err(failure) => result::of_failure(peer, &name, &failure),
    }
}

/// Runs a call, and tells its client what it says meanwhile.
async fn told(running: RunningCall, client: &Client) -> CallResult {
    let mut follower = running.entry().follow(0);
    let telling = async {
        loop {
            match follower.next().await {
                Heard::Event { event, .. } => client.event(event),
                Heard::Skipped { .. } => {}
                Heard::Ended { result, .. } => return result,
            }
        }
    };
    // What was said before the end is told before it.
    let (_, result) = tokio::join!(running.wait(), telling);
    result
}
