//! What one subject sees of the feet of a project: a listing with public names.

use std::sync::Arc;

use footbridge_shared::id::{FootName, Subject};

use super::definition::ToolSet;
use super::foot::Foot;
use super::names::{Offer, PublicNames, public_names};
use crate::domain::tool::Listing;

/// A foot that a subject may use, or its own one that is away, under the name by which that subject addresses it.
#[derive(Debug)]
pub(super) struct Visible {
    pub(super) foot: Arc<Foot>,
    pub(super) seen: FootName,
    /// Whether it can be called; one that is away only holds its names.
    pub(super) here: bool,
    pub(super) tools: Arc<ToolSet>,
}

/// Builds the listing of `subject` from the feet it may use, in order of precedence.
pub(super) fn listing(subject: &Subject, visible: &[Visible]) -> Listing {
    let offers: Vec<Offer<'_>> = visible
        .iter()
        .map(|Visible { foot, seen, here, tools }| Offer {
            seen,
            owner: &foot.owner,
            own: foot.owner == *subject,
            here: *here,
            tools: tools.keys().collect(),
        })
        .collect();
    let PublicNames { names, collisions } = public_names(&offers);
    if let Some(name) = collisions.first() {
        let count = collisions.len();
        tracing::debug!(%subject, name, count, "tools of feet would share public names; they were told apart by suffixes");
    }
    let tools = names
        .into_iter()
        .filter_map(|(name, target)| {
            let Visible { foot, tools, .. } = &visible[target.offer];
            let tool = tools.get(target.local)?;
            let tool = if name == *target.local { tool.bare(foot) } else { tool.qualified(foot, &name) };
            Some((name, tool))
        })
        .collect();
    Listing { tools, ..Listing::default() }
}
