//! A local MCP server of a foot, as one subject sees it.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use footbridge_mcp::RpcError;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;
use footbridge_shared::message::Raw;
use tokio::sync::broadcast;

use super::foot::Foot;
use super::requests::{Asker, unavailable};
use super::servers::LocalServer;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::mcp::{ListKind, McpDescription, McpNote, McpServer, McpTools, rpc_error};

/// See the module.
pub(super) struct FootServer {
    /// As the subject addresses it.
    name: EntryName,
    /// Weak: who shows a server does not keep a foot that is gone.
    foot: Weak<Foot>,
    server: Arc<LocalServer>,
    tools: Arc<McpTools>,
}

impl FootServer {
    pub(super) fn new(name: EntryName, foot: &Arc<Foot>, server: Arc<LocalServer>, tools: Arc<McpTools>) -> Self {
        Self { name, foot: Arc::downgrade(foot), server, tools }
    }

    /// Its name on the foot.
    pub(super) fn local(&self) -> &EntryName {
        &self.server.name
    }
}

#[async_trait]
impl McpServer for FootServer {
    fn name(&self) -> &EntryName {
        &self.name
    }

    fn description(&self) -> Option<Arc<McpDescription>> {
        Some(self.server.description())
    }

    fn listed(&self, kind: ListKind) -> Arc<[Raw]> {
        self.server.lists.get(kind)
    }

    fn tools(&self) -> Arc<McpTools> {
        self.tools.clone()
    }

    async fn request(&self, ctx: &CallContext, method: &str, params: Raw) -> Result<Raw, RpcError> {
        let foot =
            self.foot.upgrade().ok_or_else(|| rpc_error(&unavailable(&self.name, "its foot is not connected")))?;
        if *ctx.scope != *foot.scope {
            let failure = Failure::not_run(ErrorCode::NotFound, format!("there is no server `{}` here", self.name));
            return Err(rpc_error(&failure));
        }
        foot.ask(&self.server.name, method, params, Asker::of(ctx)).await
    }

    fn notes(&self) -> broadcast::Receiver<McpNote> {
        self.server.notes.subscribe()
    }
}
