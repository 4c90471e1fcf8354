//! Prompts of all attached servers, as `<server>__<prompt>`.

use std::sync::Arc;

use footbridge_mcp::{Fields, Raw, RpcError, codes};

use super::client::Client;
use super::methods::ask;
use super::page;
use super::peer::Peer;
use crate::domain::mcp::{ListKind, McpServer};
use crate::sources::configured::public_names;

/// A prompt: its public name, its server, its name there, and what the server lists of it.
struct Prompt {
    public: String,
    server: Arc<dyn McpServer>,
    original: String,
    fields: Fields,
}

fn all(servers: &[Arc<dyn McpServer>]) -> Vec<Prompt> {
    let mut prompts = Vec::new();
    for server in servers {
        let listed = server.listed(ListKind::Prompts);
        let named: Vec<(String, Fields)> = listed
            .iter()
            .filter_map(|prompt| Fields::of(prompt))
            .filter_map(|fields| Some((fields.read::<String>("name")?, fields)))
            .collect();
        let publics = public_names(server.name(), named.iter().map(|(name, _)| name.as_str()));
        for (original, fields) in &named {
            let Some(public) = publics.get(original.as_str()) else { continue };
            let (public, original, fields) = (public.to_string(), original.clone(), fields.clone());
            prompts.push(Prompt { public, server: server.clone(), original, fields });
        }
    }
    prompts.sort_by(|a, b| a.public.cmp(&b.public));
    prompts
}

/// All prompts, by public name.
pub(super) async fn seen(peer: &Peer) -> Result<Vec<(String, Raw)>, RpcError> {
    let shown = all(&peer.servers().await?).into_iter().map(|mut prompt| {
        prompt.fields.set_value("name", &prompt.public);
        (prompt.public, prompt.fields.to_raw())
    });
    Ok(shown.collect())
}

/// `prompts/list`
pub(super) async fn list(peer: &Peer, params: &Fields) -> Result<Raw, RpcError> {
    let after = page::after(params)?;
    let seen = seen(peer).await?;
    if let Some(session) = &peer.session
        && after.is_none()
    {
        let print = super::listen::print_of_listed(&seen);
        session.shown(|shown| shown.prompts = Some(print));
    }
    let (page, next) = page::of(seen, after.as_deref(), |thing| thing.get().len())?;
    Ok(page::result("prompts", &page, next.as_deref().map(page::cursor)))
}

/// The server of a prompt, and the prompt's name there.
pub(super) async fn resolved(peer: &Peer, public: &str) -> Result<(Arc<dyn McpServer>, String), RpcError> {
    let found = all(&peer.servers().await?).into_iter().find(|prompt| prompt.public == public);
    found.map(|prompt| (prompt.server, prompt.original)).ok_or_else(|| {
        let name = footbridge_shared::text::clean_and_cut(public, 80);
        RpcError::new(codes::INVALID_PARAMS, format!("Unknown prompt: {name}"))
    })
}

/// `prompts/get`
pub(super) async fn get(peer: &Arc<Peer>, client: &Arc<Client>, mut params: Fields) -> Result<Raw, RpcError> {
    let name: String = params.read("name").ok_or_else(|| RpcError::new(codes::INVALID_PARAMS, "`name` is missing"))?;
    let (server, original) = resolved(peer, &name).await?;
    params.set_value("name", &original);
    ask(peer, client, &server, "prompts/get", params).await
}
