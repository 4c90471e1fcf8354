//! `manual_list` and `manual_read`: longer texts on how to do things, kept as documents under `manuals/`.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::BuiltIn;
use super::doc_access::path_of;
use crate::documents::Documents;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

/// Where manuals lie.
const FOLDER: &str = "manuals/";
/// What a manual's file is called.
const EXTENSION: &str = ".md";
/// Manuals that one listing shows.
const MAX_MANUALS: usize = 500;
/// Longest summary in a listing, characters.
const MAX_SUMMARY_CHARS: usize = 300;

pub(super) fn list_tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "manual_list",
        description: "Lists the manuals: name, title and summary of each. `manual_read` opens one.",
        search_hint: "how-to manuals",
        labels: &["docs", "read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
    };
    (described, Arc::new(ManualList(documents)))
}

pub(super) fn read_tool(documents: Documents) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "manual_read",
        description: "Opens a manual by its name, as `manual_list` shows it.",
        search_hint: "read a how-to manual",
        labels: &["docs", "read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "description": "For instance `connecting-a-foot`."}},
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(ManualRead(documents)))
}

struct ManualList(Documents);

#[async_trait]
impl ToolHandler for ManualList {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let page = self.0.list(&ctx.scope, FOLDER, None, MAX_MANUALS).await?;
        let mut manuals = Vec::new();
        for entry in page.documents {
            let Some(name) = entry.path.as_str().strip_prefix(FOLDER).and_then(|file| file.strip_suffix(EXTENSION))
            else {
                continue;
            };
            // One that cannot be read costs itself, not the listing.
            let text = self.0.resolve(&ctx.scope, &entry.path).await.ok().flatten().map(|document| document.text);
            manuals.push(describe(name, text.as_deref().unwrap_or_default()));
        }
        Ok(ToolOutput::json(&json!({ "count": manuals.len(), "manuals": manuals })))
    }
}

struct ManualRead(Documents);

#[derive(Deserialize)]
struct Input {
    name: String,
}

#[async_trait]
impl ToolHandler for ManualRead {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Input { name } = arguments.parse()?;
        let bare = name.strip_prefix(FOLDER).unwrap_or(&name);
        let bare = bare.strip_suffix(EXTENSION).unwrap_or(bare);
        let path = path_of(&format!("{FOLDER}{bare}{EXTENSION}"))?;
        let document = self.0.resolve(&ctx.scope, &path).await?.ok_or_else(|| {
            Failure::not_run(ErrorCode::NotFound, format!("there is no manual `{bare}`"))
                .hint("`manual_list` lists them")
        })?;
        let reply = json!({ "name": bare, "layer": document.layer, "content": document.text });
        Ok(ToolOutput::text(&document.text).with_structured(&reply))
    }
}

/// Name, title (the first heading) and summary (the first paragraph below it).
fn describe(name: &str, text: &str) -> Value {
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(name);
    let paragraphs = text.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with('#'));
    let summary = paragraphs.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    json!({ "name": name, "title": title.trim(), "summary": summary.chars().take(MAX_SUMMARY_CHARS).collect::<String>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_is_described_by_its_heading_and_first_paragraph() {
        let described = describe("x", "# The title\n\nFirst line\nsecond line.\n\nMore.");
        assert_eq!(described, json!({"name": "x", "title": "The title", "summary": "First line second line."}));
        assert_eq!(describe("x", "")["title"], "x");
    }
}
