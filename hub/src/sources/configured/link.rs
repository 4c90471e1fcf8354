//! Single tools of MCP servers under names of their own. Which server is meant is looked up where they are listed: its
//! document may come, go and change without theirs.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::mcp::config::GivenArguments;
use super::mcp::shape::Shape;
use super::pack::{ActivePack, shorter, union};
use super::types::Link;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::{Tool, ToolHandler, ToolSpec};

/// A document that offers one tool of a server.
pub(super) struct ActiveLink {
    head: ToolSpec,
    server: EntryName,
    original: String,
    given: Arc<GivenArguments>,
}

impl ActiveLink {
    /// `head` is what the document says of its tool.
    pub(super) fn new(head: ToolSpec, link: Link) -> Self {
        let Link { server, original, defaults } = link;
        Self { head, server, original, given: Arc::new(GivenArguments { defaults, forced: Vec::new() }) }
    }

    /// The document's name.
    pub(super) fn name(&self) -> &str {
        self.head.name.as_str()
    }

    /// The document of its server.
    pub(super) fn server(&self) -> &EntryName {
        &self.server
    }

    /// The tool: what it takes and gives comes from the server, what it is for from the document. `pack` is what has the
    /// server's name in the same catalog, with the tools it has now.
    pub(super) fn tool(&self, pack: Option<(&Arc<ActivePack>, &[Arc<Tool>])>) -> Tool {
        let server = pack.filter(|(pack, _)| pack.server().is_some());
        let is_meant = |tool: &&Arc<Tool>| tool.spec.original_name.as_deref() == Some(self.original.as_str());
        let Some(inner) = server.and_then(|(_, tools)| tools.iter().find(is_meant)) else {
            let pack = server.map(|(pack, _)| pack.clone());
            let absent = Absent { server: self.server.clone(), original: self.original.clone(), pack };
            let open = to_raw_value(&json!({"type": "object"})).unwrap_or_else(|_| RawValue::NULL.to_owned());
            let spec = ToolSpec { original_name: Some(self.original.clone()), input_schema: open, ..self.head.clone() };
            return Tool { spec, schema: None, handler: Arc::new(absent) };
        };
        let (head, spec) = (&self.head, &inner.spec);
        let spec = ToolSpec {
            original_name: Some(self.original.clone()),
            title: spec.title.clone(),
            input_schema: spec.input_schema.clone(),
            output_schema: spec.output_schema.clone(),
            annotations: spec.annotations.clone(),
            extra: spec.extra.clone(),
            changed: spec.changed,
            labels: union(&head.labels, &spec.labels),
            timeout: shorter(head.timeout, spec.timeout),
            ..head.clone()
        };
        let shape = Shape::of(&spec.input_schema);
        let handler = Present { inner: inner.clone(), shape, given: self.given.clone() };
        Tool { spec, schema: None, handler: Arc::new(handler) }
    }
}

/// The server's tool, with what the document gives.
struct Present {
    inner: Arc<Tool>,
    shape: Shape,
    given: Arc<GivenArguments>,
}

#[async_trait]
impl ToolHandler for Present {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let arguments = self.shape.complete(arguments, &self.given)?;
        self.inner.handler.invoke(Arguments::new(arguments), ctx).await
    }
}

/// A tool that no server is known to have.
struct Absent {
    server: EntryName,
    original: String,
    pack: Option<Arc<ActivePack>>,
}

#[async_trait]
impl ToolHandler for Absent {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let server = &self.server;
        let status = self.pack.as_ref().map(|pack| pack.view(&ctx.scope, &ctx.caller.subject).status);
        let message = match status {
            None => format!("there is no MCP server `{server}` here"),
            Some(status) => match status.error {
                Some(error) => format!("the MCP server `{server}` is not available: {}", error.message),
                None if status.listed_at.is_none() => format!("the MCP server `{server}` has not been listed yet"),
                None => format!("the MCP server `{server}` has no tool `{}`", self.original),
            },
        };
        Err(Failure::not_run(ErrorCode::ServerUnavailable, message).hint("`footbridge packs` shows how the server is"))
    }
}
