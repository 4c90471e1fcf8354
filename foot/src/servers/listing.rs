//! What a server offers: all pages of its tools, and what is told of each.

use std::collections::{BTreeMap, HashSet};

use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{Connection, Fields, Lifecycle, Raw, RequestError, RequestOptions};
use footbridge_shared::id::ToolName;
use footbridge_shared::limits::{MAX_SCHEMA_BYTES, MAX_TOOLS_PER_FOOT};
use footbridge_shared::message::ToolEntry;
use footbridge_shared::names::public_names;

use super::settings::ServerSettings;
use crate::clock::millis;
use crate::failure::shown;

/// Pages of one listing.
const MAX_PAGES: usize = 1_000;

/// Reads all pages. A server that repeats itself is not read again.
///
/// # Errors
/// As [`Connection::request`], and `BadAnswer` for what is no listing.
pub(super) async fn tools(connection: &Connection) -> Result<Vec<Raw>, RequestError> {
    let offers = Fields::of(&connection.server().capabilities).is_some_and(|can| can.get("tools").is_some());
    if !offers {
        return Ok(Vec::new());
    }
    let mut tools: Vec<Raw> = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let mut params = Fields::new();
        if let Some(cursor) = &cursor {
            params.set_value("cursor", cursor);
        }
        let answer = connection.request("tools/list", params.into_raw_unless_empty(), RequestOptions::default());
        let page = Fields::of(&answer.await?).and_then(|page| Some((page.read::<Vec<Raw>>("tools")?, page)));
        let (more, page) = page.ok_or_else(|| RequestError::BadAnswer("it is no listing of tools".to_owned()))?;
        tools.extend(more);
        if tools.len() > MAX_TOOLS_PER_FOOT {
            tracing::warn!(
                limit = MAX_TOOLS_PER_FOOT,
                "a server offers more tools than a foot may; the rest is left out"
            );
            tools.truncate(MAX_TOOLS_PER_FOOT);
            break;
        }
        cursor = page.read("nextCursor");
        match &cursor {
            Some(next) if seen.insert(next.clone()) => {}
            _ => break,
        }
    }
    Ok(tools)
}

/// A tool as it is told, with its own name.
pub(super) struct Listed {
    pub(super) original: String,
    pub(super) entry: ToolEntry,
    pub(super) param_headers: Option<std::sync::Arc<ParamHeaders>>,
}

/// What is told of tools, under the names that they get. An odd one costs itself.
pub(super) fn entries(settings: &ServerSettings, lifecycle: Lifecycle, tools: &[Raw]) -> Vec<Listed> {
    let mut read: BTreeMap<String, Fields> = BTreeMap::new();
    for tool in tools {
        let named = Fields::of(tool).and_then(|fields| Some((fields.read::<String>("name")?, fields)));
        let Some((name, fields)) = named else {
            tracing::warn!(server = %settings.name, "a tool without a name is left out");
            continue;
        };
        if settings.offers(&name) {
            read.insert(name, fields);
        }
    }
    let originals: Vec<String> = read.keys().cloned().collect();
    let names = public_names(&settings.name, originals.iter().map(String::as_str));
    let entries = read.into_iter().filter_map(|(original, fields)| {
        let name = names.get(original.as_str())?;
        let listed = entry(settings, lifecycle, name, &original, fields);
        let listed = listed.inspect_err(|why| {
            tracing::warn!(server = %settings.name, tool = shown(&original), why, "a tool is left out");
        });
        listed.ok()
    });
    entries.collect()
}

fn entry(
    settings: &ServerSettings,
    lifecycle: Lifecycle,
    name: &ToolName,
    original: &str,
    mut fields: Fields,
) -> Result<Listed, String> {
    fields.take("name");
    let text = |raw: Raw| serde_json::from_str::<String>(raw.get()).ok();
    let description = fields.take("description").and_then(text).unwrap_or_default();
    let schema = fields.take("inputSchema").ok_or("it has no inputSchema")?;
    if schema.get().len() > MAX_SCHEMA_BYTES {
        return Err(format!("its schema has {} bytes, the limit is {MAX_SCHEMA_BYTES}", schema.get().len()));
    }
    // Without a session arguments may be wanted in headers; a tool that asks for that in a wrong way is not to be listed.
    let param_headers = match lifecycle {
        Lifecycle::Session => None,
        Lifecycle::Stateless => Some(ParamHeaders::of(&schema)?).filter(|headers| !headers.is_empty()),
    };
    let entry = ToolEntry {
        original_name: (original != name.as_str()).then(|| original.to_owned()),
        title: fields.take("title").and_then(text),
        output_schema: fields.take("outputSchema"),
        annotations: fields.take("annotations"),
        timeout_ms: settings.timeout.map(millis),
        pack: Some(settings.name.to_string()),
        extra: fields.into_raw_unless_empty(),
        ..ToolEntry::new(name.as_str(), &description, schema)
    };
    Ok(Listed { original: original.to_owned(), entry, param_headers: param_headers.map(Into::into) })
}
