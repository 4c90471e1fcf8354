//! Attached servers as the MCP surface sees them: what is no tool.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_mcp::{Fields, Raw, RpcError, codes};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{EntryName, Subject};
use tokio::sync::broadcast;

use super::call::NoResult;
use super::followed::{SUBSCRIBE, UNSUBSCRIBE};
use super::server::Server;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::mcp::{ListKind, McpDescription, McpNote, McpServer, McpServers, McpTools, rpc_error};
use crate::domain::scope::Scope;
use crate::sources::configured::ConfiguredSource;
use crate::sources::configured::pack::ActivePack;

/// How long a request that was told to end has to do so.
const CANCEL_GRACE: Duration = Duration::from_millis(1_500);

#[async_trait]
impl McpServers for ConfiguredSource {
    async fn servers(&self, scope: &Scope, subject: &Subject) -> Result<Vec<Arc<dyn McpServer>>, Failure> {
        let compiled = self.current(scope).await?;
        let packs = compiled.catalog.packs.iter().filter(|pack| pack.is_for_direct_callers());
        let servers = packs.filter_map(|pack| {
            let server = pack.server()?.server().clone();
            let tools = pack.mcp_tools(scope, subject);
            Some(Arc::new(PackServer { pack: pack.clone(), server, tools }) as Arc<dyn McpServer>)
        });
        // The catalog's packs are in the order of their names.
        Ok(servers.collect())
    }
}

/// A server behind a pack.
struct PackServer {
    /// Holds the server in force while somebody speaks with it.
    pack: Arc<ActivePack>,
    server: Arc<Server>,
    tools: Arc<McpTools>,
}

#[async_trait]
impl McpServer for PackServer {
    fn name(&self) -> &EntryName {
        self.pack.name()
    }

    fn description(&self) -> Option<Arc<McpDescription>> {
        self.server.listed().description.clone()
    }

    fn listed(&self, kind: ListKind) -> Arc<[Raw]> {
        self.server.listed().of(kind).clone()
    }

    fn tools(&self) -> Arc<McpTools> {
        self.tools.clone()
    }

    async fn request(&self, ctx: &CallContext, method: &str, params: Raw) -> Result<Raw, RpcError> {
        let params = Fields::of(&params)
            .ok_or_else(|| RpcError::new(codes::INVALID_PARAMS, "the parameters are no JSON object"))?;
        let mut work = std::pin::pin!(async {
            match method {
                SUBSCRIBE | UNSUBSCRIBE => self.server.follow(ctx, method == SUBSCRIBE, params).await,
                _ => self.server.relay(ctx, method, params, None).await,
            }
        });
        let relayed = tokio::select! {
            relayed = &mut work => relayed,
            _ = ctx.clock.expired() => {
                // The server is told that nobody waits any more.
                ctx.cancel.cancel();
                match tokio::time::timeout(CANCEL_GRACE, work).await {
                    Ok(Ok(result)) => Ok(result),
                    _ => {
                        let message = "the server did not answer in time";
                        Err(NoResult::Failure(Failure::not_run(ErrorCode::DeadlineExceeded, message)))
                    }
                }
            }
        };
        relayed.map_err(|error| match error {
            NoResult::Rpc(error) => error,
            NoResult::Failure(failure) => rpc_error(&failure),
        })
    }

    fn notes(&self) -> broadcast::Receiver<McpNote> {
        self.server.notes()
    }
}
