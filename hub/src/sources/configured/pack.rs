//! Packs in a listing: their tools under public names, with what the document says of all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{EntryName, Subject, ToolName};
use footbridge_shared::names::public_names;

use super::catalog::{Catalog, head};
use super::mcp::Attachment;
use super::server_tool::ServerTool;
use super::status::{PackState, PackView};
use super::types::Pack;
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallContext, Caller};
use crate::domain::document::Layer;
use crate::domain::failure::Failure;
use crate::domain::journal::FootTarget;
use crate::domain::mcp::McpTools;
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::domain::tool::{Listing, Tool, ToolHandler, ToolSpec};

/// Subjects whose listing of one scope is kept.
const MAX_KEPT_LISTINGS: usize = 256;

/// When a call is worth another try of a pack that is being listed for the first time, in milliseconds.
const CONNECTING_RETRY_MS: u64 = 1_000;

/// A pack that offers its tools.
pub(super) struct ActivePack {
    document: ServerTool,
    layer: Layer,
    pack: Arc<dyn Pack>,
    /// What was made of the tools that it had when it was last asked.
    named: Mutex<Option<Arc<Named>>>,
}

/// Tools under public names.
struct Named {
    of: Arc<[Arc<Tool>]>,
    tools: Vec<Arc<Tool>>,
    mcp: Arc<McpTools>,
}

impl ActivePack {
    pub(super) fn new(document: ServerTool, layer: Layer, pack: Arc<dyn Pack>) -> Self {
        Self { document, layer, pack, named: Mutex::default() }
    }

    /// The MCP server behind it.
    pub(super) fn server(&self) -> Option<&Arc<Attachment>> {
        self.pack.server()
    }

    /// Whether somebody without a process may use it.
    pub(super) fn is_for_direct_callers(&self) -> bool {
        self.document.requires_roles.is_empty() && self.document.profiles.is_empty()
    }

    /// Its tools, in its own order.
    pub(super) fn mcp_tools(&self, scope: &Scope, subject: &Subject) -> Arc<McpTools> {
        self.named(&self.pack.tools(scope, subject)).mcp.clone()
    }

    /// How it is.
    pub(super) fn view(&self, scope: &Scope, subject: &Subject) -> PackView {
        PackView {
            name: self.document.name.clone(),
            type_id: self.document.type_id,
            layer: self.layer,
            tools: self.named(&self.pack.tools(scope, subject)).tools.len(),
            status: self.pack.status(scope, subject),
        }
    }

    /// Why none of its tools is there, for a caller who may use it. `None`: what it offers is known.
    pub(super) fn absent(&self, scope: &Scope, caller: &Caller, now: jiff::Timestamp) -> Option<Failure> {
        let name = self.name();
        let status = self.pack.status(scope, &caller.subject);
        if !self.admits(caller) {
            return None;
        }
        let message = match (status.state, status.error) {
            (PackState::Connecting, _) => format!("the pack `{name}` is connecting: what it offers is not known yet"),
            (PackState::Failed, Some(error)) => format!("the pack `{name}` is not available: {}", error.message),
            (PackState::Failed, None) => format!("the pack `{name}` is not available"),
            (PackState::Ready | PackState::Stale, _) => return None,
        };
        let left = status.next_try_at.map(|at| at.duration_since(now).as_millis());
        let retry = left.map_or(CONNECTING_RETRY_MS, |left| u64::try_from(left).unwrap_or_default().max(1));
        let failure = Failure::not_run(ErrorCode::ServerUnavailable, message)
            .hint(format!("`footbridge packs {name}` shows how it is"));
        // What failed for good is not tried again.
        let again = status.state == PackState::Connecting || left.is_some();
        Some(if again { failure.retry_after_ms(retry) } else { failure })
    }

    /// Whether its document lets a caller use it.
    pub(super) fn admits(&self, caller: &Caller) -> bool {
        let any = ToolName::parse(self.name().as_str());
        any.is_ok_and(|any| head(&self.document, self.layer, any).admits(caller))
    }

    /// The document's name.
    pub(super) fn name(&self) -> &EntryName {
        &self.document.name
    }

    /// What it offers of these tools, under public names. All are named and then some left out: what one tool is called
    /// never depends on whether another is offered. Of two that are called the same where they come from, the first one
    /// counts.
    fn named(&self, tools: &Arc<[Arc<Tool>]>) -> Arc<Named> {
        let mut kept = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|kept| Arc::ptr_eq(&kept.of, tools)) {
            return kept.clone();
        }
        let named = self.name_all(tools);
        let pairs =
            named.iter().map(|tool| (tool.spec.original_name.clone().unwrap_or_default(), tool.spec.name.clone()));
        let mcp = Arc::new(McpTools { names: pairs.collect() });
        kept.insert(Arc::new(Named { of: tools.clone(), tools: named, mcp })).clone()
    }

    fn name_all(&self, tools: &[Arc<Tool>]) -> Vec<Arc<Tool>> {
        let names = public_names(&self.document.name, tools.iter().map(|tool| self.pack.original(tool)));
        let left_out: BTreeSet<&str> = self.document.disabled_sub_tools.iter().map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        tools
            .iter()
            .map(|tool| (self.pack.original(tool), tool))
            .filter(|(original, _)| seen.insert(*original))
            .filter(|(original, _)| !left_out.contains(original) && self.pack.offers(original))
            .filter_map(|(original, tool)| self.tool(names.get(original)?.clone(), original, tool).map(Arc::new))
            .collect()
    }

    /// One tool: what it is comes from where it lives, how it is offered from the document, and limits from both.
    fn tool(&self, name: ToolName, original: &str, tool: &Arc<Tool>) -> Option<Tool> {
        let (inner, head) = (&tool.spec, head(&self.document, self.layer, name));
        let spec = ToolSpec {
            original_name: Some(original.to_owned()),
            title: inner.title.clone(),
            description: inner.description.clone(),
            search_hint: inner.search_hint.clone(),
            input_schema: inner.input_schema.clone(),
            output_schema: inner.output_schema.clone(),
            annotations: inner.annotations.clone(),
            extra: inner.extra.clone(),
            changed: inner.changed,
            labels: union(&head.labels, &inner.labels),
            deferred: head.deferred || inner.deferred,
            requires_roles: union(&head.requires_roles, &inner.requires_roles),
            profiles: both(&head.profiles, &inner.profiles)?,
            timeout: shorter(head.timeout, inner.timeout),
            max_timeout: shorter(head.max_timeout, inner.max_timeout),
            ..head
        };
        Some(Tool { spec, schema: None, handler: Arc::new(Inner(tool.clone())) })
    }
}

pub(super) fn union(a: &[String], b: &[String]) -> Vec<String> {
    a.iter().chain(b).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Profiles that both sides admit, where an empty list admits all; `None`: there are none.
fn both(a: &[String], b: &[String]) -> Option<Vec<String>> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => Some(b.to_vec()),
        (_, true) => Some(a.to_vec()),
        _ => {
            Some(a.iter().filter(|profile| b.contains(profile)).cloned().collect::<Vec<_>>()).filter(|p| !p.is_empty())
        }
    }
}

pub(super) fn shorter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The tool where it lives, which also checks its arguments if the hub does that for it.
struct Inner(Arc<Tool>);

#[async_trait]
impl ToolHandler for Inner {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        if let Some(schema) = &self.0.schema {
            schema.check(&arguments)?;
        }
        self.0.handler.invoke(arguments, ctx).await
    }

    fn runs_on(&self) -> Option<FootTarget> {
        self.0.handler.runs_on()
    }
}

/// Listings with packs, by subject: made again only when a pack's tools changed.
#[derive(Default)]
pub(super) struct PackListings {
    kept: Mutex<HashMap<Subject, Kept>>,
}

struct Kept {
    tools: Vec<Arc<[Arc<Tool>]>>,
    listing: Arc<Listing>,
}

impl PackListings {
    /// The catalog with the tools that its packs offer this subject now.
    pub(super) fn listing(&self, catalog: &Catalog, scope: &Scope, subject: &Subject) -> Arc<Listing> {
        let tools: Vec<_> = catalog.packs.iter().map(|pack| pack.pack.tools(scope, subject)).collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.get(subject).filter(|kept| same(&kept.tools, &tools)) {
            return kept.listing.clone();
        }
        let mut listing = Listing {
            tools: catalog.listing.tools.clone(),
            entries: catalog.listing.entries.clone(),
            blind: catalog.listing.blind.clone(),
        };
        for (pack, tools) in catalog.packs.iter().zip(&tools) {
            for tool in &pack.named(tools).tools {
                listing.tools.entry(tool.spec.name.clone()).or_insert_with(|| tool.clone());
            }
        }
        for link in &catalog.links {
            let place = catalog.packs.iter().position(|pack| pack.name() == link.server());
            let pack = place.and_then(|place| Some((catalog.packs.get(place)?, tools.get(place)?)));
            let tool = link.tool(pack.map(|(pack, tools)| (pack, &**tools)), &catalog.packs);
            listing.tools.insert(tool.spec.name.clone(), Arc::new(tool));
        }
        let listing = Arc::new(listing);
        if kept.len() >= MAX_KEPT_LISTINGS {
            kept.clear();
        }
        kept.insert(subject.clone(), Kept { tools, listing: listing.clone() });
        listing
    }
}

/// Compares where the tools lie, not what they are: this runs at every call.
fn same(a: &[Arc<[Arc<Tool>]>], b: &[Arc<[Arc<Tool>]>]) -> bool {
    let same_tools = |a: &Arc<[Arc<Tool>]>, b: &Arc<[Arc<Tool>]>| {
        Arc::ptr_eq(a, b) || (a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| Arc::ptr_eq(a, b)))
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_tools(a, b))
}
