//! `doc_list`: documents by prefix.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use crate::documents::Documents;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

/// Documents of a page that does not say.
const DEFAULT_LIMIT: usize = 100;
/// Documents of the largest page.
const MAX_LIMIT: usize = 1_000;

pub(super) fn tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "doc_list",
        description: "Lists documents whose path starts with a prefix: path, layer, etag, size. Ask again with \
                      `nextCursor` for the next page.",
        search_hint: "list documents by path prefix",
        labels: &["docs", "read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "properties": {
                "prefix": {"type": "string", "description": "For instance `documents/`. Default: all."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
                "cursor": {"type": "string", "description": "`nextCursor` of the page before."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(DocList(documents)))
}

struct DocList(Documents);

#[derive(Deserialize)]
struct Input {
    prefix: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[async_trait]
impl ToolHandler for DocList {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { prefix, limit, cursor } = arguments.parse()?;
        let prefix = prefix.unwrap_or_default();
        let page = self.0.list(&ctx.scope, &prefix, cursor.as_deref(), limit.unwrap_or(DEFAULT_LIMIT)).await?;
        Ok(ToolOutput::json(&page))
    }
}
