//! `doc_read`: the text of a document, whole or from an offset.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use super::doc_access::{missing, path_of};
use crate::documents::Documents;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

/// Characters of a reading that does not say.
const DEFAULT_CHARS: usize = 20_000;
/// Characters of the longest reading: a whole document.
const MAX_CHARS: usize = 1_048_576;

pub(super) fn tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "doc_read",
        description: "Reads a document: its text from `offset` on, at most `maxChars` characters, with the layer it comes \
                      from and its etag. `hasMore` and `nextOffset` say how to go on.",
        search_hint: "read a document",
        labels: &["docs", "read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "For instance `documents/notes.md`."},
                "offset": {"type": "integer", "minimum": 0, "description": "In characters. Default: 0."},
                "maxChars": {
                    "type": "integer", "minimum": 1, "maximum": MAX_CHARS, "description": "Default: 20000."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(DocRead(documents)))
}

struct DocRead(Documents);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    path: String,
    #[serde(default)]
    offset: usize,
    max_chars: Option<usize>,
}

#[async_trait]
impl ToolHandler for DocRead {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { path, offset, max_chars } = arguments.parse()?;
        let path = path_of(&path)?;
        let document = self.0.resolve(&ctx.scope, &path).await?.ok_or_else(|| missing(&path))?;
        let content: String = document.text.chars().skip(offset).take(max_chars.unwrap_or(DEFAULT_CHARS)).collect();
        let total = document.text.chars().count();
        let end = offset.min(total) + content.chars().count();
        let mut reply = json!({
            "path": path, "layer": document.layer, "etag": document.etag, "content": content, "offset": offset,
            "totalChars": total, "hasMore": end < total,
        });
        if end < total {
            reply["nextOffset"] = json!(end);
        }
        Ok(ToolOutput::text(&content).with_structured(&reply))
    }
}
