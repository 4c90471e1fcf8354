//! `tool_list`: the names of all tools that the caller may call.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::id::PACK_SEPARATOR;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool() -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "tool_list",
        description: "Names every tool you may call, without descriptions: `inContext` (you have its schema already) and \
                      `available` (ask `tool_description` for its schema). `packHints` says how to use a pack, whose \
                      tools are named `<pack>__<tool>`.",
        search_hint: "names of all tools",
        labels: &["read-only"],
        primary: true,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "properties": {"prefix": {
                "type": "string", "description": "Only names that start with this, in any case."}},
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(ToolList))
}

struct ToolList;

#[derive(Deserialize)]
struct Input {
    prefix: Option<String>,
}

#[async_trait]
impl ToolHandler for ToolList {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let prefix = arguments.parse::<Input>()?.prefix.unwrap_or_default().to_lowercase();
        let (mut in_context, mut available, mut pack_hints) = (Vec::new(), Vec::new(), BTreeMap::new());
        for tool in ctx.tools.list(ctx).await? {
            let name = tool.spec.name.as_str().to_owned();
            if !name.starts_with(&prefix) {
                continue;
            }
            if let (Some((pack, _)), Some(hint)) = (name.split_once(PACK_SEPARATOR), &tool.spec.prompt_hint) {
                pack_hints.entry(pack.to_owned()).or_insert_with(|| hint.clone());
            }
            if tool.spec.primary { in_context.push(name) } else { available.push(name) }
        }
        Ok(ToolOutput::json(&json!({
            "count": in_context.len() + available.len(),
            "inContext": in_context,
            "available": available,
            "packHints": pack_hints,
        })))
    }
}
