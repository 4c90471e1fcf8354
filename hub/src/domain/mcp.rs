//! MCP between the clients of the hub and the servers that are attached to it, wherever those run.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_mcp::{Fields, Lifecycle, RpcError, Version, codes};
pub use footbridge_mcp::{can_be_asked, declined};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{EntryName, Subject};
use footbridge_shared::message::Raw;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::call::CallContext;
use super::failure::Failure;
use super::scope::Scope;

/// The MCP client that caused a call: whom a server may ask, and tell.
#[async_trait]
pub trait McpClient: Send + Sync {
    /// The version it speaks.
    fn version(&self) -> Version;

    /// Its capabilities, as it stated them: a JSON object.
    fn capabilities(&self) -> &Raw;

    /// Its session at this hub, opaque; without one every call stands alone.
    fn session(&self) -> Option<&str>;

    /// Fires when its session has ended. `None`: nobody says, or it has none.
    fn ended(&self) -> Option<CancellationToken> {
        None
    }

    /// Asks it (`elicitation/create`, `sampling/createMessage`, `roots/list`). A client that cannot answer this has it
    /// declined for it at once. Dropped, the question is withdrawn.
    ///
    /// # Errors
    /// The client's own error, or why it could not be asked.
    async fn request(&self, method: &str, params: Raw) -> Result<Raw, RpcError>;

    /// Tells it something that belongs to this call (`notifications/message` and others). Never waits.
    fn notify(&self, method: &str, params: Raw);
}

/// How a client without session is asked: by a result that says so.
impl dyn McpClient {
    /// The lifecycle it follows.
    pub fn lifecycle(&self) -> Lifecycle {
        self.version().lifecycle()
    }
}

/// What a server offers beside tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `prompts/list`
    Prompts,
}

impl ListKind {
    /// All.
    pub const ALL: [Self; 3] = [Self::Resources, Self::ResourceTemplates, Self::Prompts];

    /// The method that lists them.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The field of its result that holds them.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// What an attached server says of itself.
#[derive(Debug, Clone)]
pub struct McpDescription {
    /// The version it speaks.
    pub version: Version,
    /// Its `serverInfo`, as it came.
    pub info: Raw,
    /// Its capabilities, as they came.
    pub capabilities: Raw,
    /// How to use it.
    pub instructions: Option<String>,
}

/// For whom a server works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAudience {
    /// For everybody who may use it.
    Everybody,
    /// For one subject.
    Subject(Subject),
    /// For one MCP session of a subject.
    Session(Subject, String),
}

/// What a server tells by itself, beside what belongs to a call.
#[derive(Debug, Clone)]
pub enum McpNote {
    /// Its tools, resources or prompts are others now.
    ListChanged,
    /// Anything else (`notifications/resources/updated`, `notifications/message`), for these.
    Told {
        /// For whom.
        audience: McpAudience,
        /// The method.
        method: String,
        /// Its parameters.
        params: Raw,
    },
}

/// An attached MCP server, as far as it is no list of tools.
#[async_trait]
pub trait McpServer: Send + Sync {
    /// The name of its pack.
    fn name(&self) -> &EntryName;

    /// What it says of itself. `None`: it has not been heard of yet.
    fn description(&self) -> Option<Arc<McpDescription>>;

    /// What it offered when it was last heard of, by kind: MCP objects as they came. Never waits.
    fn listed(&self, kind: ListKind) -> Arc<[Raw]>;

    /// Its tools by original name with their public names: those that are offered.
    fn tools(&self) -> Arc<McpTools>;

    /// Passes a request on to it: anything but `tools/call`, which goes through the dispatcher. `ctx` tells for whom, how
    /// long, and which client can be asked meanwhile.
    ///
    /// # Errors
    /// The server's own error, or one of the hub's with the stable code in its `data`.
    async fn request(&self, ctx: &CallContext, method: &str, params: Raw) -> Result<Raw, RpcError>;

    /// What it tells by itself from now on.
    fn notes(&self) -> broadcast::Receiver<McpNote>;
}

/// Original name ↔ public name of a server's tools, in the server's order.
#[derive(Debug, Default)]
pub struct McpTools {
    /// Pairs (original, public).
    pub names: Vec<(String, footbridge_shared::id::ToolName)>,
}

/// Knows attached servers.
#[async_trait]
pub trait McpServers: Send + Sync {
    /// The servers that a subject may use, by name. Never waits for a server.
    ///
    /// # Errors
    /// When the documents cannot be read.
    async fn servers(&self, scope: &Scope, subject: &Subject) -> Result<Vec<Arc<dyn McpServer>>, Failure>;
}

/// A failure of the hub's own, for an MCP client: the error of the server that it stands for, else one with the stable code
/// in its `data`.
pub fn rpc_error(failure: &Failure) -> RpcError {
    if let Some(rpc) = &failure.rpc {
        return (**rpc).clone();
    }
    let code = match failure.code {
        ErrorCode::InvalidArguments
        | ErrorCode::BadRequest
        | ErrorCode::InvalidPath
        | ErrorCode::PayloadTooLarge
        | ErrorCode::NotFound => codes::INVALID_PARAMS,
        _ => codes::INTERNAL_ERROR,
    };
    let mut data = Fields::new();
    data.set_value("code", &failure.code);
    data.set_value("outcome", &failure.outcome);
    if let Some(hint) = &failure.hint {
        data.set_value("hint", hint);
    }
    if let Some(ms) = failure.retry_after_ms {
        data.set_value("retryAfterMs", &ms);
    }
    RpcError { code, message: failure.message.clone(), data: Some(data.to_raw()) }
}
