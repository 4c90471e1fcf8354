//! What a foot offers, as it changes.

use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::Subject;
use footbridge_shared::limits::MAX_TOOLS_PER_FOOT;
use footbridge_shared::message::RejectedTool;

use super::definition::{FootTool, ToolSet};
use super::foot::{Foot, Link, State};
use super::intake::Checked;
use super::servers::ServerSet;

/// Most that the definitions of one foot's tools may take together, in bytes of JSON.
pub(super) const MAX_TOOL_BYTES: usize = 16 * 1024 * 1024;

/// What became of a `tools` message.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) changed: bool,
    pub(super) rejected: Vec<RejectedTool>,
}

/// What a foot has for somebody.
#[derive(Debug, Clone)]
pub(super) struct Offering {
    pub(super) tools: Arc<ToolSet>,
    pub(super) servers: Arc<ServerSet>,
}

impl State {
    fn offering(&self) -> Offering {
        Offering { tools: self.tools.clone(), servers: self.servers.clone() }
    }
}

impl Foot {
    /// Whether a `tools` message of this revision is news.
    pub(super) fn awaits(&self, epoch: u64, revision: u64) -> bool {
        let state = self.state.lock();
        state.epoch == epoch && state.revision.is_none_or(|last| revision > last)
    }

    /// Changes what the foot offers. The first change of a process replaces all that it inherited.
    pub(super) fn apply(&self, epoch: u64, revision: u64, checked: Checked) -> Applied {
        let Checked { upsert, remove, mut rejected, .. } = checked;
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return Applied { changed: false, rejected };
        }
        state.revision = Some(revision);
        let inherited = std::mem::take(&mut state.inherited);
        let before = if inherited { std::mem::take(&mut state.tools) } else { Arc::default() };
        let State { tools, announced, .. } = &mut *state;
        let tools = Arc::make_mut(tools);
        let mut changed = false;
        for name in remove {
            changed |= tools.remove(name.as_str()).is_some();
        }
        let mut bytes: usize = tools.values().map(|tool| tool.bytes()).sum();
        for definition in upsert {
            let listed = tools.get(&definition.name);
            let kept = bytes - listed.map_or(0, |tool| tool.bytes());
            let too_many = if listed.is_none() && tools.len() >= MAX_TOOLS_PER_FOOT {
                Some(format!("a foot may offer {MAX_TOOLS_PER_FOOT} tools"))
            } else if kept + definition.bytes() > MAX_TOOL_BYTES {
                Some(format!("the tools of a foot may take {MAX_TOOL_BYTES} bytes together"))
            } else {
                None
            };
            if let Some(message) = too_many {
                rejected.push(RejectedTool::new(definition.name.as_str(), ErrorCode::TooManyTools, message));
                // Its old form is not what would run.
                changed |= tools.remove(&definition.name).is_some();
                bytes = kept;
                continue;
            }
            bytes = kept + definition.bytes();
            let old = listed.or_else(|| before.get(&definition.name));
            let name = definition.name.clone();
            match old.filter(|tool| tool.is(&definition)).cloned() {
                Some(same) if inherited => drop(tools.insert(name, same)),
                Some(_) => {}
                None => {
                    changed = true;
                    *announced += 1;
                    tools.insert(name, Arc::new(FootTool::new(definition, *announced)));
                }
            }
        }
        changed |= before.keys().any(|name| !tools.contains_key(name));
        Applied { changed, rejected }
    }

    /// The process has not said what it offers: what it inherited goes. Whether there was any.
    pub(super) fn drop_inherited(&self, epoch: u64) -> bool {
        let mut state = self.state.lock();
        let inherited = state.epoch == epoch && std::mem::take(&mut state.inherited);
        if inherited {
            state.tools = Arc::default();
        }
        inherited
    }

    /// What it offers, if it is here and works for `subject`.
    pub(super) fn offering_for(&self, subject: &Subject) -> Option<Offering> {
        let state = self.state.lock();
        (state.link == Link::Open && state.share.admits(&self.owner, subject)).then(|| state.offering())
    }

    /// What it holds the names of for its owner while it is away.
    pub(super) fn held_offering(&self, subject: &Subject) -> Option<Offering> {
        let state = self.state.lock();
        (state.link == Link::Away && *subject == self.owner).then(|| state.offering())
    }
}
