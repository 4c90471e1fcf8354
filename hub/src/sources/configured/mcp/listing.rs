//! What a server offers: read page by page, and made into tools.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use footbridge_mcp::headers::ParamHeaders;
use footbridge_mcp::{Connection, Fields, ListLimits, Raw, RequestError, RequestOptions, codes, list_all};
use footbridge_shared::id::{EntryName, ToolName};
use footbridge_shared::limits::{MAX_DESCRIPTION_CHARS, MAX_SCHEMA_BYTES};
use footbridge_shared::text::clean_and_cut;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

pub(super) use self::accepted::Accepted;
use super::call::ServerTool;
use super::server::Server;
use super::shape::Shape;
use crate::domain::document::Layer;
use crate::domain::mcp::{ListKind, McpDescription};
use crate::domain::tool::{Origin, Tool, ToolSpec};

mod accepted;

/// How much of one list is taken.
const LIMITS: ListLimits = ListLimits { pages: 2_000, items: 20_000, bytes: 64 * 1024 * 1024 };
/// A whole list may take as long as so many handshakes.
const PAGES_A_TIMEOUT: u32 = 4;
/// Largest part of a tool (a schema, its annotations, all that is not known here), and largest entry of another list, in bytes.
const MAX_PART_BYTES: usize = MAX_SCHEMA_BYTES;
/// Longest name of a tool on its server, in bytes.
const MAX_NAME_BYTES: usize = 512;
/// Odd entries that are named in the status.
const MAX_NAMED: usize = 10;
/// Labels of every tool of a server.
const LABELS: [&str; 2] = ["mcp", "side-effect"];

/// What a server offered when it was last listed. While nothing changes, the same.
#[derive(Clone)]
pub(in crate::sources::configured) struct Listed {
    /// What it says of itself; `None`: it was never listed.
    pub(in crate::sources::configured) description: Option<Arc<McpDescription>>,
    /// Its tools, in its order, each name once.
    pub(in crate::sources::configured) tools: Arc<[Arc<Tool>]>,
    /// Resources, templates and prompts, as they came.
    others: [Arc<[Raw]>; 3],
    /// Entries that cannot be used, and why.
    pub(in crate::sources::configured) odd: Arc<[String]>,
    /// How many those are.
    pub(in crate::sources::configured) left_out: usize,
}

impl Default for Listed {
    fn default() -> Self {
        Self {
            description: None,
            tools: Arc::new([]),
            others: ListKind::ALL.map(|_| Arc::default()),
            odd: Arc::default(),
            left_out: 0,
        }
    }
}

impl Listed {
    /// What it offers of a kind.
    pub(in crate::sources::configured) fn of(&self, kind: ListKind) -> &Arc<[Raw]> {
        &self.others[place(kind)]
    }

    /// The same for a server that is to be listed still, with its own idle time of a call.
    pub(super) fn carried(&self, server: &Weak<Server>, timeout: Option<Duration>) -> Self {
        let again = |old: &Arc<Tool>| {
            let headers = ParamHeaders::of(&old.spec.input_schema).ok()?;
            Some(tool(server, ToolSpec { timeout, ..old.spec.clone() }, headers))
        };
        Self { tools: self.tools.iter().filter_map(again).collect(), ..self.clone() }
    }

    /// A tool by its name on the server.
    pub(in crate::sources::configured) fn tool(&self, original: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.spec.original_name.as_deref() == Some(original))
    }
}

const fn place(kind: ListKind) -> usize {
    match kind {
        ListKind::Resources => 0,
        ListKind::ResourceTemplates => 1,
        ListKind::Prompts => 2,
    }
}

/// The raw entries of everything that a server lists.
pub(super) struct Entries {
    pub(super) tools: Vec<Raw>,
    /// By kind; what could not be read stays as it was.
    others: [Result<Vec<Raw>, Unread>; 3],
}

impl Entries {
    /// Lists beside the tools that could not be read.
    pub(super) fn unread(&self) -> impl Iterator<Item = &Unread> {
        self.others.iter().filter_map(|list| list.as_ref().err())
    }
}

/// Why a list could not be read. Safe to show, but for credentials that the server repeats.
#[derive(Debug, thiserror::Error)]
#[error("`{method}` {why}")]
pub(super) struct Unread {
    method: &'static str,
    why: String,
    pub(super) blame: Blame,
}

/// What has to be done about a list that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// The server does not know the session any more: another connection is needed.
    Session,
    /// It does not take the credentials.
    Credentials,
    /// The connection has ended.
    Connection,
    /// There was no answer in time.
    Silence,
    /// The answer is no list.
    Answer,
}

/// Reads everything that a server lists, in as many pages as there are. `page_timeout`
/// is what one may take; see [`PAGES_A_TIMEOUT`].
///
/// # Errors
/// Why its tools cannot be listed.
pub(super) async fn read(connection: &Connection, page_timeout: Duration) -> Result<Entries, Unread> {
    let server = connection.server();
    let offered: Fields = Fields::of(&server.capabilities).unwrap_or_default();
    let has = |kind: ListKind| match kind {
        ListKind::Resources | ListKind::ResourceTemplates => offered.get("resources").is_some(),
        ListKind::Prompts => offered.get("prompts").is_some(),
    };
    let tools = pages(connection, "tools/list", "tools", page_timeout).await?;
    let mut others = ListKind::ALL.map(|_| Ok(Vec::new()));
    for kind in ListKind::ALL.into_iter().filter(|kind| has(*kind)) {
        others[place(kind)] = pages(connection, kind.method(), kind.field(), page_timeout).await;
    }
    Ok(Entries { tools, others })
}

/// All pages of one list. A server that does not know the method has none.
async fn pages(
    connection: &Connection,
    method: &'static str,
    field: &'static str,
    page_timeout: Duration,
) -> Result<Vec<Raw>, Unread> {
    let cancel = CancellationToken::new();
    // Dropped with this future, so that a server which is given up on is told.
    let _given_up = cancel.clone().drop_guard();
    let options = RequestOptions { cancel, ..RequestOptions::default() };
    // Time for a few pages at once; a server that goes on giving pages may take more, but not for ever.
    let limit = page_timeout * PAGES_A_TIMEOUT;
    let asked = tokio::time::timeout(limit, list_all(connection, method, field, LIMITS, options)).await;
    let error = match asked {
        Ok(Ok(listed)) => {
            if let Some(why) = listed.cut {
                tracing::warn!(method, entries = listed.items.len(), why, "a listing of an MCP server was cut short");
            }
            return Ok(listed.items);
        }
        Ok(Err(RequestError::Rpc(error))) if error.code == codes::METHOD_NOT_FOUND => return Ok(Vec::new()),
        Ok(Err(error)) => error,
        Err(_) => {
            let why = format!("was not answered within {limit:?}");
            return Err(Unread { method, why, blame: Blame::Silence });
        }
    };
    let blame = match &error {
        RequestError::SessionExpired => Blame::Session,
        RequestError::Unauthorized(_) => Blame::Credentials,
        RequestError::Lost(_) | RequestError::NotSent(_) => Blame::Connection,
        RequestError::Rpc(_) | RequestError::BadAnswer(_) | RequestError::Cancelled => Blame::Answer,
    };
    Err(Unread { method, why: format!("failed: {error}"), blame })
}

/// For which pack a listing is made.
pub(super) struct Making<'a> {
    pub(super) server: &'a Weak<Server>,
    pub(super) pack: &'a EntryName,
    /// Idle time of a call, where the document says so.
    pub(super) timeout: Option<Duration>,
}

/// Makes a listing of entries. What did not change is taken over from `before`, down to the same `Arc`s. With `accept` the
/// tools count as looked at.
pub(super) fn assemble(
    making: &Making<'_>,
    description: McpDescription,
    entries: Entries,
    before: &Listed,
    accepted: &mut Accepted,
    accept: bool,
) -> Listed {
    let mut known: HashMap<&str, &Arc<Tool>> = HashMap::with_capacity(before.tools.len());
    known.extend(before.tools.iter().filter_map(|tool| Some((tool.spec.original_name.as_deref()?, tool))));
    let (mut tools, mut odd) = (Vec::with_capacity(entries.tools.len()), Odd::default());
    let mut seen = BTreeSet::new();
    for entry in &entries.tools {
        let made = spec(entry, making.pack).and_then(|spec| {
            let original = spec.original_name.clone().unwrap_or_default();
            let headers = ParamHeaders::of(&spec.input_schema).map_err(|why| format!("`{original}`: {why}"))?;
            if seen.insert(original.clone()) {
                Ok((original, spec, headers))
            } else {
                Err(format!("`{original}` stands twice"))
            }
        });
        match made {
            Ok((original, mut spec, headers)) => {
                spec.timeout = making.timeout;
                spec.changed = accepted.changed(&original, hash(&spec), accept);
                let old = known.get(original.as_str()).filter(|old| same(&old.spec, &spec));
                tools.push(old.map_or_else(|| tool(making.server, spec, headers), |old| Arc::clone(old)));
            }
            Err(why) => odd.add(&why),
        }
    }
    accepted.forget(seen.iter());
    let unchanged =
        tools.len() == before.tools.len() && tools.iter().zip(&*before.tools).all(|(a, b)| Arc::ptr_eq(a, b));
    let mut others = entries.others.map(Result::ok);
    let others = ListKind::ALL.map(|kind| {
        let old = before.of(kind);
        let Some(mut new) = others[place(kind)].take() else { return old.clone() };
        new.retain(|entry| {
            let fits = entry.get().len() <= MAX_PART_BYTES;
            if !fits {
                odd.add(&format!("an entry of `{}` is too large", kind.field()));
            }
            fits
        });
        let unchanged = old.len() == new.len() && old.iter().zip(&new).all(|(a, b)| a.get() == b.get());
        if unchanged { old.clone() } else { new.into() }
    });
    Listed {
        description: Some(
            before
                .description
                .clone()
                .filter(|old| same_server(old, &description))
                .unwrap_or_else(|| description.into()),
        ),
        tools: if unchanged { before.tools.clone() } else { tools.into() },
        others,
        odd: odd.named.into(),
        left_out: odd.many,
    }
}

/// Entries that cannot be used.
#[derive(Default)]
struct Odd {
    named: Vec<String>,
    many: usize,
}

impl Odd {
    fn add(&mut self, why: &str) {
        self.many += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(clean_and_cut(why, 200));
        }
    }
}

/// Whether two listings are the same to everybody who looks.
pub(super) fn unchanged(a: &Listed, b: &Listed) -> bool {
    let description = match (&a.description, &b.description) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    description
        && Arc::ptr_eq(&a.tools, &b.tools)
        && ListKind::ALL.into_iter().all(|kind| Arc::ptr_eq(a.of(kind), b.of(kind)))
}

fn same_server(a: &McpDescription, b: &McpDescription) -> bool {
    a.version == b.version
        && a.info.get() == b.info.get()
        && a.capabilities.get() == b.capabilities.get()
        && a.instructions == b.instructions
}

fn tool(server: &Weak<Server>, spec: ToolSpec, headers: ParamHeaders) -> Arc<Tool> {
    let original = spec.original_name.clone().unwrap_or_default();
    let handler = ServerTool::new(server.clone(), original, Shape::of(&spec.input_schema), headers);
    // The server is the judge of the arguments: its rules may be others than its schema tells, and its words are what the
    // caller is to see.
    Arc::new(Tool { spec, schema: None, handler: Arc::new(handler) })
}

/// Reads one entry.
fn spec(entry: &RawValue, pack: &EntryName) -> Result<ToolSpec, String> {
    let mut fields = Fields::of(entry).ok_or("an entry is no object")?;
    let original: String =
        fields.take("name").and_then(|name| serde_json::from_str(name.get()).ok()).unwrap_or_default();
    if original.is_empty() || original.len() > MAX_NAME_BYTES {
        return Err("an entry has no name, or one that is too long".to_owned());
    }
    let input_schema = fields.take("inputSchema").filter(|schema| schema.get().starts_with('{'));
    let input_schema = input_schema.ok_or_else(|| format!("`{original}` has no input schema"))?;
    let mut text =
        |key: &str| fields.take(key).and_then(|raw| serde_json::from_str::<Option<String>>(raw.get()).ok()?);
    let (title, description) = (text("title"), text("description"));
    let mut object = |key: &str| fields.take(key).filter(|value| value.get().starts_with('{'));
    let (output_schema, annotations) = (object("outputSchema"), object("annotations"));
    let extra = fields.into_raw_unless_empty();
    let parts = [
        ("input schema", Some(&input_schema)),
        ("output schema", output_schema.as_ref()),
        ("annotations", annotations.as_ref()),
        ("rest", extra.as_ref()),
    ];
    if let Some((part, _)) = parts.iter().find(|(_, raw)| raw.is_some_and(|raw| raw.get().len() > MAX_PART_BYTES)) {
        return Err(format!("`{original}` is too large: its {part}"));
    }
    // The pack gives it its public name; until then any will do.
    let name = ToolName::parse(pack.as_str()).map_err(|error| error.to_string())?;
    let origin = Origin::Configured { entry: pack.clone(), type_id: "mcp_server", layer: Layer::Project };
    let mut labels: Vec<String> = LABELS.map(str::to_owned).into();
    labels.push(format!("mcp:{pack}"));
    labels.sort();
    Ok(ToolSpec {
        original_name: Some(original),
        title: title.map(|title| clean_and_cut(&title, MAX_DESCRIPTION_CHARS)),
        description: clean_and_cut(&description.unwrap_or_default(), MAX_DESCRIPTION_CHARS),
        input_schema,
        output_schema,
        annotations,
        extra,
        labels,
        ..ToolSpec::bare(name, origin)
    })
}

/// What makes a tool another one: what a model reads of it, and what it promises.
fn hash(spec: &ToolSpec) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let raw = |raw: &Option<Raw>| raw.as_ref().map(|raw| raw.get().to_owned()).unwrap_or_default();
    let parts = [
        spec.description.clone(),
        spec.title.clone().unwrap_or_default(),
        spec.input_schema.get().to_owned(),
        raw(&spec.output_schema),
        raw(&spec.annotations),
    ];
    for part in parts {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}

fn same(a: &ToolSpec, b: &ToolSpec) -> bool {
    let text = |raw: &Option<Raw>| raw.as_ref().map(|raw| raw.get().to_owned());
    a.changed == b.changed && text(&a.extra) == text(&b.extra) && hash(a) == hash(b)
}

#[cfg(test)]
mod tests;
