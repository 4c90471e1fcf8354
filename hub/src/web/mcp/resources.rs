//! Resources of everybody: those of attached servers under URIs that name the server, and the project's documents.

use std::sync::Arc;

use footbridge_mcp::{Fields, Raw, RpcError, codes};

use super::client::Client;
use super::documents;
use super::methods::ask;
use super::page;
use super::peer::{Peer, rpc_error, too_much};
use crate::domain::mcp::{ListKind, McpServer};

/// What URIs of attached servers begin with: `mcp:<server>:<URI there>`.
const SCHEME: &str = "mcp:";

/// A server's URI as clients of everything know it.
pub(super) fn public_uri(server: &str, original: &str) -> String {
    format!("{SCHEME}{server}:{original}")
}

/// Server and URI there.
fn parts(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once(':')
}

/// The field that holds the URI of a listed thing.
fn uri_field(kind: ListKind) -> &'static str {
    if kind == ListKind::ResourceTemplates { "uriTemplate" } else { "uri" }
}

/// What servers list of a kind, with the URI there.
fn listed(servers: &[Arc<dyn McpServer>], kind: ListKind) -> Vec<(Arc<dyn McpServer>, String, Fields)> {
    let mut all = Vec::new();
    for server in servers {
        for thing in server.listed(kind).iter() {
            let Some(fields) = Fields::of(thing) else { continue };
            let Some(uri) = fields.read::<String>(uri_field(kind)) else { continue };
            all.push((server.clone(), uri, fields));
        }
    }
    all
}

/// Everything of a kind that servers list, under public URIs.
pub(super) async fn seen(peer: &Peer, kind: ListKind) -> Result<Vec<(String, Raw)>, RpcError> {
    let servers = peer.servers().await?;
    let things = listed(&servers, kind).into_iter().map(|(server, uri, mut fields)| {
        let public = public_uri(server.name().as_str(), &uri);
        fields.set_value(uri_field(kind), &public);
        (public, fields.to_raw())
    });
    Ok(things.collect())
}

/// `resources/list`: servers' resources, then documents.
pub(super) async fn list(peer: &Peer, params: &Fields) -> Result<Raw, RpcError> {
    let after = page::after(params)?;
    let in_documents = after.as_deref().is_some_and(documents::is_document);
    let mut resources = Vec::new();
    if !in_documents {
        let seen = seen(peer, ListKind::Resources).await?;
        if let Some(session) = &peer.session
            && after.is_none()
        {
            let print = super::listen::print_of_listed(&seen);
            session.shown(|shown| shown.resources = Some(print));
        }
        let (page, next) = page::of(seen, after.as_deref(), |thing| thing.get().len())?;
        if let Some(next) = next {
            return Ok(page::result("resources", &page, Some(page::cursor(&next))));
        }
        resources = page;
    }
    let room = page::PAGE.saturating_sub(resources.len()).max(1);
    let (found, next) = documents::list(peer, after.as_deref().filter(|_| in_documents), room).await?;
    resources.extend(found);
    Ok(page::result("resources", &resources, next.as_deref().map(page::cursor)))
}

/// `resources/templates/list`
pub(super) async fn templates(peer: &Peer, params: &Fields) -> Result<Raw, RpcError> {
    let after = page::after(params)?;
    let seen = seen(peer, ListKind::ResourceTemplates).await?;
    let (page, next) = page::of(seen, after.as_deref(), |thing| thing.get().len())?;
    Ok(page::result("resourceTemplates", &page, next.as_deref().map(page::cursor)))
}

/// There is no such resource.
pub(super) fn not_found(peer: &Peer, uri: &str) -> RpcError {
    let code = if peer.is_stateless() { codes::INVALID_PARAMS } else { codes::RESOURCE_NOT_FOUND };
    let mut data = Fields::new();
    data.set_value("uri", &footbridge_shared::text::clean_and_cut(uri, 500));
    RpcError { data: Some(data.to_raw()), ..RpcError::new(code, "Resource not found") }
}

/// The server behind a URI, and the URI there: a public one, or one that exactly one server lists.
pub(super) async fn resolved(
    peer: &Peer,
    kind: ListKind,
    uri: &str,
) -> Result<Option<(Arc<dyn McpServer>, String)>, RpcError> {
    let servers = peer.servers().await?;
    if let Some((name, original)) = parts(uri)
        && let Some(server) = servers.iter().find(|server| server.name().as_str() == name)
    {
        return Ok(Some((server.clone(), original.to_owned())));
    }
    let mut found = listed(&servers, kind).into_iter().filter(|(_, original, _)| original == uri);
    let Some((server, original, _)) = found.next() else { return Ok(None) };
    match found.next() {
        None => Ok(Some((server, original))),
        Some((other, ..)) => Err(RpcError::new(
            codes::INVALID_PARAMS,
            format!(
                "`{}` and `{}` both have this resource: ask for it as `{SCHEME}SERVER:URI`",
                server.name(),
                other.name()
            ),
        )),
    }
}

fn uri_of(params: &Fields) -> Result<String, RpcError> {
    params.read("uri").ok_or_else(|| RpcError::new(codes::INVALID_PARAMS, "`uri` is missing"))
}

/// `resources/read`
pub(super) async fn read(peer: &Arc<Peer>, client: &Arc<Client>, mut params: Fields) -> Result<Raw, RpcError> {
    let uri = uri_of(&params)?;
    if documents::is_document(&uri) {
        return documents::read(peer, &uri).await?.ok_or_else(|| not_found(peer, &uri));
    }
    let found = resolved(peer, ListKind::Resources, &uri).await?;
    let (server, original) = found.ok_or_else(|| not_found(peer, &uri))?;
    params.set_value("uri", &original);
    ask(peer, client, &server, "resources/read", params).await
}

/// `resources/subscribe` and its opposite.
pub(super) async fn follow(
    peer: &Arc<Peer>,
    client: &Arc<Client>,
    method: &str,
    mut params: Fields,
) -> Result<Raw, RpcError> {
    let uri = uri_of(&params)?;
    let Some(session) = &peer.session else {
        return Err(RpcError::new(codes::INVALID_REQUEST, "without a session nothing can be followed"));
    };
    if documents::is_document(&uri) {
        return Err(RpcError::new(codes::INVALID_PARAMS, "documents cannot be followed; read them again"));
    }
    let found = resolved(peer, ListKind::Resources, &uri).await?;
    let (server, original) = found.ok_or_else(|| not_found(peer, &uri))?;
    params.set_value("uri", &original);
    if method == "resources/unsubscribe" {
        session.unsubscribe(server.name().as_str(), &original);
        return ask(peer, client, &server, method, params).await;
    }
    if !session.subscribe(server.name().as_str(), &original, &uri) {
        return Err(rpc_error(&too_much(
            "the session follows too many resources",
            "end others with `resources/unsubscribe`",
        )));
    }
    let answer = ask(peer, client, &server, method, params).await;
    if answer.is_err() {
        session.unsubscribe(server.name().as_str(), &original);
    }
    answer
}
