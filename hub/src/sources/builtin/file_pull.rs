//! `file_pull`: a file of a foot, as a document.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::content::ContentHash;
use footbridge_shared::{ErrorCode, Outcome};
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use super::doc_access::{condition, path_in, writable};
use super::foot_files::FootTool;
use crate::documents::{Documents, WriteCondition};
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::feet::FootDirectory;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(documents: Documents, feet: Arc<dyn FootDirectory>) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "file_pull",
        description: "Writes a text file of a foot (a developer's machine) to a document of this project, without its text \
                      passing through you. A document of the project stays unless `overwrite` is given, or `etag` with \
                      the etag that it has. What arrived is compared with the file. Configuration documents are refused.",
        search_hint: "copy a file from a developer machine to a document",
        labels: &["docs", "files", "write", "side-effect"],
        primary: false,
        delegates: true,
        input_schema: json!({
            "type": "object",
            "required": ["path", "document"],
            "properties": {
                "foot": {"type": "string", "description": "Default: the only one that reads files."},
                "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file on the foot."},
                "document": {"type": "string", "description": "For instance `documents/notes.md`."},
                "overwrite": {"type": "boolean", "description": "Replace a document that is there. Default: false."},
                "etag": {"type": "string", "description": "Replace the document only if it has this etag."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(FilePull { documents, feet }))
}

struct FilePull {
    documents: Documents,
    feet: Arc<dyn FootDirectory>,
}

#[derive(Deserialize)]
struct Input {
    foot: Option<String>,
    path: String,
    document: String,
    #[serde(default)]
    overwrite: bool,
    etag: Option<String>,
}

/// What a foot's `file_read` answers when it is asked for a whole file.
#[derive(Deserialize)]
struct Whole {
    path: String,
    content: String,
    hash: ContentHash,
}

#[async_trait]
impl ToolHandler for FilePull {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { foot, path, document, overwrite, etag } = arguments.parse()?;
        // Refused before a foot is troubled.
        let document = writable(path_in("document", &document)?, ctx)?;
        let condition = if etag.is_none() && !overwrite { WriteCondition::Absent } else { condition(etag) };
        let file_read = FootTool::find(&*self.feet, foot.as_deref(), "file_read", ctx).await?;

        let request = json!({ "path": path, "whole": true });
        // Whatever becomes of the reading, no document was written.
        let unwritten = |failure| Failure { outcome: Outcome::NotRun, ..failure };
        let output = file_read.call(&request, ctx).await.map_err(unwritten)?;
        if output.is_error {
            return Ok(output);
        }
        let Whole { path, content, hash } = file_read.answer(&output, Outcome::NotRun)?;
        let arrived = ContentHash::of(content.as_bytes());
        if arrived != hash {
            let message =
                format!("what arrived is not the file: its hash is {arrived}, not {hash}; nothing was written");
            return Err(Failure::not_run(ErrorCode::ToolFailed, message).hint("pull it again"));
        }
        let author = ctx.caller.subject.as_str();
        let written = self.documents.put(&ctx.scope, &document, &content, author, &condition).await?;
        Ok(ToolOutput::json(&json!({
            "document": document, "layer": written.layer, "etag": written.etag, "version": written.document.version,
            "foot": file_read.foot, "path": path, "bytes": content.len(), "hash": hash,
        })))
    }
}
