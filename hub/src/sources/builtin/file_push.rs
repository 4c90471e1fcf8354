//! `file_push`: a document, as a file of a foot.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::content::{CONTENT_HASH_PATTERN, ContentHash};
use footbridge_shared::{ErrorCode, Outcome};
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use super::doc_access::{missing, path_in};
use super::foot_files::FootTool;
use crate::documents::Documents;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::feet::FootDirectory;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(documents: Documents, feet: Arc<dyn FootDirectory>) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "file_push",
        description: "Writes a document to a file on a foot (a developer's machine), without its text passing through you. \
                      An existing file stays unless `overwrite` is given, or `ifHash` with the hash that the file has. \
                      What arrived is compared with the document.",
        search_hint: "copy a document to a file on a developer machine",
        labels: &["docs", "files", "write", "side-effect"],
        primary: false,
        delegates: true,
        input_schema: json!({
            "type": "object",
            "required": ["document", "path"],
            "properties": {
                "document": {"type": "string", "description": "For instance `documents/notes.md`."},
                "foot": {"type": "string", "description": "Default: the only one that writes files."},
                "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The file on the foot."},
                "overwrite": {"type": "boolean", "description": "Replace a file that is there. Default: false."},
                "ifHash": {"type": "string", "pattern": CONTENT_HASH_PATTERN,
                           "description": "Replace the file only if it has this hash."},
                "createFolders": {"type": "boolean", "description": "Make folders that are missing. Default: false."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(FilePush { documents, feet }))
}

struct FilePush {
    documents: Documents,
    feet: Arc<dyn FootDirectory>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    document: String,
    foot: Option<String>,
    path: String,
    #[serde(default)]
    overwrite: bool,
    if_hash: Option<ContentHash>,
    #[serde(default)]
    create_folders: bool,
}

/// What a foot's `file_write` answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    path: String,
    hash: ContentHash,
    created: bool,
    previous_hash: Option<ContentHash>,
}

#[async_trait]
impl ToolHandler for FilePush {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { document, foot, path, overwrite, if_hash, create_folders } = arguments.parse()?;
        let document = path_in("document", &document)?;
        let found = self.documents.resolve(&ctx.scope, &document).await?.ok_or_else(|| missing(&document))?;
        let file_write = FootTool::find(&*self.feet, foot.as_deref(), "file_write", ctx).await?;

        let mut request = json!({ "path": path, "content": found.text });
        if let Some(hash) = if_hash {
            request["ifHash"] = json!(hash);
        } else if !overwrite {
            request["ifAbsent"] = json!(true);
        }
        if create_folders {
            request["createFolders"] = json!(true);
        }
        let output = file_write.call(&request, ctx).await?;
        if output.is_error {
            return Ok(output);
        }
        // It did something, whatever that was.
        let written: Written = file_write.answer(&output, Outcome::Unknown)?;
        let hash = ContentHash::of(found.text.as_bytes());
        if written.hash != hash {
            let message =
                format!("the file was written, but is not the document: its hash is {}, not {hash}", written.hash);
            return Err(Failure::new(ErrorCode::ToolFailed, Outcome::Completed, message)
                .hint("look at the file; push again with `overwrite`"));
        }
        let mut reply = json!({
            "document": document, "layer": found.layer, "etag": found.etag, "foot": file_write.foot, "path": written.path,
            "bytes": found.text.len(), "hash": hash, "created": written.created,
        });
        if let Some(previous) = written.previous_hash {
            reply["previousHash"] = json!(previous);
        }
        Ok(ToolOutput::json(&reply))
    }
}
