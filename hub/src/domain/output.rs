//! What a tool answers: MCP content blocks, passed on as they came.

use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The answer of a tool that ran, also when it says that it failed.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// MCP content blocks: a JSON array.
    pub content: Raw,
    /// The structured result.
    pub structured: Option<Raw>,
    /// Whether the tool says that it failed. Counts as a failure for usage, health and the caller.
    pub is_error: bool,
    /// MCP `_meta`.
    pub meta: Option<Raw>,
    /// What an MCP result holds beside these (`resultType` and more), as it came: a JSON object.
    pub extra: Option<Raw>,
    /// With `is_error`: a stable code.
    pub code: Option<ErrorCode>,
    /// With `is_error`: what to do about it.
    pub hint: Option<String>,
}

impl ToolOutput {
    /// Content blocks from elsewhere.
    pub fn relayed(content: Raw, structured: Option<Raw>, is_error: bool, meta: Option<Raw>) -> Self {
        let code = is_error.then_some(ErrorCode::ToolFailed);
        Self { content, structured, is_error, meta, extra: None, code, hint: None }
    }

    /// One text block.
    pub fn text(text: &str) -> Self {
        Self::relayed(text_content(text), None, false, None)
    }

    /// A JSON value: `structured`, and the same as the text of one block for models that read only that.
    pub fn json<T: Serialize>(value: &T) -> Self {
        Self::raw_json(to_raw_value(value).unwrap_or_else(|_| null()))
    }

    /// As [`Self::json`], for JSON that is already text.
    pub fn raw_json(value: Raw) -> Self {
        Self::relayed(text_content(value.get()), Some(value), false, None)
    }

    /// The tool ran and failed.
    pub fn error(code: ErrorCode, message: &str, hint: Option<String>) -> Self {
        Self { code: Some(code), hint, ..Self::relayed(text_content(message), None, true, None) }
    }

    /// Adds a structured result.
    #[must_use]
    pub fn with_structured<T: Serialize>(mut self, value: &T) -> Self {
        self.structured = to_raw_value(value).ok();
        self
    }

    /// The text of all text blocks, joined by newlines.
    pub fn joined_text(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Block {
            #[serde(default)]
            text: Option<String>,
        }
        serde_json::from_str::<Vec<Block>>(self.content.get())
            .map(|blocks| blocks.into_iter().filter_map(|b| b.text).collect::<Vec<_>>().join("\n"))
            .unwrap_or_default()
    }
}

fn null() -> Raw {
    RawValue::NULL.to_owned()
}

/// A content array with one text block.
pub fn text_content(text: &str) -> Raw {
    #[derive(Serialize)]
    struct Text<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    to_raw_value(&[Text { r#type: "text", text }]).unwrap_or_else(|_| null())
}
