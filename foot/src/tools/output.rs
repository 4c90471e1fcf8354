//! What a tool answers: MCP content blocks, and the same as structured JSON.

use footbridge_shared::message::Raw;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The answer of a tool that ran, also when it says that it failed.
#[derive(Debug, Clone)]
pub(crate) struct ToolOutput {
    /// MCP content blocks: a JSON array.
    pub(crate) content: Raw,
    /// The structured result.
    pub(crate) structured: Option<Raw>,
    /// Whether the tool says that it failed.
    pub(crate) is_error: bool,
    /// MCP `_meta`.
    pub(crate) meta: Option<Raw>,
    /// What an MCP result holds beside these, as it came: a JSON object.
    pub(crate) extra: Option<Raw>,
}

impl ToolOutput {
    /// One text block.
    pub(crate) fn text(text: &str) -> Self {
        Self::texts(&[text])
    }

    /// Text blocks.
    pub(crate) fn texts(texts: &[&str]) -> Self {
        #[derive(Serialize)]
        struct Text<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        let blocks: Vec<Text<'_>> = texts.iter().map(|text| Text { r#type: "text", text }).collect();
        Self { content: raw(&blocks), structured: None, is_error: false, meta: None, extra: None }
    }

    /// One line an entry, and what is to be said about them in brackets at the end.
    pub(crate) fn listing(mut lines: Vec<String>, notes: &[String]) -> Self {
        if !notes.is_empty() {
            lines.push(format!("[{}]", notes.join("; ")));
        }
        Self::text(&lines.join("\n"))
    }

    /// Adds the same as JSON, for scripts and for clients that read structured results.
    #[must_use]
    pub(crate) fn with_structured<T: Serialize>(mut self, value: &T) -> Self {
        self.structured = Some(raw(value));
        self
    }

    /// Bytes that the answer takes in a frame, but for the frame's own fields.
    pub(crate) fn wire_bytes(&self) -> usize {
        let optional =
            [&self.structured, &self.meta, &self.extra].map(|raw| raw.as_ref().map_or(0, |raw| raw.get().len()));
        self.content.get().len() + optional.iter().sum::<usize>()
    }
}

/// Writing plain values to memory cannot fail; `null` would be refused by whoever reads it.
pub(crate) fn raw<T: Serialize + ?Sized>(value: &T) -> Raw {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
