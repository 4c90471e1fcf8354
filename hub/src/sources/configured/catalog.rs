//! The tool documents of one scope, compiled: tools, packs, and the state of every name.

use std::collections::BTreeMap;
use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::{EntryName, ToolName};
use footbridge_shared::message::Raw;
use serde_json::value::{RawValue, to_raw_value};

use super::checker::{Checker, Named, name_of, path_of, reserved};
use super::link::{ActiveLink, Mistake};
use super::pack::ActivePack;
use super::server_tool::ServerTool;
use super::types::{Built, BuiltTool, Dependencies, Place, Prepared};
use crate::documents::{Assembled, LayerDocument};
use crate::domain::arguments::ArgumentSchema;
use crate::domain::document::{Layer, SERVER_TOOLS};
use crate::domain::scope::Scope;
use crate::domain::tool::{Blind, Entry, EntryState, Listing, Origin, RESERVED_NAMES, Tool, ToolSpec};
use crate::yaml::{self, DocumentError, KeyPath, Node, Position, Problem, shown};

/// A tool document as one layer holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerState {
    /// The layer.
    pub layer: Layer,
    /// The document's ETag there, without quotes.
    pub etag: String,
    /// What it offers where it wins.
    pub state: EntryState,
    /// Its type, when it could be read.
    pub type_id: Option<String>,
}

/// The tool documents of one scope.
#[derive(Default)]
pub(super) struct Catalog {
    /// Single tools, and the state of every name; without the tools of packs.
    pub(super) listing: Arc<Listing>,
    /// Packs that offer their tools, by name.
    pub(super) packs: Vec<Arc<ActivePack>>,
    /// Single tools of packs, by name.
    pub(super) links: Vec<Arc<ActiveLink>>,
    /// The documents that won, by name.
    pub(super) documents: BTreeMap<EntryName, LayerState>,
    /// What lies in the folder of tools and is none.
    pub(super) ignored: Vec<DocumentError>,
}

/// What one layer's document amounts to.
pub(super) struct Judged {
    pub(super) state: EntryState,
    pub(super) type_id: Option<String>,
    read: Option<(ServerTool, Prepared)>,
}

impl Catalog {
    /// Compiles what wins. A document that cannot be used costs its own name, nothing else. What did not change since
    /// `before` is taken from there.
    pub(super) fn compile(
        scope: &Scope,
        assembled: Assembled,
        before: Option<&Self>,
        checker: &Checker,
        deps: &Dependencies,
    ) -> Self {
        let mut catalog = Self::default();
        let blind = assembled.blind.map(|(layer, error)| Blind { layer, reason: placed(SERVER_TOOLS, layer, &error) });
        let mut listing = Listing { blind, ..Listing::default() };
        for (path, layers) in assembled.documents {
            let Some(winner) = layers.into_iter().next() else { continue };
            match name_of(&path) {
                Named::Elsewhere => {}
                Named::Wrong(problem) => catalog.ignored.push(problem.in_document(&path, Some(winner.layer))),
                Named::Tool(name) => {
                    if !before.is_some_and(|before| catalog.keep(before, &name, &winner, &mut listing)) {
                        catalog.add(scope, name, winner, checker, deps, &mut listing);
                    }
                }
            }
        }
        catalog.listing = Arc::new(listing);
        catalog
    }

    /// Takes over what was compiled from the same text; `false` when there is no such thing.
    fn keep(&mut self, before: &Self, name: &EntryName, winner: &LayerDocument, listing: &mut Listing) -> bool {
        let same = |document: &&LayerState| winner.content.is_ok() && document.etag == winner.etag;
        let Some(document) = before.documents.get(name).filter(same) else { return false };
        let Some(entry) = before.listing.entries.get(name) else { return false };
        if let Some((name, tool)) = before.listing.tools.get_key_value(name.as_str()) {
            listing.tools.insert(name.clone(), tool.clone());
        }
        self.packs.extend(before.packs.iter().filter(|pack| pack.name() == name).cloned());
        self.links.extend(before.links.iter().filter(|link| link.name() == name.as_str()).cloned());
        listing.entries.insert(name.clone(), entry.clone());
        self.documents.insert(name.clone(), document.clone());
        true
    }

    /// Documents that name a tool of an MCP server which is not there.
    pub(super) fn mistakes(&self) -> impl Iterator<Item = DocumentError> {
        self.links.iter().filter_map(|link| {
            let (name, document) = self.documents.iter().find(|(name, _)| name.as_str() == link.name())?;
            let Mistake { message, hint } = link.mistake(&self.packs)?;
            let problem =
                Problem::new(Position::START, KeyPath::root(), message).hint(hint).code(ErrorCode::ToolBroken);
            Some(problem.in_document(&path_of(name), Some(document.layer)))
        })
    }

    /// Whether one of its packs is an MCP server.
    pub(super) fn has_servers(&self) -> bool {
        self.packs.iter().any(|pack| pack.server().is_some())
    }

    fn add(
        &mut self,
        scope: &Scope,
        name: EntryName,
        winner: LayerDocument,
        checker: &Checker,
        deps: &Dependencies,
        listing: &mut Listing,
    ) {
        let Judged { mut state, type_id, read } = judge(checker, &name, &winner);
        let layer = winner.layer;
        if let Some((tool, prepared)) = read.filter(|_| state == EntryState::Active) {
            match prepared(deps, Place { scope, layer, name: &name }) {
                Built::Tool(built) => match single(tool, *built, layer) {
                    Ok(tool) => drop(listing.tools.insert(tool.spec.name.clone(), Arc::new(tool))),
                    Err(error) => state = broken(&name, layer, &error),
                },
                Built::Pack(pack) => self.packs.push(Arc::new(ActivePack::new(tool, layer, pack))),
                Built::Link(link) => match ToolName::parse(tool.name.as_str()) {
                    Ok(name) => self.links.push(Arc::new(ActiveLink::new(head(&tool, layer, name), link))),
                    Err(error) => state = broken(&name, layer, &error.to_string()),
                },
            }
        }
        // A meta tool is never hidden, whatever lies about.
        let shadows = !is_reserved(&name);
        let entry = Entry { name: name.clone(), state: state.clone(), layer, shadows };
        listing.entries.insert(name.clone(), entry);
        self.documents.insert(name, LayerState { layer, etag: winner.etag, state, type_id });
    }
}

/// What a layer's document would offer, were it the winner.
pub(super) fn judge(checker: &Checker, name: &EntryName, document: &LayerDocument) -> Judged {
    let layer = document.layer;
    let text = match &document.content {
        Ok(text) => text,
        Err(error) => return Judged { state: broken(name, layer, &error.to_string()), type_id: None, read: None },
    };
    if is_reserved(name) {
        let error = reserved(name).in_document(&path_of(name), Some(layer));
        return Judged {
            state: EntryState::Broken { reason: error.to_string() },
            type_id: said_type(text),
            read: None,
        };
    }
    match checker.read(name, layer, text) {
        Ok((tool, prepared)) => Judged {
            state: if tool.enabled { EntryState::Active } else { EntryState::Disabled },
            type_id: Some(tool.type_id.to_owned()),
            read: Some((tool, prepared)),
        },
        Err(errors) => {
            Judged { state: EntryState::Broken { reason: reason(&errors) }, type_id: said_type(text), read: None }
        }
    }
}

fn is_reserved(name: &EntryName) -> bool {
    RESERVED_NAMES.contains(&name.as_str())
}

fn broken(name: &EntryName, layer: Layer, reason: &str) -> EntryState {
    EntryState::Broken { reason: placed(&path_of(name), layer, &reason) }
}

fn placed(place: &str, layer: Layer, reason: &dyn std::fmt::Display) -> String {
    format!("{place} ({layer}): {reason}")
}

fn reason(errors: &[DocumentError]) -> String {
    let first = errors.first().map(ToString::to_string).unwrap_or_default();
    match errors.len() {
        0 | 1 => first,
        more => format!("{first} (and {} more)", more - 1),
    }
}

/// The type that a document names which cannot be used.
fn said_type(text: &str) -> Option<String> {
    yaml::parse(text).ok()?.get("type").and_then(Node::as_text).map(shown)
}

fn single(tool: ServerTool, built: BuiltTool, layer: Layer) -> Result<Tool, String> {
    let schema = ArgumentSchema::compile(&built.input_schema)?;
    let name = ToolName::parse(tool.name.as_str()).map_err(|error| error.to_string())?;
    let spec = ToolSpec {
        input_schema: raw(&built.input_schema)?,
        output_schema: built.output_schema.as_ref().map(raw).transpose()?,
        ..head(&tool, layer, name)
    };
    Ok(Tool { spec, schema: Some(schema), handler: built.handler })
}

fn raw(schema: &serde_json::Value) -> Result<Raw, String> {
    to_raw_value(schema).map_err(|error| error.to_string())
}

/// What a document says of every tool it makes. The schemas are the tool's own.
pub(super) fn head(tool: &ServerTool, layer: Layer, name: ToolName) -> ToolSpec {
    ToolSpec {
        name,
        original_name: None,
        title: None,
        description: tool.description.clone(),
        search_hint: tool.search_hint.clone(),
        prompt_hint: tool.prompt_hint.clone(),
        input_schema: RawValue::NULL.to_owned(),
        output_schema: None,
        annotations: None,
        extra: None,
        changed: false,
        labels: tool.labels.clone(),
        primary: tool.primary,
        deferred: tool.default_deferred,
        requires_roles: tool.requires_roles.clone(),
        profiles: tool.profiles.clone(),
        timeout: tool.timeout,
        max_timeout: tool.max_timeout,
        origin: Origin::Configured { entry: tool.name.clone(), type_id: tool.type_id, layer },
    }
}
