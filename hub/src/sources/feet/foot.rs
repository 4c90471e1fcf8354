//! One foot, across its connections: who it is, what it offers, which connection is its own, and what runs there.
//!
//! Connections are told apart by an epoch that only counts up. Whatever a connection does to its foot names its epoch;
//! a connection that was replaced can do nothing, however late it ends.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use footbridge_shared::id::{CallId, FootKey, FootName, InstanceId, SessionId, Subject, ToolName};
use footbridge_shared::limits::{Limits, MAX_MAX_CONCURRENT};
use footbridge_shared::message::{Cancel, FootInfo, Hello, InFlight, InFlightState, Ping, Share, Welcome};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::about::shown;
use super::config::millis;
use super::definition::ToolSet;
use super::frame::Ending;
use super::lists::MAX_LIST_BYTES;
use super::outbox::Outbox;
use super::parts::{FootRoom, HubRoom, Incoming};
use super::pending::{Lost, Pending, not_started};
use super::questions::MAX_QUESTION_BYTES;
use super::requests::Request;
use super::servers::{CheckedServer, ServerSet};
use crate::domain::changes::SurfaceChanges;
use crate::domain::journal::FootTarget;
use crate::domain::scope::Scope;

/// What a `cancel` says to the foot.
pub(super) const NOBODY_WAITS: &str = "nobody waits for the result any more";

/// Most that the frames of calls that run on one foot, or wait for it, may take together, in bytes.
pub(super) const MAX_PENDING_BYTES: usize = 32 * 1024 * 1024;

/// This hub node, for its feet.
#[derive(Debug)]
pub(super) struct Node {
    /// Its name: `origin` of its calls.
    pub(super) name: String,
    pub(super) limits: Limits,
    pub(super) started: Instant,
    /// Told when what somebody sees of feet may be something else.
    pub(super) surfaces: SurfaceChanges,
    /// For answers of all feet that come in parts.
    pub(super) parts: Arc<HubRoom>,
}

impl Node {
    /// The session clock: milliseconds since this hub started.
    pub(super) fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }
}

/// A foot whose `hello` was accepted.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) hello: Box<Hello>,
    /// Those that `hello` names, checked.
    pub(super) servers: Vec<CheckedServer>,
    pub(super) owner: Subject,
    pub(super) outbox: Arc<Outbox>,
    /// Of this connection: larger than all before it.
    pub(super) epoch: u64,
    /// What the session is called if it is a new one.
    pub(super) session: SessionId,
    pub(super) shared_name: Option<FootName>,
    pub(super) now: Timestamp,
}

/// What an arrival did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attached {
    /// The session of before goes on.
    pub(super) resumed: bool,
    /// Listings may differ.
    pub(super) changed: bool,
    /// The tools are those of the process before, until this one says what it offers.
    pub(super) inherited: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Foot {
    pub(super) node: Arc<Node>,
    pub(super) scope: Arc<Scope>,
    pub(super) owner: Subject,
    pub(super) name: FootName,
    pub(super) key: FootKey,
    pub(super) state: Mutex<State>,
    /// Bytes that the frames of further calls may take.
    pub(super) room: Arc<Semaphore>,
    /// For answers that come in parts.
    pub(super) parts: Arc<FootRoom>,
    /// Bytes that further questions to clients may take.
    pub(super) questions: Arc<Semaphore>,
    /// Bytes that lists of its MCP servers may take.
    pub(super) lists: Arc<Semaphore>,
    /// Told when the epoch changes.
    news: Notify,
}

/// What changes about a foot.
#[derive(Debug)]
pub(super) struct State {
    pub(super) epoch: u64,
    pub(super) link: Link,
    pub(super) outbox: Arc<Outbox>,
    instance: InstanceId,
    session: SessionId,
    pub(super) info: FootInfo,
    pub(super) share: Share,
    pub(super) max_concurrent: usize,
    pub(super) connected_at: Timestamp,
    pub(super) tools: Arc<ToolSet>,
    /// Tools announced so far.
    pub(super) announced: u64,
    /// Its local MCP servers.
    pub(super) servers: Arc<ServerSet>,
    /// The tools are those of the process before.
    pub(super) inherited: bool,
    /// Of the last `tools` of this instance.
    pub(super) revision: Option<u64>,
    pub(super) pending: HashMap<CallId, Pending>,
    /// Of the connection that is here.
    pub(super) requests: HashMap<CallId, Request>,
    /// What is here of answers in parts that nobody waits for: those of keyed calls are wanted all the same.
    pub(super) unawaited: HashMap<CallId, Box<Incoming>>,
    /// What is here of other messages in parts, by ids of their own. They go with their connection.
    pub(super) aside: HashMap<CallId, Box<Incoming>>,
}

/// Where a foot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// Connected.
    Open,
    /// Its socket is gone; it may resume.
    Away,
    /// It will not come back as this object.
    Gone,
}

impl Foot {
    /// A foot that was not here; [`Self::attach`] follows.
    pub(super) fn new(node: Arc<Node>, scope: Arc<Scope>, arrival: &Arrival) -> Self {
        let info = arrival.hello.foot.clone();
        let state = State {
            epoch: 0,
            link: Link::Gone,
            outbox: arrival.outbox.clone(),
            instance: info.instance.clone(),
            session: arrival.session.clone(),
            share: Share::Owner,
            max_concurrent: 1,
            connected_at: arrival.now,
            tools: Arc::default(),
            announced: 0,
            servers: Arc::default(),
            inherited: false,
            revision: None,
            pending: HashMap::new(),
            requests: HashMap::new(),
            unawaited: HashMap::new(),
            aside: HashMap::new(),
            info,
        };
        let FootInfo { name, id, .. } = &arrival.hello.foot;
        Self {
            parts: Arc::new(FootRoom::new(node.parts.clone())),
            node,
            scope,
            owner: arrival.owner.clone(),
            name: name.clone(),
            key: id.clone(),
            state: Mutex::new(state),
            room: Arc::new(Semaphore::new(MAX_PENDING_BYTES)),
            questions: Arc::new(Semaphore::new(MAX_QUESTION_BYTES)),
            lists: Arc::new(Semaphore::new(MAX_LIST_BYTES)),
            news: Notify::new(),
        }
    }

    /// Makes a connection the foot's own: a resume if it is the same process with its session, a takeover otherwise.
    /// Puts `welcome` in its outbox, and whatever has to follow it.
    pub(super) fn attach(&self, arrival: Arrival) -> Attached {
        let Arrival { hello, servers, outbox, epoch, session, shared_name, now, .. } = arrival;
        let Hello { foot: info, share, resume, in_flight, max_concurrent, .. } = *hello;
        let mut state = self.state.lock();
        let (was_open, was_here) = (state.link == Link::Open, state.link != Link::Gone);
        let same_process = state.instance == info.instance;
        let resumed = was_here && same_process && resume.is_some_and(|resume| resume.session == state.session);
        // While it was away its names were held, or it comes back with what it offered.
        let was_held = was_here && !was_open && !(state.tools.is_empty() && state.servers.is_empty());
        let share_changed = was_open && state.share != share;
        let before = std::mem::replace(&mut state.outbox, outbox);
        if was_here {
            before.end(if resumed { Ending::resumed() } else { Ending::superseded() });
        }
        state.drop_connection();
        state.epoch = epoch;
        state.link = Link::Open;
        state.info = shown(info);
        state.share = share;
        state.max_concurrent = max_concurrent.clamp(1, MAX_MAX_CONCURRENT) as usize;
        state.connected_at = now;
        if !resumed {
            state.session = session;
            state.instance = state.info.instance.clone();
            state.revision = None;
            state.unawaited.clear();
            state.inherited = was_open && !state.tools.is_empty();
            if !state.inherited {
                state.tools = Arc::default();
            }
        }
        // A process that resumes may name them right after.
        let serves_others = !(resumed && servers.is_empty()) && state.set_servers(servers);
        state.outbox.control(Welcome {
            session: state.session.clone(),
            owner: self.owner.clone(),
            node: self.node.name.clone(),
            limits: self.node.limits.clone(),
            resumed,
            shared_name,
        });
        if resumed {
            state.ask_for_rest();
        }
        // Sets the foot's clock before a deadline is read by it.
        state.outbox.control(Ping { sent_ms: self.node.now_ms() });
        let lost = if resumed {
            self.reconcile(&mut state, &in_flight);
            HashMap::new()
        } else {
            std::mem::take(&mut state.pending)
        };
        self.dismiss(&state, in_flight);
        let changed = share_changed || was_held || serves_others;
        let attached = Attached { resumed, changed, inherited: state.inherited };
        drop(state);
        self.news.notify_waiters();
        let why = if same_process { Lost::Gone } else { Lost::Restarted };
        self.lose(lost, why);
        attached
    }

    /// Sends again what the foot never saw, and repeats cancels that may not have reached it.
    fn reconcile(&self, state: &mut State, in_flight: &[InFlight]) {
        let known: HashSet<&CallId> = in_flight.iter().map(|call| &call.call).collect();
        let now = self.node.now_ms();
        for (_, stopped) in state.pending.extract_if(|call, pending| pending.stopped && !known.contains(call)) {
            stopped.settle(Err(not_started()));
        }
        for (call, pending) in &mut state.pending {
            if pending.stopped {
                state.outbox.control(cancel(call));
            } else if !known.contains(call) {
                state.outbox.call_again(pending.sent_again(now, call));
            }
        }
    }

    /// Lets go of calls that the foot still has and nobody here waits for. Keyed ones, and those of other hubs, stay.
    fn dismiss(&self, state: &State, in_flight: Vec<InFlight>) {
        for InFlight { call, digest, state: progress, origin } in in_flight {
            if digest.is_some() || origin != self.node.name || state.pending.contains_key(&call) {
                continue;
            }
            match progress {
                InFlightState::Done => state.outbox.ack(call),
                InFlightState::Queued | InFlightState::Asking | InFlightState::Running => {
                    state.outbox.control(cancel(&call));
                }
            }
        }
    }

    /// The connection of this epoch is gone; its calls wait. `false`: it was replaced before, and nothing changed.
    pub(super) fn detach(&self, epoch: u64) -> bool {
        let mut state = self.state.lock();
        let own = state.epoch == epoch && state.link == Link::Open;
        if own {
            state.link = Link::Away;
            state.drop_connection();
        }
        own
    }

    /// The foot will not come back to this epoch. `false`: it did already.
    pub(super) fn leave(&self, epoch: u64) -> bool {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return false;
        }
        let lost = state.give_up();
        drop(state);
        self.lose(lost, Lost::Gone);
        true
    }

    /// The name is not this foot's any more: its connection ends, whichever it is.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        state.outbox.end(Ending::name_taken("the name was released; a new start of the foot binds it again"));
        state.epoch = 0;
        let lost = state.give_up();
        drop(state);
        self.news.notify_waiters();
        self.lose(lost, Lost::Gone);
    }

    /// This foot, as the journal names it, with one of its tools.
    pub(super) fn target(&self, local: &ToolName) -> FootTarget {
        FootTarget {
            owner: self.owner.clone(),
            foot: self.name.clone(),
            key: self.key.clone(),
            instance: self.state.lock().instance.clone(),
            local: local.clone(),
        }
    }

    /// Waits until another connection, or none, is the foot's own.
    pub(super) async fn replaced(&self, epoch: u64) {
        loop {
            let news = self.news.notified();
            if self.state.lock().epoch != epoch {
                return;
            }
            news.await;
        }
    }

    fn lose(&self, lost: HashMap<CallId, Pending>, why: Lost) {
        for (call, pending) in lost {
            tracing::debug!(foot = %self.name, %call, ?why, "a call is lost with its foot");
            pending.lost(&self.name, why);
        }
    }

    /// Calls that run here or wait.
    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.state.lock().pending.len()
    }
}

impl State {
    /// What does not outlive a connection is over: requests fail.
    fn drop_connection(&mut self) {
        self.requests.clear();
        self.aside.clear();
    }

    fn give_up(&mut self) -> HashMap<CallId, Pending> {
        self.link = Link::Gone;
        self.drop_connection();
        self.tools = Arc::default();
        self.servers = Arc::default();
        self.unawaited.clear();
        std::mem::take(&mut self.pending)
    }
}

/// Stop that call.
pub(super) fn cancel(call: &CallId) -> Cancel {
    Cancel { call: call.clone(), reason: NOBODY_WAITS.to_owned() }
}
