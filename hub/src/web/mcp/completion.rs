//! `completion/complete`: goes to the server whose prompt or template is being filled in, under its name there.

use std::sync::Arc;

use footbridge_mcp::{Fields, Raw, RpcError, codes};

use super::client::Client;
use super::methods::ask;
use super::peer::Peer;
use super::{prompts, resources};
use crate::domain::mcp::ListKind;

/// `completion/complete`
pub(super) async fn complete(peer: &Arc<Peer>, client: &Arc<Client>, mut params: Fields) -> Result<Raw, RpcError> {
    let wrong = || RpcError::new(codes::INVALID_PARAMS, "`ref` names no prompt and no resource template");
    let mut reference = params.get("ref").and_then(|raw| Fields::of(raw)).ok_or_else(wrong)?;
    let server = match reference.read::<String>("type").as_deref() {
        Some("ref/prompt") => {
            let name: String = reference.read("name").ok_or_else(wrong)?;
            let (server, original) = prompts::resolved(peer, &name).await?;
            reference.set_value("name", &original);
            server
        }
        Some("ref/resource") => {
            let uri: String = reference.read("uri").ok_or_else(wrong)?;
            let found = match resources::resolved(peer, ListKind::ResourceTemplates, &uri).await? {
                Some(found) => Some(found),
                None => resources::resolved(peer, ListKind::Resources, &uri).await?,
            };
            let (server, original) = found.ok_or_else(|| resources::not_found(peer, &uri))?;
            reference.set_value("uri", &original);
            server
        }
        _ => return Err(wrong()),
    };
    params.set("ref", reference.to_raw());
    ask(peer, client, &server, "completion/complete", params).await
}
