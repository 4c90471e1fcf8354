//! `execute_javascript`: the script sandbox, for code that is written on the spot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::BuiltIn;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::script::{ScriptRequest, ScriptRunner};
use crate::domain::tool::ToolHandler;

/// Time of a run that does not say, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 5_000;
/// Longest time of a run, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 30_000;

pub(super) fn tool(scripts: Arc<dyn ScriptRunner>) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "execute_javascript",
        description: "Runs JavaScript in a sandbox without files, network or timers. The value of the last expression is \
                      the result; top-level `await` works. `vance.tools.call(name, params)` calls another tool and \
                      returns its value; `vance.tools.list()`, `vance.tools.has(name)`, `vance.documents.read(path)`, \
                      `vance.log(level, text)` and `vance.context` are there too.",
        search_hint: "run code, compute, combine several tool calls",
        labels: &["side-effect"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["code"],
            "properties": {
                "code": {"type": "string", "description": "The script."},
                "timeoutMs": {
                    "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS,
                    "description": "Longest time it may take. Default: 5000."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(ExecuteJavascript(scripts)))
}

struct ExecuteJavascript(Arc<dyn ScriptRunner>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    code: String,
    timeout_ms: Option<u64>,
}

#[async_trait]
impl ToolHandler for ExecuteJavascript {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { code, timeout_ms } = arguments.parse()?;
        let request = ScriptRequest {
            name: "execute_javascript".to_owned(),
            source: code,
            inputs: Vec::new(),
            params: RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()),
            timeout: Duration::from_millis(timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)),
        };
        self.0.run(request, ctx).await
    }
}
