//! `doc_write`: a document, whole.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use super::doc_access::{condition, writable_path_of};
use crate::documents::{Documents, WriteCondition};
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "doc_write",
        description: "Writes a document of this project, whole. With `etag` only if the document still has that etag; \
                      with `create` only if the project has none of that path. Configuration documents are refused.",
        search_hint: "create or replace a document",
        labels: &["docs", "write", "side-effect"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["path", "content"],
            "properties": {
                "path": {"type": "string", "description": "For instance `documents/notes.md`."},
                "content": {"type": "string", "description": "The whole text."},
                "etag": {"type": "string", "description": "Write only if the document has this etag."},
                "create": {"type": "boolean", "description": "Write only if there is none yet."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(DocWrite(documents)))
}

struct DocWrite(Documents);

#[derive(Deserialize)]
struct Input {
    path: String,
    content: String,
    etag: Option<String>,
    #[serde(default)]
    create: bool,
}

#[async_trait]
impl ToolHandler for DocWrite {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { path, content, etag, create } = arguments.parse()?;
        let path = writable_path_of(&path, ctx)?;
        let condition = if create { WriteCondition::Absent } else { condition(etag) };
        let written = self.0.put(&ctx.scope, &path, &content, ctx.caller.subject.as_str(), &condition).await?;
        Ok(ToolOutput::json(&json!({
            "path": path, "layer": written.layer, "etag": written.etag, "version": written.document.version,
            "chars": content.chars().count(),
        })))
    }
}
