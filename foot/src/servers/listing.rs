//! What a server offers: all pages of its tools, and what is told of each.

use std::collections::BTreeMap;
use std::time::Duration;

use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{Connection, Fields, Lifecycle, ListLimits, Raw, RequestError, RequestOptions, codes, list_all};
use footbridge_shared::id::{EntryName, ToolName};
use footbridge_shared::limits::{MAX_SCHEMA_BYTES, MAX_TOOLS_PER_FOOT};
use footbridge_shared::message::ToolEntry;
use footbridge_shared::names::public_names;
use tokio_util::sync::CancellationToken;

use super::settings::ServerSettings;
use crate::clock::millis;
use crate::failure::shown;

/// How much of a listing is taken.
const LIMITS: ListLimits = ListLimits { pages: 1_000, items: MAX_TOOLS_PER_FOOT, bytes: 64 * 1024 * 1024 };
/// A whole listing may take as long as so many handshakes.
const PAGES_A_TIMEOUT: u32 = 4;
/// Labels of every tool of a server, as the hub gives them to servers of its own.
const LABELS: [&str; 2] = ["mcp", "side-effect"];

/// Reads all pages. A server that repeats itself is not read again. `page_timeout` is what one may take; see
/// [`PAGES_A_TIMEOUT`].
///
/// # Errors
/// Why it cannot be listed, for the owner.
pub(super) async fn tools(connection: &Connection, page_timeout: Duration) -> Result<Vec<Raw>, String> {
    let offers = Fields::of(&connection.server().capabilities).is_some_and(|can| can.get("tools").is_some());
    if !offers {
        return Ok(Vec::new());
    }
    let cancel = CancellationToken::new();
    // Dropped with this future, so that a server which is given up on is told.
    let _given_up = cancel.clone().drop_guard();
    let options = RequestOptions { cancel, ..RequestOptions::default() };
    // Time for a few pages at once; a server that goes on giving pages may take more, but not for ever.
    let limit = page_timeout * PAGES_A_TIMEOUT;
    let asked = tokio::time::timeout(limit, list_all(connection, "tools/list", "tools", LIMITS, options)).await;
    match asked {
        Ok(Ok(listed)) => {
            if let Some(why) = listed.cut {
                tracing::warn!(
                    tools = listed.items.len(),
                    why,
                    "the rest of what a local MCP server offers is left out"
                );
            }
            Ok(listed.items)
        }
        Ok(Err(RequestError::Rpc(error))) if error.code == codes::METHOD_NOT_FOUND => Ok(Vec::new()),
        Ok(Err(error)) => Err(format!("`tools/list` failed: {error}")),
        Err(_) => Err(format!(
            "`tools/list` was not answered within {limit:?}; a server that needs more gets it by `initTimeoutSeconds`"
        )),
    }
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

/// The same for all tools of a server: that one has no side effect is its own word alone.
fn labels(server: &EntryName) -> Vec<String> {
    let mut labels: Vec<String> = LABELS.map(str::to_owned).into();
    labels.push(format!("mcp:{server}"));
    labels.sort();
    labels
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
        labels: labels(&settings.name),
        extra: fields.into_raw_unless_empty(),
        ..ToolEntry::new(name.as_str(), &description, schema)
    };
    Ok(Listed { original: original.to_owned(), entry, param_headers: param_headers.map(Into::into) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_the_labels_of_its_server_whatever_it_says_of_itself() {
        let text: super::super::ServerText = serde_saphyr::from_str("command: x").unwrap();
        let settings = text.check(EntryName::parse("git").unwrap(), &|path| Ok(path.into())).unwrap();
        let tool = r#"{"name": "log", "inputSchema": {}, "annotations": {"readOnlyHint": true}, "labels": ["safe"]}"#;
        let listed = entries(&settings, Lifecycle::Session, &[serde_json::from_str(tool).unwrap()]);
        assert_eq!(listed.first().unwrap().entry.labels, ["mcp", "mcp:git", "side-effect"]);
    }
}
