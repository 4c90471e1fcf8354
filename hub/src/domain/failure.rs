//! Why a call gave no result.

use footbridge_mcp::RpcError;
use footbridge_shared::{ErrorCode, Outcome};

/// A call that gave no result. Everything here but `cause` is safe to show.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Stable code.
    pub code: ErrorCode,
    /// What happened, for people and models.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether the tool ran.
    pub outcome: Outcome,
    /// When the same call may be tried again, milliseconds from now. Only with [`Outcome::NotRun`].
    pub retry_after_ms: Option<u64>,
    /// More for machines: a JSON object with a shape of the code's own (for instance the places in `invalid_arguments`).
    pub details: Option<serde_json::Value>,
    /// The JSON-RPC error of an MCP server, as it sent it, for MCP clients.
    pub rpc: Option<Box<RpcError>>,
    /// For the log alone.
    pub cause: Option<String>,
}

impl Failure {
    /// A failure with a known outcome.
    pub fn new(code: ErrorCode, outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            outcome,
            retry_after_ms: None,
            details: None,
            rpc: None,
            cause: None,
        }
    }

    /// The tool certainly did not run.
    pub fn not_run(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code, Outcome::NotRun, message)
    }

    /// There is no such tool for this caller. The same answer for a name that does not exist and one that is not theirs.
    pub fn unknown_tool(name: &str) -> Self {
        let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        Self::not_run(ErrorCode::UnknownTool, format!("there is no tool `{shown}` here"))
            .hint("`tool_list` names the tools that can be called")
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds details for machines.
    #[must_use]
    pub fn details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Adds the JSON-RPC error that it stands for.
    #[must_use]
    pub fn rpc(mut self, error: RpcError) -> Self {
        self.rpc = Some(Box::new(error));
        self
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds when to try again.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }
}
