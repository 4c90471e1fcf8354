//! `foot_list`: the feet that work for the caller.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::BuiltIn;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::feet::FootDirectory;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(feet: Arc<dyn FootDirectory>) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "foot_list",
        description: "Lists the feet (developer machines) that work for you here: name, owner, state, machine, and the \
                      tools each offers. The tool `t` of a foot `f` can be called as `f__t`; the bare name `t` goes to \
                      the first foot that offers it.",
        search_hint: "connected developer machines and their tools",
        labels: &["read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
    };
    (described, Arc::new(FootList(feet)))
}

struct FootList(Arc<dyn FootDirectory>);

#[async_trait]
impl ToolHandler for FootList {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let feet = self.0.feet(&ctx.scope, &ctx.caller.subject);
        Ok(ToolOutput::json(&json!({ "count": feet.len(), "feet": feet })))
    }
}
