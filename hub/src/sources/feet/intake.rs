//! What a foot offers is foreign: names, schemas and texts are checked and cleaned before anybody sees them. A bad tool
//! is rejected alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use footbridge_mcp::Fields;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{FootName, PACK_SEPARATOR, ToolName};
use footbridge_shared::limits::{MAX_DESCRIPTION_CHARS, MAX_FRAME_BYTES, MAX_SCHEMA_BYTES};
use footbridge_shared::message::{Raw, RejectedTool, ServerInfo, ToolEntry, Tools};
use footbridge_shared::text::clean;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::definition::{Definition, Definitions};
use super::servers::{self, CheckedServer};
use crate::domain::arguments::ArgumentSchema;
use crate::domain::tool::RESERVED_NAMES;

/// Schema keywords whose text is for readers: a model sees it, no validator does.
const TEXT_KEYWORDS: [&str; 3] = ["description", "title", "$comment"];
/// What rejections may take of an answer's frame, in bytes. The rest is for what is around them.
const MAX_REJECTION_BYTES: usize = MAX_FRAME_BYTES - 1024;
/// Longest idle time that a tool may have, in milliseconds: an hour.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// Longest hard time that a tool may have, in milliseconds: a day.
const MAX_MAX_TIMEOUT_MS: u64 = 86_400_000;
/// Longest regular expression that a schema may hold, in bytes.
const MAX_PATTERN_BYTES: usize = 1024;
/// Most regular expressions that one schema may hold: each is compiled.
const MAX_PATTERNS: usize = 100;

/// Checks what feet offer.
#[derive(Debug)]
pub(super) struct Intake {
    built_ins: BTreeSet<String>,
    definitions: Definitions,
}

/// What is left of a `tools` message.
#[derive(Debug)]
pub(super) struct Checked {
    /// Good tools, each name once.
    pub(super) upsert: Vec<Arc<Definition>>,
    /// Names to forget before the good ones are added: those the foot named, and those whose new form is bad, since
    /// their old form is not what would run.
    pub(super) remove: Vec<String>,
    /// Good tools whose texts had hidden characters, and how many.
    pub(super) cleaned: Vec<(ToolName, usize)>,
    /// Bad tools.
    pub(super) rejected: Vec<RejectedTool>,
}

/// Fields of an MCP tool that are checked one by one.
const CHECKED_FIELDS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

type Refusal = (ErrorCode, String);

impl Intake {
    /// `built_ins` are the names that the hub's own tools have: they keep their calls.
    pub(super) fn new(built_ins: BTreeSet<String>) -> Self {
        Self { built_ins, definitions: Definitions::default() }
    }

    /// Checks a message; `rejected` are those of its entries that could not even be read.
    pub(super) fn check(&self, tools: Tools, rejected: Vec<RejectedTool>) -> Checked {
        let Tools { upsert, remove, .. } = tools;
        let room = Vec::with_capacity(upsert.len());
        let mut checked = Checked { upsert: room, remove, cleaned: Vec::new(), rejected };
        let mut seen = BTreeSet::new();
        for entry in upsert {
            let shown = entry.name.clone();
            let known = seen.contains(&shown);
            match if known { Err(twice()) } else { self.definition(entry) } {
                Ok((definition, removed)) => {
                    seen.insert(shown);
                    if removed > 0 {
                        checked.cleaned.push((definition.name.clone(), removed));
                    }
                    checked.upsert.push(definition);
                }
                Err((code, reason)) => {
                    let rejection = RejectedTool::new(&shown, code, reason);
                    checked.rejected.push(rejection);
                    if !known {
                        checked.remove.push(shown);
                    }
                }
            }
        }
        checked
    }

    /// The checked definition, and how many hidden characters its texts had.
    fn definition(&self, mut entry: ToolEntry) -> Result<(Arc<Definition>, usize), Refusal> {
        let name = self.name(&entry.name)?;
        check_times(entry.timeout_ms, entry.max_timeout_ms)?;
        let mut removed = clean_schema(&mut entry.input_schema)?;
        if let Some(schema) = &mut entry.output_schema {
            removed += clean_schema(schema)?;
        }
        removed += clean_texts(&mut entry);
        entry.extra = entry.extra.as_deref().map(checked_extra).transpose()?.flatten();
        Ok((self.definitions.shared(name, entry), removed))
    }

    /// The MCP servers that a foot names, checked: what is wrong is left out.
    pub(super) fn servers(&self, foot: &FootName, servers: Vec<ServerInfo>) -> Vec<CheckedServer> {
        servers::check(foot.as_str(), servers, &self.built_ins)
    }

    fn name(&self, name: &str) -> Result<ToolName, Refusal> {
        let parsed = ToolName::parse(name).map_err(|error| (ErrorCode::InvalidToolName, error.to_string()))?;
        let separators =
            name.as_bytes().windows(PACK_SEPARATOR.len()).filter(|w| *w == PACK_SEPARATOR.as_bytes()).count();
        if separators > 1 || name.ends_with(PACK_SEPARATOR) {
            return Err((ErrorCode::InvalidToolName, "`__` may stand once, between a pack and its tool".to_owned()));
        }
        // A pack of such a name would look like a part of the tool.
        let whose = name.split_once(PACK_SEPARATOR).map_or(name, |(pack, _)| pack);
        if RESERVED_NAMES.contains(&whose) {
            return Err((ErrorCode::ReservedName, ErrorCode::ReservedName.meaning().to_owned()));
        }
        if self.built_ins.contains(whose) {
            return Err((ErrorCode::Shadowed, ErrorCode::Shadowed.meaning().to_owned()));
        }
        Ok(parsed)
    }
}

impl Checked {
    /// The rejections that fit one answer; if not all do, the last says how many were left out.
    pub(super) fn answer(mut rejected: Vec<RejectedTool>) -> Vec<RejectedTool> {
        let mut bytes = 0;
        let mut fits = |rejection: &RejectedTool| {
            bytes += serde_json::to_string(rejection).map_or(0, |text| text.len() + 1);
            bytes <= MAX_REJECTION_BYTES
        };
        let fitting = rejected.iter().take_while(|rejection| fits(rejection)).count();
        let left_out = rejected.len() - fitting;
        if left_out > 0 {
            rejected.truncate(fitting);
            rejected.push(RejectedTool::new(
                "",
                ErrorCode::TooManyTools,
                format!("{left_out} more tools were rejected"),
            ));
        }
        rejected
    }
}

/// What an MCP tool holds beside what has a place of its own here; `None`: nothing.
fn checked_extra(extra: &RawValue) -> Result<Option<Raw>, Refusal> {
    let bytes = extra.get().len();
    if bytes > MAX_SCHEMA_BYTES {
        let reason = format!("`extra` has {bytes} bytes, the limit is {MAX_SCHEMA_BYTES}");
        return Err((ErrorCode::PayloadTooLarge, reason));
    }
    let fields = Fields::of(extra).ok_or_else(|| (ErrorCode::BadRequest, "`extra` is no object".to_owned()))?;
    // A client reads the last of two fields with one name: none may speak for the checked ones.
    let others: Fields = fields
        .iter()
        .filter(|(name, _)| !CHECKED_FIELDS.contains(name))
        .map(|(name, value)| (name, value.clone()))
        .collect();
    Ok(others.into_raw_unless_empty())
}

fn twice() -> Refusal {
    (ErrorCode::AlreadyExists, "the name stands twice in one message".to_owned())
}

/// Checks that a tool's times are ones that a call can keep.
fn check_times(timeout_ms: Option<u64>, max_timeout_ms: Option<u64>) -> Result<(), Refusal> {
    let invalid = |reason: String| Err((ErrorCode::BadRequest, reason));
    for (what, given, most) in
        [("timeoutMs", timeout_ms, MAX_TIMEOUT_MS), ("maxTimeoutMs", max_timeout_ms, MAX_MAX_TIMEOUT_MS)]
    {
        if given.is_some_and(|ms| !(1..=most).contains(&ms)) {
            return invalid(format!("`{what}` has to be from 1 to {most}"));
        }
    }
    if timeout_ms.zip(max_timeout_ms).is_some_and(|(idle, hard)| idle > hard) {
        return invalid("`timeoutMs` is longer than `maxTimeoutMs`".to_owned());
    }
    Ok(())
}

/// Checks that a schema describes an object, and cleans the texts in it. Returns how many characters were removed.
fn clean_schema(schema: &mut Raw) -> Result<usize, Refusal> {
    let invalid = |reason: String| (ErrorCode::InvalidToolSchema, reason);
    let bytes = schema.get().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(invalid(format!("the schema has {bytes} bytes, the limit is {MAX_SCHEMA_BYTES}")));
    }
    let mut value: Value = serde_json::from_str(schema.get()).map_err(|error| invalid(error.to_string()))?;
    if value.get("type").and_then(Value::as_str) != Some("object") {
        return Err(invalid("the schema has to say `\"type\": \"object\"` at the top".to_owned()));
    }
    check_patterns(&value, &mut 0).map_err(invalid)?;
    ArgumentSchema::compile(&value).map_err(invalid)?;
    let removed = clean_values(&mut value);
    if removed > 0 {
        *schema = to_raw_value(&value).map_err(|error| invalid(error.to_string()))?;
    }
    Ok(removed)
}

/// Checks that the regular expressions in a schema are few and short: to compile one takes time and memory that grow
/// with what it says. `found` counts them. An argument of the name `pattern` has a schema there, not a text.
fn check_patterns(value: &Value, found: &mut usize) -> Result<(), String> {
    let mut check = |pattern: &str| {
        *found += 1;
        if pattern.len() > MAX_PATTERN_BYTES {
            Err(format!("a pattern of {} bytes, the limit is {MAX_PATTERN_BYTES}", pattern.len()))
        } else if *found > MAX_PATTERNS {
            Err(format!("more than {MAX_PATTERNS} patterns"))
        } else {
            Ok(())
        }
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(pattern) if key == "pattern" => check(pattern)?,
                    Value::Object(patterns) if key == "patternProperties" => {
                        patterns.keys().try_for_each(|pattern| check(pattern))?;
                    }
                    _ => {}
                }
            }
            fields.values().try_for_each(|value| check_patterns(value, found))
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_patterns(item, found)),
        _ => Ok(()),
    }
}

/// Cleans the texts that are for readers. An argument of the name `description` has a schema there, not a text.
fn clean_values(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .map(|(key, value)| match value {
                Value::String(text) if TEXT_KEYWORDS.contains(&key.as_str()) => clean_text(text),
                Value::Object(_) | Value::Array(_) => clean_values(value),
                _ => 0,
            })
            .sum(),
        Value::Array(items) => items.iter_mut().map(clean_values).sum(),
        _ => 0,
    }
}

fn clean_texts(entry: &mut ToolEntry) -> usize {
    let ToolEntry { title, description, search_hint, prompt_hint, original_name, labels, pack, .. } = entry;
    let optional = [title, search_hint, prompt_hint, original_name, pack];
    let removed = clean_text(description)
        + optional.into_iter().flatten().map(clean_text).sum::<usize>()
        + labels.iter_mut().map(clean_text).sum::<usize>();
    labels.sort();
    labels.dedup();
    removed
}

/// Removes hidden characters and what is longer than a description may be. Returns how many were hidden.
fn clean_text(text: &mut String) -> usize {
    let (cleaned, removed) = clean(text);
    if removed > 0 {
        *text = cleaned.into_owned();
    }
    if let Some((end, _)) = text.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        text.truncate(end);
    }
    removed
}
