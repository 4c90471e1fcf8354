//! The feet of one project: which names are bound, who is here, and what each subject sees of that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use footbridge_shared::id::{FootKey, FootName, Subject};
use footbridge_shared::message::Share;
use parking_lot::RwLock;

use super::foot::{Arrival, Attached, Foot, Node};
use super::names::{seen_names, told_apart};
use super::view::{View, Visible};
use crate::domain::feet::{FootState, FootSummary};
use crate::domain::scope::Scope;
use crate::domain::tool::Tool;

/// Subjects whose listings are kept ready, for each project.
const MAX_VIEWS: usize = 4096;

/// Whose foot, and which.
pub(super) type Address = (Subject, FootName);

/// What a subject has here besides one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Others {
    /// Feet that are connected under other names.
    pub(super) connected: usize,
    /// Names that are bound; `None` when the one name is among them.
    pub(super) bound: Option<usize>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Roster {
    node: Arc<Node>,
    scope: Arc<Scope>,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    bound: BTreeMap<Address, FootKey>,
    /// Connected ones and those that may resume. Each has its name bound.
    feet: BTreeMap<Address, Arc<Foot>>,
    views: HashMap<Subject, Arc<View>>,
    /// Counts up with every change of what a listing is made from.
    revision: u64,
}

impl Roster {
    pub(super) fn new(node: Arc<Node>, scope: Scope) -> Self {
        Self { node, scope: Arc::new(scope), state: RwLock::default() }
    }

    /// Notes a binding that the store holds. A foot that is here under another id has lost the name.
    pub(super) fn bind(&self, address: Address, key: FootKey) {
        let mut state = self.state.write();
        let lost = state.feet.get(&address).is_some_and(|foot| foot.key != key);
        if lost {
            state.remove(&address);
        }
        let new = state.bound.insert(address, key).is_none();
        if lost || new {
            self.changed(&mut state);
        }
    }

    /// Notes that a name is free: a foot that is here under it has to go. Whether it was bound.
    pub(super) fn release(&self, address: &Address) -> bool {
        let mut state = self.state.write();
        state.remove(address);
        let bound = state.bound.remove(address).is_some();
        self.changed(&mut state);
        bound
    }

    /// The names that are bound, and to whom.
    pub(super) fn bound(&self) -> Vec<(Address, FootKey)> {
        self.state.read().bound.iter().map(|(address, key)| (address.clone(), key.clone())).collect()
    }

    /// To whom a name is bound, and the foot that is here under it, or may resume.
    pub(super) fn holder(&self, address: &Address) -> (Option<FootKey>, Option<Arc<Foot>>) {
        let state = self.state.read();
        (state.bound.get(address).cloned(), state.feet.get(address).cloned())
    }

    /// Whether the foot with this key is connected under the name.
    pub(super) fn is_taken(&self, address: &Address, key: &FootKey) -> bool {
        let foot = self.state.read().feet.get(address).cloned();
        foot.is_some_and(|foot| foot.key == *key && foot.place() == FootState::Connected)
    }

    /// What the owner of a name has here besides it.
    pub(super) fn others(&self, address: &Address) -> Others {
        let state = self.state.read();
        let is_other = |other: &&Address| other.0 == address.0 && **other != *address;
        let connected = |foot: &Arc<Foot>| foot.place() == FootState::Connected;
        Others {
            connected: state.feet.iter().filter(|(other, foot)| is_other(other) && connected(foot)).count(),
            bound: (!state.bound.contains_key(address)).then(|| state.bound.keys().filter(is_other).count()),
        }
    }

    /// Makes the arrived connection the foot's own. The name is bound to its id.
    pub(super) fn attach(&self, mut arrival: Arrival) -> (Arc<Foot>, Attached) {
        let address = (arrival.owner.clone(), arrival.hello.foot.name.clone());
        let mut state = self.state.write();
        // Private feet do not count: nobody sees both, and nobody may learn of them.
        let clash = |foot: &Arc<Foot>| foot.name == address.1 && foot.owner != address.0 && foot.is_shared();
        if arrival.hello.share != Share::Owner && state.feet.values().any(clash) {
            arrival.shared_name = Some(told_apart(&address.1, &address.0));
        }
        let foot = match state.feet.get(&address) {
            Some(foot) => foot.clone(),
            None => {
                let foot = Arc::new(Foot::new(self.node.clone(), self.scope.clone(), &arrival));
                state.feet.insert(address, foot.clone());
                foot
            }
        };
        let attached = foot.attach(arrival);
        if attached.changed {
            self.changed(&mut state);
        }
        (foot, attached)
    }

    /// The connection of this epoch is gone. `false`: it was not the foot's own any more.
    pub(super) fn detach(&self, foot: &Foot, epoch: u64) -> bool {
        let mut state = self.state.write();
        let own = foot.detach(epoch);
        if own {
            self.changed(&mut state);
        }
        own
    }

    /// The foot did not come back to this epoch, or left for good.
    pub(super) fn leave(&self, foot: &Foot, epoch: u64) {
        let mut state = self.state.write();
        if foot.leave(epoch) {
            state.feet.remove(&(foot.owner.clone(), foot.name.clone()));
            self.changed(&mut state);
        }
    }

    /// What a foot offers changed.
    pub(super) fn offers_changed(&self) {
        self.changed(&mut self.state.write());
    }

    /// What listings are made from is not what it was.
    fn changed(&self, state: &mut State) {
        state.revision += 1;
        state.views.clear();
        self.node.surfaces.tell();
    }

    /// What `subject` sees. `None`: there is no foot at all.
    pub(super) fn view(&self, subject: &Subject) -> Option<Arc<View>> {
        let (revision, visible) = {
            let state = self.state.read();
            if let Some(view) = state.views.get(subject) {
                return Some(view.clone());
            }
            if state.feet.is_empty() {
                return None;
            }
            (state.revision, state.visible(subject))
        };
        let view = Arc::new(View::of(subject, &visible));
        let mut state = self.state.write();
        // A view of what has changed meanwhile is still one consistent view, but not one to keep.
        if state.revision == revision {
            if state.views.len() >= MAX_VIEWS {
                state.views.clear();
            }
            state.views.insert(subject.clone(), view.clone());
        }
        Some(view)
    }

    /// The tools of the foot that `subject` addresses by this name.
    pub(super) fn tools_of(&self, subject: &Subject, seen: &FootName) -> Option<Arc<[Arc<Tool>]>> {
        let visible = self.state.read().visible(subject);
        let Visible { foot, offering, .. } =
            visible.into_iter().find(|visible| visible.here && visible.seen == *seen)?;
        Some(offering.tools.values().map(|tool| tool.bare(&foot)).collect())
    }

    /// The feet that `subject` may use: its own first, those that are not here included, then others' by name.
    pub(super) fn feet(&self, subject: &Subject) -> Vec<FootSummary> {
        let state = self.state.read();
        let own = state.bound.keys().filter(|(owner, _)| owner == subject).map(|address| {
            let foot = state.feet.get(address);
            FootSummary {
                name: address.1.clone(),
                bound_name: address.1.clone(),
                owner: subject.clone(),
                state: foot.map_or(FootState::Offline, |foot| foot.place()),
                own: true,
                details: foot.map(|foot| foot.details()),
            }
        });
        let mut foreign: Vec<FootSummary> = state
            .foreign(subject)
            .into_iter()
            .map(|(foot, name)| FootSummary {
                name,
                bound_name: foot.name.clone(),
                owner: foot.owner.clone(),
                state: foot.place(),
                own: false,
                details: Some(foot.details()),
            })
            .collect();
        foreign.sort_by(|a, b| (&a.name, &a.owner).cmp(&(&b.name, &b.owner)));
        own.chain(foreign).collect()
    }

    /// All bound names with owner and state, and nothing else of them.
    pub(super) fn all(&self) -> Vec<FootSummary> {
        let state = self.state.read();
        let summary = |address: &Address| FootSummary {
            name: address.1.clone(),
            bound_name: address.1.clone(),
            owner: address.0.clone(),
            state: state.feet.get(address).map_or(FootState::Offline, |foot| foot.place()),
            own: false,
            details: None,
        };
        state.bound.keys().map(summary).collect()
    }

    /// The number of changes so far of what listings are made from.
    #[cfg(test)]
    pub(super) fn revision(&self) -> u64 {
        self.state.read().revision
    }

    /// Feet here, calls on them, and listings kept ready.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.state.read();
        (state.feet.len(), state.feet.values().map(|foot| foot.pending()).sum(), state.views.len())
    }
}

impl State {
    fn remove(&mut self, address: &Address) {
        if let Some(foot) = self.feet.remove(address) {
            foot.release();
        }
    }

    /// The feet that others share with `subject`, connected or away, each with the name by which it is seen.
    fn foreign(&self, subject: &Subject) -> Vec<(&Arc<Foot>, FootName)> {
        let feet: Vec<&Arc<Foot>> =
            self.feet.values().filter(|foot| foot.owner != *subject && foot.admits(subject)).collect();
        let named: Vec<(&Subject, &FootName)> = feet.iter().map(|foot| (&foot.owner, &foot.name)).collect();
        let own =
            |name: &str| FootName::parse(name).is_ok_and(|name| self.bound.contains_key(&(subject.clone(), name)));
        let seen = seen_names(&own, &named);
        feet.into_iter().zip(seen).collect()
    }

    /// The connected feet that `subject` may use and its own that are away, in order of precedence.
    fn visible(&self, subject: &Subject) -> Vec<Visible> {
        let own = self.feet.values().filter(|foot| foot.owner == *subject).map(|foot| (foot, foot.name.clone()));
        let mut foreign = self.foreign(subject);
        foreign.sort_by(|(a, seen_a), (b, seen_b)| (seen_a, &a.owner).cmp(&(seen_b, &b.owner)));
        own.chain(foreign)
            .filter_map(|(foot, seen)| {
                let (here, offering) = match foot.offering_for(subject) {
                    Some(offering) => (true, offering),
                    None => (false, foot.held_offering(subject)?),
                };
                Some(Visible { foot: foot.clone(), seen, here, offering })
            })
            .collect()
    }
}
