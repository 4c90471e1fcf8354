//! The merge of what the sources offer. Pure: three listings in, one answer per name out.

use std::sync::Arc;

use footbridge_shared::id::{PACK_SEPARATOR, ToolName};

use crate::domain::tool::{Blind, Entry, EntryState, Listing, Origin, RESERVED_NAMES, Tool};

/// One consistent snapshot of all sources, for one subject in one scope. Gates are not applied yet.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Documents.
    pub configured: Arc<Listing>,
    /// Code of the hub.
    pub built_in: Arc<Listing>,
    /// Feet.
    pub client: Arc<Listing>,
}

/// What a name means.
#[derive(Debug)]
pub enum Resolution<'a> {
    /// A tool.
    Tool(&'a Arc<Tool>),
    /// A document that cannot be used stands in the way.
    Broken {
        /// The document.
        entry: &'a Entry,
        /// Why.
        reason: &'a str,
    },
    /// A layer that could not be looked into may hold a document of this name.
    Blind(&'a Blind),
    /// Nothing: there is no such tool, or a disabled document stands in the way.
    Unknown,
}

impl Catalog {
    /// Resolves a public name. First match wins: documents, built-in tools, feet; a document of that name stops the
    /// search whatever its state.
    pub fn resolve(&self, name: &str) -> Resolution<'_> {
        if let Some(tool) = self.configured.tools.get(name) {
            return Resolution::Tool(tool);
        }
        if let Some(entry) = self.shadow_of(name) {
            return blocked(entry);
        }
        if let Some(blind) = self.blind_to(name) {
            return Resolution::Blind(blind);
        }
        if let Some(tool) = self.built_in.tools.get(name) {
            return Resolution::Tool(tool);
        }
        let Some(tool) = self.client.tools.get(name) else { return Resolution::Unknown };
        match self.block_of(tool) {
            Some(entry) => blocked(entry),
            None => Resolution::Tool(tool),
        }
    }

    /// All tools that can be resolved, by name, each once.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        let mut tools: Vec<Arc<Tool>> = self.configured.tools.values().cloned().collect();
        let lower = self.built_in.tools.values().chain(
            self.client.tools.values().filter(|tool| !self.built_in.tools.contains_key(tool.spec.name.as_str())),
        );
        tools.extend(lower.filter(|tool| self.reaches(tool)).cloned());
        tools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        tools
    }

    /// Documents that are broken, by name.
    pub fn broken(&self) -> impl Iterator<Item = (&Entry, &str)> {
        self.configured.entries.values().filter_map(|entry| match &entry.state {
            EntryState::Broken { reason } => Some((entry, reason.as_str())),
            EntryState::Active | EntryState::Disabled => None,
        })
    }

    /// The document that hides a built-in or client tool, if one does.
    pub fn hidden_by(&self, tool: &Tool) -> Option<&Entry> {
        self.shadow_of(tool.spec.name.as_str()).or_else(|| self.block_of(tool))
    }

    /// The layer that may hold a document of this name, for all that anybody knows. Only for names that no document claims:
    /// those are decided above it. A meta tool's name is never the layer's to take.
    fn blind_to(&self, name: &str) -> Option<&Blind> {
        let blind = self.configured.blind.as_ref()?;
        (!RESERVED_NAMES.contains(&name) && ToolName::parse(name).is_ok()).then_some(blind)
    }

    /// Whether nothing above hides a built-in or client tool.
    fn reaches(&self, tool: &Tool) -> bool {
        self.hidden_by(tool).is_none() && self.blind_to(tool.spec.name.as_str()).is_none()
    }

    /// The document that claims a public name: its own, or as the pack before the first `__`. Enabled or not, it hides
    /// what lies below. A check of names against documents; calls are routed by table.
    fn shadow_of(&self, name: &str) -> Option<&Entry> {
        let entries = &self.configured.entries;
        let pack = name.split_once(PACK_SEPARATOR).map(|(pack, _)| pack);
        entries.get(name).or_else(|| pack.and_then(|pack| entries.get(pack))).filter(|entry| entry.shadows)
    }

    /// The document that blocks a foot's tool under its qualified name too: one that says "not this tool", being disabled
    /// or broken. An active one is another tool, and leaves the qualified name alone.
    fn block_of(&self, tool: &Tool) -> Option<&Entry> {
        let Origin::Foot { local, .. } = &tool.spec.origin else { return None };
        self.shadow_of(local.as_str()).filter(|entry| entry.state != EntryState::Active)
    }
}

fn blocked(entry: &Entry) -> Resolution<'_> {
    match &entry.state {
        EntryState::Broken { reason } => Resolution::Broken { entry, reason },
        EntryState::Active | EntryState::Disabled => Resolution::Unknown,
    }
}
