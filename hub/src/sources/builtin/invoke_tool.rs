//! `invoke_tool`: a call by name, for models that may not name a tool outside their manifest.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::{ToolHandler, Via};

const NAME: &str = "invoke_tool";

pub(super) fn tool() -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: NAME,
        description: "Calls a tool by its name and returns that tool's own result. The same rules apply as for a direct \
                      call. Use `tool_list` for names and `tool_description` for parameters first.",
        search_hint: "call any tool by name",
        labels: &["side-effect"],
        primary: true,
        delegates: true,
        input_schema: json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "The tool's name."},
                "params": {"type": ["object", "null"], "description": "Its arguments. Default: none."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(InvokeTool))
}

struct InvokeTool;

#[derive(Deserialize)]
struct Input {
    name: String,
    params: Option<Raw>,
}

#[async_trait]
impl ToolHandler for InvokeTool {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { name, params } = arguments.parse()?;
        if name == NAME {
            return Err(Failure::not_run(ErrorCode::InvalidArguments, "/name: `invoke_tool` does not call itself"));
        }
        let params = params.map_or_else(Arguments::empty, Arguments::new);
        ctx.tools.call(ctx, &name, params, Via::Delegate).await
    }
}
