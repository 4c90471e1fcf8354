//! `doc_delete`: a document of this project.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use super::doc_access::{condition, writable_path_of};
use crate::documents::Documents;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "doc_delete",
        description: "Deletes this project's own document of a path; what the tenant or the bundled documents have there \
                      is seen again. Its versions can still be read. Configuration documents are refused.",
        search_hint: "delete a document",
        labels: &["docs", "write", "side-effect"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "For instance `documents/notes.md`."},
                "etag": {"type": "string", "description": "Delete only if the document has this etag."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(DocDelete(documents)))
}

struct DocDelete(Documents);

#[derive(Deserialize)]
struct Input {
    path: String,
    etag: Option<String>,
}

#[async_trait]
impl ToolHandler for DocDelete {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { path, etag } = arguments.parse()?;
        let path = writable_path_of(&path, ctx)?;
        self.0.delete(&ctx.scope, &path, ctx.caller.subject.as_str(), &condition(etag)).await?;
        Ok(ToolOutput::json(&json!({ "path": path, "deleted": true })))
    }
}
