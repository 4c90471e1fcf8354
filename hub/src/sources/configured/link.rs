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
use super::status::PackState;
use super::types::Link;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::{Tool, ToolHandler, ToolSpec};
use crate::yaml::did_you_mean;

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

    /// What is wrong with what the document names, as things are.
    pub(super) fn mistake(&self, packs: &[Arc<ActivePack>]) -> Option<Mistake> {
        Meant { server: &self.server, original: &self.original }.mistake(packs, |_| true)
    }

    /// The tool: what it takes and gives comes from the server, what it is for from the document. `pack` is what has the
    /// server's name among the catalog's `packs`, with the tools it has now.
    pub(super) fn tool(&self, pack: Option<(&Arc<ActivePack>, &[Arc<Tool>])>, packs: &[Arc<ActivePack>]) -> Tool {
        let server = pack.filter(|(pack, _)| pack.server().is_some());
        let is_meant = |tool: &&Arc<Tool>| tool.spec.original_name.as_deref() == Some(self.original.as_str());
        let Some(inner) = server.and_then(|(_, tools)| tools.iter().find(is_meant)) else {
            let servers = packs.iter().filter(|pack| pack.server().is_some()).cloned().collect();
            let absent = Absent { server: self.server.clone(), original: self.original.clone(), servers };
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
    /// The servers of the same catalog.
    servers: Vec<Arc<ActivePack>>,
}

#[async_trait]
impl ToolHandler for Absent {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let named = Meant { server: &self.server, original: &self.original };
        // Names of what the caller may not use are none of their business.
        if let Some(Mistake { message, hint }) = named.mistake(&self.servers, |pack| pack.admits(&ctx.caller)) {
            return Err(Failure::not_run(ErrorCode::ToolBroken, message).hint(hint));
        }
        let server = &self.server;
        let pack = self.servers.iter().find(|pack| pack.name() == server);
        let error = pack.and_then(|pack| pack.view(&ctx.scope, &ctx.caller.subject).status.error);
        let message = match error {
            Some(error) => format!("the MCP server `{server}` is not available: {}", error.message),
            None => format!("the MCP server `{server}` has not been listed yet"),
        };
        Err(Failure::not_run(ErrorCode::ServerUnavailable, message).hint("`footbridge packs` shows how the server is"))
    }
}

/// What a document names.
struct Meant<'a> {
    server: &'a EntryName,
    original: &'a str,
}

/// A document that names what is not there, and will not be there by itself. Safe to show.
pub(super) struct Mistake {
    pub(super) message: String,
    pub(super) hint: String,
}

impl Meant<'_> {
    /// What is wrong with it, other than that its server is away. Names are suggested of packs that may be known.
    fn mistake(&self, packs: &[Arc<ActivePack>], may_be_known: impl Fn(&ActivePack) -> bool) -> Option<Mistake> {
        let Self { server, original } = *self;
        let guess = |word: Option<&str>, else_hint: &str| match word {
            Some(word) => format!("did you mean `{word}`?"),
            None => else_hint.to_owned(),
        };
        let servers = || packs.iter().filter(|pack| pack.server().is_some());
        let Some(pack) = servers().find(|pack| pack.name() == server) else {
            let known = servers().filter(|pack| may_be_known(pack)).map(|pack| pack.name().as_str());
            let hint =
                guess(did_you_mean(server.as_str(), known), "`footbridge packs` lists the servers that there are");
            return Some(Mistake { message: format!("there is no MCP server `{server}` here"), hint });
        };
        let attached = pack.server()?.server();
        let listed = attached.listed();
        if attached.status().state != PackState::Ready || listed.tool(original).is_some() {
            return None;
        }
        let known = listed.tools.iter().filter(|_| may_be_known(pack));
        let known = known.filter_map(|tool| tool.spec.original_name.as_deref());
        let hint = guess(did_you_mean(original, known), "`parameters.toolName` is the tool's name on the server");
        Some(Mistake { message: format!("the MCP server `{server}` has no tool `{original}`"), hint })
    }
}
