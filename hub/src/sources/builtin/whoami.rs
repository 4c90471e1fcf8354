//! `whoami`: for whom and where a call runs.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::BuiltIn;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool() -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "whoami",
        description: "Says for which user, tenant, project and process this call runs, and with which roles.",
        search_hint: "current user, tenant, project, roles",
        labels: &["read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
    };
    (described, Arc::new(WhoAmI))
}

struct WhoAmI;

#[async_trait]
impl ToolHandler for WhoAmI {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        Ok(ToolOutput::json(&json!({
            "user": ctx.caller.subject,
            "tenant": ctx.scope.tenant,
            "project": ctx.scope.project,
            "process": ctx.caller.process,
            "profile": ctx.caller.profile,
            "roles": ctx.caller.roles,
        })))
    }
}
