//! Scripts, as tool types see them: something that runs a source text with inputs.

use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::message::Raw;

use super::call::CallContext;
use super::failure::Failure;
use super::output::ToolOutput;

/// One run of a script.
#[derive(Debug, Clone)]
pub struct ScriptRequest {
    /// What error places call the script: the document's path, or the tool's name.
    pub name: String,
    /// The source text.
    pub source: String,
    /// Top-level variables: name and JSON value, in the order they are bound. Each name is a JavaScript identifier.
    pub inputs: Vec<(String, Raw)>,
    /// What the script sees as `vance.params`: a JSON object.
    pub params: Raw,
    /// Wall-clock time of the whole run, pending jobs and result conversion included. The call's own clock may be shorter.
    pub timeout: Duration,
}

/// Runs scripts in the sandbox.
#[async_trait]
pub trait ScriptRunner: Send + Sync {
    /// Runs a script to its end or its limits.
    ///
    /// The output is structured, `{value, durationMs}`; a script that throws or does not compile gives an error output with
    /// the code `script_error`, and likewise for its limits.
    ///
    /// # Errors
    /// A failure when the script did not run (`script_busy`) or its fate is unknown (`script_worker_lost`).
    async fn run(&self, request: ScriptRequest, ctx: &CallContext) -> Result<ToolOutput, Failure>;
}
