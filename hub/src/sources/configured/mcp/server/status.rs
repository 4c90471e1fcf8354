//! How a server is, for people.

use footbridge_mcp::Fields;
use footbridge_shared::text::clean_and_cut;
use tokio::time::Instant;

use super::Server;
use crate::domain::mcp::ListKind;
use crate::sources::configured::status::{PackState, PackStatus};

impl Server {
    /// How it is.
    pub(in crate::sources::configured) fn status(&self) -> PackStatus {
        let (listed, state) = (self.listed(), self.state.lock());
        let known = listed.description.is_some();
        let changed = listed.tools.iter().filter(|tool| tool.spec.changed);
        let until = state.next_try.map(|at| at.saturating_duration_since(Instant::now()));
        let info = listed.description.as_ref().and_then(|description| Fields::of(&description.info));
        let said =
            |key: &str| Some(clean_and_cut(&info.as_ref()?.read::<String>(key)?, 100)).filter(|text| !text.is_empty());
        PackStatus {
            state: match (&state.error, known) {
                (None, true) if state.listed_at.is_some() => PackState::Ready,
                (None, _) => PackState::Connecting,
                (Some(_), true) => PackState::Stale,
                (Some(_), false) => PackState::Failed,
            },
            place: Some(self.config.target.shown()),
            server: said("name").map(|name| match said("version") {
                Some(version) => format!("{name} {version}"),
                None => name,
            }),
            protocol: listed.description.as_ref().map(|description| description.version.to_string()),
            left_out: listed.left_out,
            odd: listed.odd.to_vec(),
            changed: changed.filter_map(|tool| tool.spec.original_name.clone()).collect(),
            resources: listed.of(ListKind::Resources).len(),
            resource_templates: listed.of(ListKind::ResourceTemplates).len(),
            prompts: listed.of(ListKind::Prompts).len(),
            error: state.error.clone(),
            note: state.note.clone(),
            listed_at: state.listed_at,
            next_try_at: until.and_then(|until| self.hub.clock.now().checked_add(until).ok()),
        }
    }
}
