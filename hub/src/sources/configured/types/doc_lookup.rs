//! `doc_lookup`: a tool that reads one document.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Built, BuiltTool, Prepared, ToolType};
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::document::{DocumentPath, DocumentReader, Layer};
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;
use crate::sources::configured::paths;
use crate::yaml::{KeyPath, Node, Problem};

/// Where documents lie that tools may show. What configures the hub is not among them.
const FOLDERS: &[&str] = &["documents/", "manuals/"];

/// The type.
pub(super) struct DocLookup;

impl ToolType for DocLookup {
    fn id(&self) -> &'static str {
        "doc_lookup"
    }

    fn description(&self) -> &'static str {
        "Offers one document as a tool without arguments. It is read through the cascade at each call; the result is \
         {path, content, chars, layer}."
    }

    fn parameters(&self) -> Json {
        json!({
            "type": "object",
            "required": ["path"],
            "additionalProperties": false,
            "properties": {
                "path": {
                    "type": "string",
                    "description": "Path of the document, under `documents/` or `manuals/`.",
                },
            },
        })
    }

    fn prepare(&self, parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Prepared> {
        let document = paths::under(FOLDERS, parameters.get("path")?, &path.key("path"), problems)?;
        Some(Box::new(move |deps, _| {
            Built::Tool(Box::new(BuiltTool {
                input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
                output_schema: Some(json!({
                    "type": "object",
                    "required": ["path", "content", "chars", "layer"],
                    "properties": {
                        "path": {"type": "string"},
                        "content": {"type": "string"},
                        "chars": {"type": "integer"},
                        "layer": {"type": "string"},
                    },
                })),
                handler: Arc::new(Lookup { document, documents: deps.documents.clone() }),
            }))
        }))
    }
}

struct Lookup {
    document: DocumentPath,
    documents: Arc<dyn DocumentReader>,
}

#[derive(Serialize)]
struct Found<'a> {
    path: &'a DocumentPath,
    content: &'a str,
    chars: usize,
    layer: Layer,
}

#[async_trait]
impl ToolHandler for Lookup {
    async fn invoke(&self, _arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        match self.documents.read(&ctx.scope, &self.document).await? {
            Some(found) => {
                let text = ToolOutput::text(&found.text);
                Ok(text.with_structured(&Found {
                    path: &found.path,
                    content: &found.text,
                    chars: found.text.chars().count(),
                    layer: found.layer,
                }))
            }
            None => Ok(ToolOutput::error(
                ErrorCode::NotFound,
                &format!("there is no document `{}`", self.document),
                Some("write the document, or point the tool to another one".to_owned()),
            )),
        }
    }
}
