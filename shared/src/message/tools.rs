//! What a foot offers.

use serde::{Deserialize, Serialize};

use super::Raw;
use crate::error::ErrorCode;
use crate::text::{clean_and_cut, is_hidden};

/// How much of a rejected tool's name the answer repeats, in characters before escaping.
const MAX_SHOWN_NAME_CHARS: usize = 80;
/// Longest reason of one rejection, in characters.
const MAX_REASON_CHARS: usize = 200;

wire! {
    /// One tool that a foot offers.
    struct ToolEntry {
        /// Its public name on this foot; `<pack>__<tool>` for a pack's tool.
        name: String,
        /// Its name where it comes from, when that differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_name: Option<String>,
        /// A name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What it does, for a model.
        description: String,
        /// A short line for discovery.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        search_hint: Option<String>,
        /// How to use its pack.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_hint: Option<String>,
        /// JSON Schema of its arguments: an object at the top.
        input_schema: Raw,
        /// JSON Schema of its structured result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Raw>,
        /// MCP annotations, as they came: never a base for decisions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotations: Option<Raw>,
        /// Labels for selectors.
        #[serde(default)]
        labels: Vec<String>,
        /// In the manifest from the start.
        #[serde(default)]
        primary: bool,
        /// Found by discovery.
        #[serde(default)]
        deferred: bool,
        /// Process roles that a caller needs, all of them.
        #[serde(default)]
        requires_roles: Vec<String>,
        /// Profiles that may see it; empty: all.
        #[serde(default)]
        profiles: Vec<String>,
        /// Idle time, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Hard time, milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_timeout_ms: Option<u64>,
        /// The pack it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pack: Option<String>,
        /// What the MCP tool holds beside these (`icons`, `_meta` and more): a JSON object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Raw>,
    }

    /// An incremental change of what the foot offers; answered by `toolsAck`.
    struct Tools {
        /// Counts up with each change of this instance.
        revision: u64,
        /// New or changed tools.
        #[serde(default)]
        upsert: Vec<ToolEntry>,
        /// Names that are gone.
        #[serde(default)]
        remove: Vec<String>,
    }

    /// A tool that was not registered.
    struct RejectedTool {
        /// Its name, as it came, with hidden characters escaped.
        tool: String,
        /// Why.
        code: ErrorCode,
        /// The same for people.
        message: String,
    }

    /// The answer to `tools`.
    struct ToolsAck {
        /// Of the change.
        revision: u64,
        /// Tools that were left out; the others are registered.
        #[serde(default)]
        rejected: Vec<RejectedTool>,
    }
}

impl ToolEntry {
    /// A tool as its own place offers it: for every caller, neither primary nor deferred, without labels and
    /// limits of its own.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Raw) -> Self {
        Self {
            name: name.into(),
            original_name: None,
            title: None,
            description: description.into(),
            search_hint: None,
            prompt_hint: None,
            input_schema,
            output_schema: None,
            annotations: None,
            labels: Vec::new(),
            primary: false,
            deferred: false,
            requires_roles: Vec::new(),
            profiles: Vec::new(),
            timeout_ms: None,
            max_timeout_ms: None,
            pack: None,
            extra: None,
        }
    }
}

impl RejectedTool {
    /// Says no to the tool of that name, which is shown escaped and cut. The reason may quote what came: it is cleaned
    /// and cut.
    pub fn new(name: &str, code: ErrorCode, message: impl AsRef<str>) -> Self {
        let escaped = |c: char| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
        let tool = name.chars().take(MAX_SHOWN_NAME_CHARS).map(escaped).collect();
        Self { tool, code, message: clean_and_cut(message.as_ref(), MAX_REASON_CHARS) }
    }
}

impl Tools {
    /// Reads a `tools` frame whose entries are not all well formed: the odd ones are rejected alone.
    ///
    /// `None`: this is no `tools` frame, or it is malformed outside its entries.
    pub fn decode_each(frame: &str) -> Option<(Self, Vec<RejectedTool>)> {
        #[derive(Deserialize)]
        struct Loose {
            r#type: String,
            revision: u64,
            #[serde(default)]
            upsert: Vec<Raw>,
            #[serde(default)]
            remove: Vec<String>,
        }
        #[derive(Deserialize)]
        struct NameOnly {
            name: String,
        }
        let Loose { r#type, revision, upsert: entries, remove } = serde_json::from_str(frame).ok()?;
        if r#type != "tools" {
            return None;
        }
        let (mut upsert, mut rejected) = (Vec::with_capacity(entries.len()), Vec::new());
        for entry in entries {
            match serde_json::from_str::<ToolEntry>(entry.get()) {
                Ok(entry) => upsert.push(entry),
                Err(error) => {
                    let name =
                        serde_json::from_str::<NameOnly>(entry.get()).map(|entry| entry.name).unwrap_or_default();
                    rejected.push(RejectedTool::new(&name, ErrorCode::BadRequest, format!("malformed entry: {error}")));
                }
            }
        }
        Some((Self { revision, upsert, remove }, rejected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_entry_is_what_its_three_fields_alone_are_read_as() {
        let text = r#"{"name": "a", "description": "b", "inputSchema": {"type": "object"}}"#;
        let schema = serde_json::from_str(r#"{"type": "object"}"#).unwrap();
        let read: ToolEntry = serde_json::from_str(text).unwrap();
        let json = |entry: &ToolEntry| serde_json::to_string(entry).unwrap();
        assert_eq!(json(&ToolEntry::new("a", "b", schema)), json(&read));
    }
}
