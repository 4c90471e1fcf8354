//! The way back to a foot that has a call already, whatever its name and its tools mean by now.

use std::sync::Arc;

use footbridge_shared::id::{CallId, ToolName};

use super::FeetRegistry;
use super::foot::Foot;
use super::handler::FootHandler;
use crate::domain::feet::FootState;
use crate::domain::journal::{FootRecall, FootTarget, Recall};
use crate::domain::scope::Scope;
use crate::domain::tool::{Origin, Tool, ToolSpec};

impl FootRecall for FeetRegistry {
    fn recall(&self, scope: &Scope, target: &FootTarget, public: &ToolName) -> Recall {
        match self.holder(scope, target) {
            Ok(Some(foot)) => Recall::Here(Arc::new(known_tool(&foot, target, public))),
            Ok(None) => Recall::Away,
            Err(Replaced) => Recall::Replaced,
        }
    }

    fn stop(&self, scope: &Scope, target: &FootTarget, call: &CallId) {
        if let Ok(Some(foot)) = self.holder(scope, target) {
            foot.stop_unawaited(call);
        }
    }
}

/// The name belongs to a foot with another key.
struct Replaced;

impl FeetRegistry {
    /// The foot itself, if it is connected.
    fn holder(&self, scope: &Scope, target: &FootTarget) -> Result<Option<Arc<Foot>>, Replaced> {
        let address = (target.owner.clone(), target.foot.clone());
        let Some((bound, foot)) = self.core.known(scope).map(|roster| roster.holder(&address)) else { return Ok(None) };
        if bound.is_some_and(|key| key != target.key) {
            return Err(Replaced);
        }
        Ok(foot.filter(|foot| foot.key == target.key && foot.place() == FootState::Connected))
    }
}

/// A tool that a foot was asked to run before. Whether it still offers it makes no difference: the foot knows the call.
fn known_tool(foot: &Arc<Foot>, target: &FootTarget, public: &ToolName) -> Tool {
    Tool {
        spec: ToolSpec::bare(
            public.clone(),
            Origin::Foot { foot: foot.name.clone(), owner: foot.owner.clone(), local: target.local.clone() },
        ),
        schema: None,
        handler: Arc::new(FootHandler::new(foot, public.clone(), target.local.clone())),
    }
}
