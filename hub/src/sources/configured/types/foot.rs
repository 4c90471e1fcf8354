//! `foot`: a named foot's tools as a pack, for whom the foot works.

use std::collections::BTreeSet;
use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::{FootName, Subject};
use serde_json::{Value as Json, json};

use super::{Built, Pack, Prepared, ToolType};
use crate::domain::feet::{FootDirectory, FootState};
use crate::domain::scope::Scope;
use crate::domain::tool::{Origin, Tool};
use crate::sources::configured::status::{PackState, PackStatus};
use crate::yaml::{KeyPath, Node, Problem, Value};

/// The type.
pub(super) struct Foot;

impl ToolType for Foot {
    fn id(&self) -> &'static str {
        "foot"
    }

    fn description(&self) -> &'static str {
        "Offers the tools of a named foot under this pack's name, to those for whom the foot works. While the foot is away \
         the pack has no tools."
    }

    fn parameters(&self) -> Json {
        json!({
            "type": "object",
            "required": ["foot"],
            "additionalProperties": false,
            "properties": {
                "foot": {"type": "string", "description": "The foot's name."},
                "exposedTools": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "description": "Names on the foot of the tools to offer; all without this key, none with an empty list.",
                },
            },
        })
    }

    fn is_pack(&self) -> bool {
        true
    }

    fn prepare(&self, parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Prepared> {
        let name = parameters.get("foot")?;
        let foot = match FootName::parse(name.as_text()?) {
            Ok(foot) => foot,
            Err(error) => {
                let problem = Problem::new(name.at, path.key("foot"), error.to_string());
                problems.push(problem.code(ErrorCode::InvalidName));
                return None;
            }
        };
        let exposed = match parameters.get("exposedTools").map(|node| &node.value) {
            Some(Value::List(items)) => Some(items.iter().filter_map(Node::as_text).map(str::to_owned).collect()),
            _ => None,
        };
        Some(Box::new(move |deps, _| Built::Pack(Arc::new(FootPack { foot, exposed, feet: deps.feet.clone() }))))
    }
}

struct FootPack {
    foot: FootName,
    /// `None`: all.
    exposed: Option<BTreeSet<String>>,
    feet: Arc<dyn FootDirectory>,
}

impl Pack for FootPack {
    fn tools(&self, scope: &Scope, subject: &Subject) -> Arc<[Arc<Tool>]> {
        self.feet.tools_of(scope, subject, &self.foot).unwrap_or_default()
    }

    fn original<'a>(&self, tool: &'a Tool) -> &'a str {
        match &tool.spec.origin {
            Origin::Foot { local, .. } => local.as_str(),
            Origin::Configured { .. } | Origin::BuiltIn => tool.spec.name.as_str(),
        }
    }

    fn offers(&self, original: &str) -> bool {
        self.exposed.as_ref().is_none_or(|exposed| exposed.contains(original))
    }

    fn status(&self, scope: &Scope, subject: &Subject) -> PackStatus {
        let place = format!("foot {}", self.foot);
        let known = self.feet.feet(scope, subject).into_iter().find(|foot| foot.name == self.foot);
        let (state, why) = match known.map(|foot| foot.state) {
            Some(FootState::Connected) => return PackStatus::plain(PackState::Ready, place),
            Some(FootState::Away) => (PackState::Connecting, "the foot is away for a moment"),
            Some(FootState::Offline) => (PackState::Failed, "the foot is not connected"),
            None => (PackState::Failed, "no foot of this name works for you"),
        };
        PackStatus { note: Some(why.to_owned()), ..PackStatus::plain(state, place) }
    }
}
