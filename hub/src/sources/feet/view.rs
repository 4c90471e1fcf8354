//! What one subject sees of the feet of a project: tools and MCP servers with their public names.

use std::collections::HashMap;
use std::sync::Arc;

use footbridge_shared::id::{EntryName, FootName, Subject, ToolName};

use super::foot::Foot;
use super::names::{LocalName, Offer, PublicNames, Target, public_names};
use super::offer::Offering;
use super::server::FootServer;
use crate::domain::mcp::McpTools;
use crate::domain::tool::Listing;

/// A foot that a subject may use, or its own one that is away, under the name by which that subject addresses it.
#[derive(Debug)]
pub(super) struct Visible {
    pub(super) foot: Arc<Foot>,
    pub(super) seen: FootName,
    /// Whether it can be called; one that is away only holds its names.
    pub(super) here: bool,
    pub(super) offering: Offering,
}

impl Visible {
    fn offer<'a, N: LocalName>(&'a self, subject: &Subject, locals: Vec<&'a N>) -> Offer<'a, N> {
        let Self { foot, seen, here, .. } = self;
        Offer { seen, owner: &foot.owner, own: foot.owner == *subject, here: *here, locals }
    }
}

/// See the module.
pub(super) struct View {
    pub(super) listing: Arc<Listing>,
    /// By name. Each stands here once: under its bare name if that stands for it, else under the one with its foot.
    pub(super) servers: Vec<Arc<FootServer>>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("servers", &self.servers.len()).finish_non_exhaustive()
    }
}

impl View {
    /// Builds the view of `subject` from the feet it may use, in order of precedence.
    pub(super) fn of(subject: &Subject, visible: &[Visible]) -> Self {
        let offers: Vec<Offer<'_, ToolName>> =
            visible.iter().map(|visible| visible.offer(subject, visible.offering.tools.keys().collect())).collect();
        let PublicNames { names, collisions } = public_names(&offers);
        if let Some(name) = collisions.first() {
            let count = collisions.len();
            tracing::debug!(%subject, name, count, "tools of feet would share public names; they were told apart by suffixes");
        }
        let servers = servers(subject, visible, &names);
        let tools = names
            .into_iter()
            .filter_map(|(name, target)| {
                let Visible { foot, offering, .. } = &visible[target.offer];
                let tool = offering.tools.get(target.local)?;
                let tool = if name == *target.local { tool.bare(foot) } else { tool.qualified(foot, &name) };
                Some((name, tool))
            })
            .collect();
        Self { listing: Arc::new(Listing { tools, ..Listing::default() }), servers }
    }
}

/// The servers of those feet, with the names that their tools have.
fn servers(
    subject: &Subject,
    visible: &[Visible],
    tools: &std::collections::BTreeMap<ToolName, Target<'_, ToolName>>,
) -> Vec<Arc<FootServer>> {
    if visible.iter().all(|visible| visible.offering.servers.is_empty()) {
        return Vec::new();
    }
    let offers: Vec<Offer<'_, EntryName>> =
        visible.iter().map(|visible| visible.offer(subject, visible.offering.servers.keys().collect())).collect();
    let PublicNames { names, .. } = public_names(&offers);
    let bare = |target: &Target<'_, EntryName>| names.get(target.local).is_some_and(|bare| bare == target);
    let public = preferred(tools);
    names
        .iter()
        .filter(|(name, target)| *name == target.local || !bare(target))
        .filter_map(|(name, target)| {
            let Visible { foot, offering, .. } = &visible[target.offer];
            let server = offering.servers.get(target.local)?.clone();
            let mut tools: Vec<_> = offering
                .tools
                .iter()
                .filter(|(_, tool)| tool.pack() == Some(server.name.as_str()))
                .filter_map(|(local, tool)| {
                    Some((tool.order, tool.original_name(), *public.get(&(target.offer, local))?))
                })
                .collect();
            tools.sort_by_key(|(order, ..)| *order);
            let tools = tools.into_iter().map(|(_, original, public)| (original.to_owned(), public.clone())).collect();
            let tools = Arc::new(McpTools { names: tools });
            Some(Arc::new(FootServer::new(name.clone(), foot, server, tools)))
        })
        .collect()
}

/// The public name of each tool of each offer: the bare one where that stands for it.
fn preferred<'a>(
    tools: &'a std::collections::BTreeMap<ToolName, Target<'a, ToolName>>,
) -> HashMap<(usize, &'a ToolName), &'a ToolName> {
    let mut public = HashMap::new();
    for (name, Target { offer, local }) in tools {
        if name == *local {
            public.insert((*offer, *local), name);
        } else {
            public.entry((*offer, *local)).or_insert(name);
        }
    }
    public
}
