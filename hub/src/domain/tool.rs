//! Tools, where they come from, and the traits between sources, dispatcher and scripts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::id::{EntryName, FootName, Subject, ToolName};
use footbridge_shared::limits::{DEFAULT_MAX_TIMEOUT, DEFAULT_TIMEOUT};
use footbridge_shared::message::Raw;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::arguments::{ArgumentSchema, Arguments};
use super::call::{CallContext, Caller};
use super::document::Layer;
use super::failure::Failure;
use super::journal::FootTarget;
use super::output::ToolOutput;
use super::scope::Scope;

/// Names of the meta tools: no document, foot or pack may take them.
pub const RESERVED_NAMES: [&str; 6] =
    ["tool_list", "tool_description", "invoke_tool", "tool_search", "call_tool", "tool_result_read"];

/// Longest idle time of a call, wherever its tool comes from.
pub const MAX_IDLE: Duration = Duration::from_secs(3_600);
/// Longest hard time of a call, wherever its tool comes from.
pub const MAX_HARD: Duration = Duration::from_secs(86_400);

/// Which kind of source a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A document.
    Configured,
    /// Code of the hub.
    BuiltIn,
    /// A foot.
    Client,
}

impl SourceKind {
    /// The text used in listings and filters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::BuiltIn => "built-in",
            Self::Client => "client",
        }
    }

    /// The kind of that text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Configured, Self::BuiltIn, Self::Client].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Where exactly a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A document of this name.
    Configured {
        /// The document's name: the tool's, or its pack's.
        entry: EntryName,
        /// The tool type.
        type_id: &'static str,
        /// The layer whose document won.
        layer: Layer,
    },
    /// Code of the hub.
    BuiltIn,
    /// A foot's tool, under its bare or its qualified name.
    Foot {
        /// The foot, as its owner named it.
        foot: FootName,
        /// Whose foot it is.
        owner: Subject,
        /// The tool's name on that foot.
        local: ToolName,
    },
}

impl Origin {
    /// The kind of source.
    pub const fn kind(&self) -> SourceKind {
        match self {
            Self::Configured { .. } => SourceKind::Configured,
            Self::BuiltIn => SourceKind::BuiltIn,
            Self::Foot { .. } => SourceKind::Client,
        }
    }
}

/// What is known of a tool without running it.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// The public name.
    pub name: ToolName,
    /// The name where it comes from, when that differs.
    pub original_name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for a model.
    pub description: String,
    /// A short line for discovery.
    pub search_hint: Option<String>,
    /// How to use its pack.
    pub prompt_hint: Option<String>,
    /// JSON Schema of its arguments, as it came.
    pub input_schema: Raw,
    /// JSON Schema of its structured result.
    pub output_schema: Option<Raw>,
    /// MCP annotations, as they came: never a base for decisions.
    pub annotations: Option<Raw>,
    /// What the MCP tool holds beside these (`icons`, `_meta` and more), as it came: a JSON object.
    pub extra: Option<Raw>,
    /// Whether it is another one than when its source was last listed before.
    pub changed: bool,
    /// Labels for selectors, sorted.
    pub labels: Vec<String>,
    /// In the manifest from the start.
    pub primary: bool,
    /// Found by discovery.
    pub deferred: bool,
    /// Process roles that a caller needs, all of them.
    pub requires_roles: Vec<String>,
    /// Profiles that may see it; empty: all.
    pub profiles: Vec<String>,
    /// Idle time of a call.
    pub timeout: Option<Duration>,
    /// Hard time of a call.
    pub max_timeout: Option<Duration>,
    /// Where it comes from.
    pub origin: Origin,
}

impl ToolSpec {
    /// A tool of which no more is known: no description, labels or gates, the default limits. Its schema says nothing.
    pub fn bare(name: ToolName, origin: Origin) -> Self {
        Self {
            name,
            original_name: None,
            title: None,
            description: String::new(),
            search_hint: None,
            prompt_hint: None,
            input_schema: RawValue::NULL.to_owned(),
            output_schema: None,
            annotations: None,
            extra: None,
            changed: false,
            labels: Vec::new(),
            primary: false,
            deferred: false,
            requires_roles: Vec::new(),
            profiles: Vec::new(),
            timeout: None,
            max_timeout: None,
            origin,
        }
    }

    /// The role and profile gates, which hold on every path: listing, describing, searching and calling.
    pub fn admits(&self, caller: &Caller) -> bool {
        self.requires_roles.iter().all(|role| caller.roles.contains(role))
            && (self.profiles.is_empty()
                || caller.profile.as_ref().is_some_and(|profile| self.profiles.contains(profile)))
    }
}

/// A tool that can be called.
pub struct Tool {
    /// What is known of it.
    pub spec: ToolSpec,
    /// The compiled schema where the hub checks arguments; a foot checks its own.
    pub schema: Option<ArgumentSchema>,
    /// Runs it.
    pub handler: Arc<dyn ToolHandler>,
}

impl Tool {
    /// The idle and hard time of a call.
    pub fn limits(&self) -> (Duration, Duration) {
        let idle = self.spec.timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_IDLE);
        (idle, self.spec.max_timeout.unwrap_or(DEFAULT_MAX_TIMEOUT.max(idle)).min(MAX_HARD))
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Runs a tool.
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// Runs the tool to its end, to `ctx.cancel`, or to its own limits.
    ///
    /// When `ctx.cancel` fires the handler stops the work and says what became of it; the dispatcher waits a short
    /// while for that answer and gives its own otherwise.
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure>;

    /// The foot that [`Self::invoke`] hands the call to as it is; `None`: the hub runs it.
    fn runs_on(&self) -> Option<FootTarget> {
        None
    }
}

/// State of a document that names a tool or pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// It offers its tools.
    Active,
    /// It says `enabled: false`: the name resolves to nothing, in every layer below too.
    Disabled,
    /// It cannot be used: the name resolves to `tool_broken`, in every layer below too.
    Broken {
        /// Why, with document, line, column and key where known. Safe to show.
        reason: String,
    },
}

/// A document that names a tool or pack, in the layer that won.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: EntryName,
    /// Whether it offers its tools.
    pub state: EntryState,
    /// The layer that won.
    pub layer: Layer,
    /// Whether it hides what lies below: not so for a document with a reserved name.
    pub shadows: bool,
}

/// A layer that could not be looked into. What no layer above it says anything of, nobody knows: such a name resolves to
/// `tool_broken`, not to what lies below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blind {
    /// The layer.
    pub layer: Layer,
    /// Why, with the place. Safe to show.
    pub reason: String,
}

/// What a source offers to one subject in one scope: one consistent snapshot.
#[derive(Debug, Default)]
pub struct Listing {
    /// Public name → tool.
    pub tools: BTreeMap<ToolName, Arc<Tool>>,
    /// The documents behind them, broken and disabled ones included. Only configured tools have entries.
    pub entries: BTreeMap<EntryName, Entry>,
    /// The innermost layer of documents that could not be looked into.
    pub blind: Option<Blind>,
}

/// A source of tools.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// What it offers. Never waits for anything slow; what is not there yet is not in the listing.
    ///
    /// # Errors
    /// A failure with outcome `not_run` when the source cannot say (the store does not answer).
    async fn listing(&self, scope: &Scope, subject: &Subject) -> Result<Arc<Listing>, Failure>;

    /// Why a name is not in the listing that may be there soon. `None`: it is just unknown. Says nothing of what the caller
    /// may not use.
    async fn absent(&self, scope: &Scope, caller: &Caller, name: &str) -> Option<Failure> {
        let _ = (scope, caller, name);
        None
    }
}

/// Why a tool calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A script's `vance.tools.call`.
    Script,
    /// `invoke_tool` and its like: a delegated call, the wrapper's other half.
    Delegate,
}

/// Calls and lists tools on behalf of a running call, within what its caller may do. The dispatcher, seen by tools.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Calls a tool by its public name.
    async fn call(&self, ctx: &CallContext, name: &str, arguments: Arguments, via: Via) -> Result<ToolOutput, Failure>;

    /// The tools that the caller may call, by name.
    async fn list(&self, ctx: &CallContext) -> Result<Vec<Arc<Tool>>, Failure>;

    /// One of them; `None` for what does not exist and what is not the caller's alike.
    async fn find(&self, ctx: &CallContext, name: &str) -> Result<Option<Arc<Tool>>, Failure>;

    /// Several at once, out of one snapshot, in the order asked for. A name that is no tool says why it cannot be called.
    async fn find_all(&self, ctx: &CallContext, names: &[&str]) -> Result<Vec<Result<Arc<Tool>, Failure>>, Failure> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.push(self.find(ctx, name).await?.ok_or_else(|| Failure::unknown_tool(name)));
        }
        Ok(found)
    }
}

/// Stands in for the hub's tools where a test calls none of them.
#[cfg(test)]
pub(crate) struct NoTools;

#[cfg(test)]
#[async_trait]
impl ToolCaller for NoTools {
    async fn call(&self, _: &CallContext, name: &str, _: Arguments, _: Via) -> Result<ToolOutput, Failure> {
        Err(Failure::unknown_tool(name))
    }

    async fn list(&self, _: &CallContext) -> Result<Vec<Arc<Tool>>, Failure> {
        Ok(Vec::new())
    }

    async fn find(&self, _: &CallContext, _: &str) -> Result<Option<Arc<Tool>>, Failure> {
        Ok(None)
    }
}
