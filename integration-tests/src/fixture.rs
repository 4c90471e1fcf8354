//! An MCP server on the official Rust library that offers what the conformance suite's scenarios ask for by name: an
//! independent judge of both lifecycles. Nothing of Footbridge is in it.
//!
//! What a tool wants from the user, it wants in both lifecycles: with a session it sends a request of its own while the call
//! runs, without one it answers `input_required` and is called again.

#![expect(deprecated, reason = "log levels of sessions are what older clients set")]

mod answers;
mod ask;
mod calls;
mod changes;
mod http;
mod prompts;
mod resources;
mod rounds;
mod samples;
mod tasks;
mod tools;
mod watch;

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Result;
use changes::Shared;
use watch::Session;

pub use http::serve_http;

/// How long what is listed may be kept, in milliseconds.
const TTL_MS: u64 = 1_000;

/// The server as one client sees it: one for each session, and one for each request that has no session.
#[derive(Clone)]
struct Fixture {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

/// Serves one client on the standard streams, until it goes away.
///
/// # Errors
/// When the client does not open the conversation as the protocol says.
pub async fn serve_stdio() -> Result<()> {
    let fixture = Fixture::new(Shared::new()?);
    fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

/// A type of the library from its JSON.
fn typed<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl Fixture {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, session: Arc::default() }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let info = json!({
            "protocolVersion": "2026-07-28",
            "capabilities": {
                "tools": { "listChanged": true },
                "prompts": { "listChanged": true },
                "resources": { "listChanged": true, "subscribe": true },
                "logging": {},
                "completions": {},
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
            "serverInfo": { "name": "mcp-fixture", "title": "Fixture", "version": env!("CARGO_PKG_VERSION") },
            "instructions": "A server for tests.",
        });
        typed(info).unwrap_or_default()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = ListToolsResult::with_all_items(tools::all(&self.shared)?);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all(&self.shared).ok()?.into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        calls::call(self, request, context).await
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = ListPromptsResult::with_all_items(prompts::all(&self.shared)?);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(self, request, context).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = ListResourcesResult::with_all_items(resources::all()?);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = ListResourceTemplatesResult::with_all_items(resources::templates()?);
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        prompts::complete(&request.argument.value)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.shared.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.set_level(&json!(request.level));
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.shared.join(&context.peer, &self.session);
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.watch(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.unwatch(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.shared.tell(&subscription).await;
        Ok(())
    }
}
