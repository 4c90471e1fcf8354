//! `doc_edit`: one place of a document.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use super::doc_access::{missing, writable_path_of};
use crate::documents::{Documents, WriteCondition};
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "doc_edit",
        description: "Replaces one place of a document: `oldText` must stand in it exactly once. A document that is \
                      inherited from the tenant or the bundled ones is copied into this project with the change. \
                      Configuration documents are refused.",
        search_hint: "change part of a document",
        labels: &["docs", "write", "side-effect"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["path", "oldText", "newText"],
            "properties": {
                "path": {"type": "string", "description": "For instance `documents/notes.md`."},
                "oldText": {"type": "string", "minLength": 1, "description": "What is there, exactly."},
                "newText": {"type": "string", "description": "What shall be there."},
            },
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(DocEdit(documents)))
}

struct DocEdit(Documents);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    path: String,
    old_text: String,
    new_text: String,
}

#[async_trait]
impl ToolHandler for DocEdit {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { path, old_text, new_text } = arguments.parse()?;
        let path = writable_path_of(&path, ctx)?;
        let document = self.0.resolve(&ctx.scope, &path).await?.ok_or_else(|| missing(&path))?;
        let at = only_place(&document.text, &old_text)?;
        let mut text = document.text.clone();
        text.replace_range(at..at + old_text.len(), &new_text);
        // What was read is what is changed: a write in between is not lost.
        let unchanged = WriteCondition::Matches(vec![document.etag]);
        let written = self.0.put(&ctx.scope, &path, &text, ctx.caller.subject.as_str(), &unchanged).await?;
        Ok(ToolOutput::json(&json!({
            "path": path, "layer": written.layer, "etag": written.etag, "version": written.document.version,
            "line": document.text[..at].matches('\n').count() + 1, "chars": text.chars().count(),
        })))
    }
}

/// Where `old` stands in `text`, if exactly once. Overlapping places count each.
fn only_place(text: &str, old: &str) -> Result<usize, Failure> {
    let refuse = |message: &str, hint: &str| {
        Err(Failure::not_run(ErrorCode::InvalidArguments, format!("/oldText: {message}")).hint(hint))
    };
    let Some(first) = text.find(old) else {
        return refuse("it does not stand in the document", "read the document and copy the place exactly");
    };
    let next = first + old.chars().next().map_or(1, char::len_utf8);
    if text[next..].contains(old) {
        return refuse("it stands in the document more than once", "give more of the text around the place");
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_only_if_it_is_the_only_one() {
        assert_eq!(only_place("one two", "two").ok(), Some(4));
        assert!(only_place("one two", "three").is_err());
        assert!(only_place("aaa", "aa").is_err(), "overlapping places are two");
        assert_eq!(only_place("é漢é!", "é!").ok(), Some(5));
    }
}
