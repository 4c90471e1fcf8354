//! Tools for people.

use comfy_table::Table;

use crate::api::tools::{ServerToolSummary, ToolDetail, ToolState, ToolSummary, ToolTypeView, Why, WhyLayer};
use crate::cli::table::{cell, elapsed, optional, rendered, table};

/// Longest description in a listing, in characters.
const MAX_DESCRIPTION_CHARS: usize = 80;

pub(super) fn tools(tools: &[ToolSummary]) -> Table {
    let mut table = table(["tool", "source", "from", "state", "labels", "description"]);
    for tool in tools {
        table.add_row([
            cell(&tool.name),
            cell(&tool.source),
            optional(tool.foot.as_ref().or(tool.layer.as_ref())),
            cell(state(tool.state)),
            cell(tool.labels.join(", ")),
            cell(first_line(tool.reason.as_ref().unwrap_or(&tool.description))),
        ]);
    }
    table
}

pub(super) fn documents(documents: &[ServerToolSummary]) -> Table {
    let mut table = table(["document", "type", "layer", "etag", "state", "reason"]);
    for document in documents {
        table.add_row([
            cell(&document.name),
            optional(document.type_id.as_ref()),
            cell(&document.layer),
            cell(&document.etag),
            cell(state(document.state)),
            optional(document.reason.as_ref()),
        ]);
    }
    table
}

pub(super) fn types(types: &[ToolTypeView]) -> Table {
    let mut table = table(["type", "makes", "parameters", "description"]);
    for tool_type in types {
        let parameters = tool_type.parameters.get("properties").and_then(|properties| properties.as_object());
        let names = parameters.map(|names| names.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
        table.add_row([
            cell(&tool_type.id),
            cell(if tool_type.pack { "many tools" } else { "one tool" }),
            optional(names),
            cell(first_line(&tool_type.description)),
        ]);
    }
    table
}

pub(super) fn detail(tool: &ToolDetail) -> String {
    let summary = &tool.summary;
    let mut lines = vec![summary.name.clone()];
    lines.extend(summary.description.lines().map(|line| format!("  {line}")));
    lines.push(String::new());
    let mut fact = |name: &str, value: Option<String>| {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| format!("{:<14}{}", name, cell(value))));
    };
    fact("title", tool.title.clone());
    fact("source", Some(summary.source.clone()));
    fact("layer", summary.layer.clone());
    fact("foot", summary.foot.clone());
    fact("there called", tool.original_name.clone());
    fact("state", Some(state(summary.state).to_owned()));
    fact("reason", summary.reason.clone());
    fact("labels", Some(summary.labels.join(", ")));
    fact("needs roles", Some(tool.requires_roles.join(", ")));
    fact("for profiles", Some(tool.profiles.join(", ")));
    fact(
        "time",
        Some(format!("{} without a sign of life, {} in all", elapsed(tool.timeout_ms), elapsed(tool.max_timeout_ms))),
    );
    lines.push(format!("\narguments\n{}", pretty(&tool.input_schema)));
    lines.extend(tool.output_schema.as_ref().map(|schema| format!("\nresult\n{}", pretty(schema))));
    lines.join("\n")
}

pub(super) fn why(why: &Why) -> String {
    let mut text = why.summary.clone();
    if why.layers.is_empty() {
        return text;
    }
    let mut table = table(["", "layer", "state", "type", "etag", "reason"]);
    let mut decided = false;
    for layer in &why.layers {
        table.add_row([
            part(layer, decided).to_owned(),
            cell(&layer.layer),
            cell(state(layer.state)),
            optional(layer.type_id.as_ref()),
            optional(layer.etag.as_ref()),
            optional(layer.reason.as_ref()),
        ]);
        decided |= layer.winner;
    }
    text.push_str("\n\n");
    text.push_str(&rendered(table, false));
    text
}

/// What a layer has to do with the name, as a word at the start of its row.
fn part(layer: &WhyLayer, decided: bool) -> &'static str {
    match (layer.winner, decided) {
        (true, _) => "wins",
        (false, true) => "hidden",
        (false, false) => "-",
    }
}

fn state(state: ToolState) -> &'static str {
    match state {
        ToolState::Active => "active",
        ToolState::Disabled => "disabled",
        ToolState::Broken => "broken",
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(layer: &str, state: ToolState, winner: bool) -> WhyLayer {
        WhyLayer {
            layer: layer.to_owned(),
            state,
            winner,
            type_id: Some("doc_lookup".to_owned()),
            etag: None,
            reason: None,
        }
    }

    #[test]
    fn why_shows_what_wins_and_what_that_hides() {
        let told = why(&Why {
            name: "notes".to_owned(),
            callable: true,
            summary: "`notes` is the tool of the project layer".to_owned(),
            layers: vec![
                layer("project", ToolState::Active, true),
                layer("tenant", ToolState::Broken, false),
                layer("bundled", ToolState::Active, false),
            ],
        });
        insta::assert_snapshot!(told, @r#"
        `notes` is the tool of the project layer

                LAYER    STATE   TYPE        ETAG  REASON
        wins    project  active  doc_lookup  -     -
        hidden  tenant   broken  doc_lookup  -     -
        hidden  bundled  active  doc_lookup  -     -
        "#);
    }

    #[test]
    fn a_listing_cuts_descriptions_between_characters() {
        let cut = first_line(&format!("{}\nsecond line", "漢".repeat(200)));
        assert_eq!(cut.chars().count(), MAX_DESCRIPTION_CHARS + 1);
        assert_eq!(first_line("short\nsecond"), "short");
    }
}
