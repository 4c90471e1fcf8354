//! How the tools that run commands present themselves.

use footbridge_shared::message::ToolEntry;
use serde_json::{Value, json};

use super::READ_ONLY;
use super::output::raw;

/// What the argument `id` is.
pub(super) const ID: &str = "The command's id, from exec_run.";

/// What a tool does to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only looks.
    Looks,
    /// It may do anything.
    Changes,
}

/// An entry with what they all have in common.
pub(super) fn entry(
    name: &str,
    title: &str,
    description: &str,
    kind: Kind,
    properties: &Value,
    required: &[&str],
) -> ToolEntry {
    let schema =
        json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false});
    let looks = kind == Kind::Looks;
    let annotations =
        json!({"title": title, "readOnlyHint": looks, "destructiveHint": !looks, "openWorldHint": !looks});
    let labels = if looks { vec!["exec", READ_ONLY] } else { vec!["exec", "side-effect"] };
    ToolEntry {
        title: Some(title.to_owned()),
        annotations: Some(raw(&annotations)),
        labels: labels.into_iter().map(str::to_owned).collect(),
        ..ToolEntry::new(name, description, raw(&schema))
    }
}
