//! The comparison: an echo server on the official Rust library, at `/session` with sessions, at `/stateless` without.

use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::say;
use crate::Result;

#[derive(Clone)]
struct Echo;

/// A type of the library from its JSON.
fn typed<T: serde::de::DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": "2026-07-28",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": "1" },
        });
        typed(info).unwrap_or_default()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let tool: Tool = typed(json!({ "name": "echo", "description": "Echoes", "inputSchema": text }))?;
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = call.arguments.as_ref().and_then(|arguments| arguments.get("text")?.as_str()).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Serves, and says where.
///
/// # Errors
/// When it cannot listen.
pub async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(&format!("listening on http://{}", listener.local_addr()?));
    let service = |sessions: bool| {
        let config =
            StreamableHttpServerConfig::default().with_legacy_session_mode(sessions).with_json_response(!sessions);
        StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config)
    };
    let app = Router::new().nest_service("/session", service(true)).nest_service("/stateless", service(false));
    let listener = listener.tap_io(|socket| {
        // Without it a small answer may wait for an acknowledgement.
        let _ = socket.set_nodelay(true);
    });
    Ok(axum::serve(listener, app).await?)
}
