//! `file_edit`: replaces parts of a text file.

mod matching;
mod report;

use std::path::Path;

use footbridge_shared::ErrorCode;
use footbridge_shared::content::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::digest::{expect_hash, if_hash_schema, whole_text};
use super::file_write::{MAX_BYTES, expect_size};
use super::turns::Turn;
use super::{CallContext, ToolOutput};
use crate::failure::{Failure, escaped, shown};
use crate::permissions::Access;
use crate::policy::Gate;
use report::Lines;

/// Edits of one call.
const MAX_EDITS: usize = 100;

pub(super) struct FileEdit;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    edits: Vec<Edit>,
    if_hash: Option<ContentHash>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Edit {
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Edited<'a> {
    path: String,
    bytes: usize,
    hash: ContentHash,
    previous_hash: ContentHash,
    /// Places that were replaced, of all edits.
    replaced: usize,
    /// What changed, by the lines of the new file.
    lines: &'a [Lines],
    /// There are more `lines` than are told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_lines: bool,
}

impl FileTool for FileEdit {
    const NAME: &'static str = "file_edit";
    const TITLE: &'static str = "Edit a file";
    const DESCRIPTION: &'static str = "Replaces parts of a text file on the developer's machine. Each `oldText` must stand \
        in the file exactly once, unless `replaceAll` is given; edits are made in order, and all of them or none. Line \
        ends of the file are kept: a line feed in `oldText` matches either kind. The answer tells which lines changed, \
        and the new `hash`.";
    const PRIMARY: bool = true;
    const ACCESS: Access = Access::Write;
    const IDEMPOTENT: bool = false;
    type Arguments = Arguments;

    fn properties() -> Value {
        json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096,
                "description": "The file. Relative paths start at the project root."},
            "edits": {"type": "array", "minItems": 1, "maxItems": MAX_EDITS, "items": {
                "type": "object",
                "required": ["oldText", "newText"],
                "additionalProperties": false,
                "properties": {
                    "oldText": {"type": "string", "minLength": 1, "description": "What is there, exactly."},
                    "newText": {"type": "string", "description": "What shall be there."},
                    "replaceAll": {"type": "boolean", "default": false, "description": "Replace every place."},
                }}},
            "ifHash": if_hash_schema(),
        })
    }

    fn required() -> &'static [&'static str] {
        &["path", "edits"]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn run(gate: &Gate, real: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Arguments { path: given, edits, if_hash } = arguments;
        let _turn = Turn::take(real, ctx)?;
        let place = gate.place(real, &given, false)?;
        let Some(mut found) = gate.current(&place, &given)? else {
            return Err(Failure::not_run(ErrorCode::NotFound, format!("there is nothing at `{}`", shown(&given)))
                .hint("file_write makes files"));
        };
        let old = whole_text(&mut found.file, MAX_BYTES, ErrorCode::PayloadTooLarge, &given)?;
        let previous_hash = ContentHash::of(old.as_bytes());
        expect_hash(if_hash, Some(Some(previous_hash)), &given)?;

        let mut new = old.clone();
        let mut replaced = 0;
        for (nth, edit) in edits.iter().enumerate() {
            ctx.check()?;
            let (text, places) = edit.apply(&new).map_err(|fault| {
                let which = if edits.len() == 1 { String::new() } else { format!("edit {}: ", nth + 1) };
                let message = format!("{which}{} in `{}`; nothing was written", fault.message, shown(&given));
                Failure::not_run(ErrorCode::NoMatch, message).hint(fault.hint)
            })?;
            expect_size(text.len(), &given)?;
            new = text;
            replaced += places;
        }
        ctx.check()?;
        if new != old {
            place.write(&given, new.as_bytes(), Some(&found), None)?;
        }

        let report = report::of(&old, &new);
        let edited = Edited {
            path: gate.show(real),
            bytes: new.len(),
            hash: ContentHash::of(new.as_bytes()),
            previous_hash,
            replaced,
            lines: &report.lines,
            more_lines: report.more,
        };
        let places = if replaced == 1 { "1 place".to_owned() } else { format!("{replaced} places") };
        let summary = format!("replaced {places} of {}, hash {}", escaped(&edited.path), edited.hash);
        let blocks: &[&str] = if report.excerpt.is_empty() { &[&summary] } else { &[&summary, &report.excerpt] };
        Ok(ToolOutput::texts(blocks).with_structured(&edited))
    }
}

/// Why an edit cannot be made.
struct Fault {
    message: String,
    hint: String,
}

impl Edit {
    /// The text after this edit, and how many places were replaced.
    fn apply(&self, text: &str) -> Result<(String, usize), Fault> {
        let places = matching::places(text, &self.old_text);
        if places.is_empty() {
            return Err(self.no_place(text));
        }
        if places.len() > 1 && !self.replace_all {
            return Err(Fault {
                message: format!(
                    "`oldText` stands {} times, in the lines {},",
                    places.len(),
                    matching::told_lines(text, &places)
                ),
                hint: "give more of the text around the place, or `replaceAll`".to_owned(),
            });
        }
        let places = matching::apart(places);
        let crlf = matching::has_crlf(text);
        let mut new = String::with_capacity(text.len());
        let mut end = 0;
        for place in &places {
            let replaced = text.get(place.clone()).unwrap_or_default();
            new.push_str(text.get(end..place.start).unwrap_or_default());
            new.push_str(&matching::with_line_ends(&self.new_text, replaced, crlf));
            end = place.end;
        }
        new.push_str(text.get(end..).unwrap_or_default());
        Ok((new, places.len()))
    }

    fn no_place(&self, text: &str) -> Fault {
        let line_ends = self.old_text.replace("\r\n", "\n");
        let otherwise = matching::places(text, &line_ends);
        let hint = if let (true, Some(place)) = (line_ends != self.old_text, otherwise.first()) {
            let line = matching::line_of(text, place.start);
            format!("it stands in line {line} with other line ends: write line feeds alone")
        } else if let Some(line) = matching::nearly_at(text, &self.old_text) {
            format!("but for white space it stands in line {line}: copy it exactly, without line numbers")
        } else {
            "read the file and copy the place exactly".to_owned()
        };
        Fault { message: "`oldText` does not stand".to_owned(), hint }
    }
}

#[cfg(test)]
mod tests;
