//! Who asks, where, and what of.

use std::sync::Arc;

use footbridge_mcp::{Lifecycle, RpcError, Version};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;

use super::session::Session;
use crate::domain::call::Caller;
use crate::domain::failure::Failure;
use crate::domain::mcp::McpServer;
pub(super) use crate::domain::mcp::rpc_error;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::bodies::Place;
use crate::web::state::AppState;

/// What a client that has too much under way is told to wait, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// There is no room for what a client wants, which did not begin.
pub(super) fn too_much(what: impl Into<String>, hint: &str) -> Failure {
    Failure::not_run(ErrorCode::Overloaded, what).hint(hint).retry_after_ms(RETRY_AFTER_MS)
}

/// What of a scope a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    /// All of it, under public names.
    All,
    /// One attached server, as if it were connected directly.
    Pack(EntryName),
}

/// Whoever sends a request.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) state: Arc<AppState>,
    pub(super) scope: Arc<Scope>,
    pub(super) principal: Arc<Principal>,
    pub(super) caller: Arc<Caller>,
    pub(super) version: Version,
    pub(super) view: View,
    /// The server that it sees alone, as it was found when the request came.
    pub(super) found: Option<Arc<dyn McpServer>>,
    pub(super) session: Option<Arc<Session>>,
    /// What its body takes of the hub's room, for as long as the request is worked on: also when nobody waits for it here.
    pub(super) body: Place,
}

impl Peer {
    /// Whether it follows the lifecycle without sessions.
    pub(super) fn is_stateless(&self) -> bool {
        self.version.lifecycle() == Lifecycle::Stateless
    }

    /// The same for what lasts: servers come and go meanwhile, and are looked for when they are wanted.
    pub(super) fn lasting(&self) -> Arc<Self> {
        Arc::new(Self { found: None, ..self.clone() })
    }

    /// The attached servers that it may use, by name.
    pub(super) async fn servers(&self) -> Result<Vec<Arc<dyn McpServer>>, RpcError> {
        self.state.mcp.servers(&self.scope, &self.caller.subject).await.map_err(|failure| rpc_error(&failure))
    }

    /// The one of this name.
    pub(super) async fn server(&self, name: &EntryName) -> Result<Arc<dyn McpServer>, RpcError> {
        if let Some(found) = &self.found
            && found.name() == name
        {
            return Ok(found.clone());
        }
        let found = self.servers().await?.into_iter().find(|server| server.name() == name);
        found.ok_or_else(|| {
            let failure = Failure::not_run(ErrorCode::NotFound, format!("there is no MCP server `{name}` here"));
            rpc_error(&failure)
        })
    }
}
