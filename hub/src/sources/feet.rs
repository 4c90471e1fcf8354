//! Feet: agents on developers' machines, and the tools they offer.
//!
//! A connection is owned by one task (`connection`) that alone touches the socket. What outlives a connection belongs
//! to the foot (`foot`): its tools and the calls that run on it, so that a dropped connection loses nothing. The feet
//! of a project stand in its roster (`roster`), which also keeps what each subject sees of them.
//!
//! Locks are taken in this order, and never the other way round: the map of rosters, a roster, a foot, an outbox.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{EntryName, FootName, Subject};
use footbridge_shared::message::{Ping, Pong};
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::clock::SharedClock;
use crate::domain::changes::SurfaceChanges;
use crate::domain::failure::Failure;
use crate::domain::feet::{FootDirectory, FootSummary};
use crate::domain::journal::LateResults;
use crate::domain::mcp::McpServer;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::domain::tool::{Listing, Tool, ToolSource};
use crate::lifecycle::Lifecycle;
use crate::store::{Store, StoreError, StoreResult};

mod about;
mod binding;
mod call_frame;
mod calls;
mod config;
mod connection;
mod definition;
mod follow;
mod foot;
mod frame;
mod handler;
mod handshake;
mod inbound;
mod intake;
mod lists;
mod names;
mod offer;
mod outbox;
mod parts;
mod pending;
mod questions;
mod recall;
mod requests;
mod roster;
mod server;
mod servers;
#[cfg(test)]
mod tests;
mod totals;
mod view;
mod wire;

pub use config::FeetConfig;
pub use frame::{Close, Frame, SocketError};
pub use wire::FootSocket;

use binding::Bindings;
use foot::Node;
use intake::Intake;
use roster::Roster;
use totals::Totals;

/// Knows which scopes there are.
#[async_trait]
pub trait ScopeCheck: Send + Sync {
    /// Whether the tenant and its project exist.
    ///
    /// # Errors
    /// When that cannot be said: the store does not answer.
    async fn exists(&self, scope: &Scope) -> Result<bool, Failure>;
}

/// What the registry works with.
pub struct FeetParts {
    /// Settings.
    pub config: FeetConfig,
    /// Keeps the bindings of names.
    pub store: Arc<dyn Store>,
    /// The wall clock.
    pub clock: SharedClock,
    /// Owns the tasks.
    pub lifecycle: Lifecycle,
    /// Knows the scopes.
    pub scopes: Arc<dyn ScopeCheck>,
    /// Names of the hub's own tools: no foot may take them.
    pub built_ins: BTreeSet<String>,
    /// Takes results whose callers are gone.
    pub late: Arc<dyn LateResults>,
    /// Told when what somebody sees of feet may be something else.
    pub surfaces: SurfaceChanges,
}

/// Numbers of what is here now.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FeetCounts {
    /// Open connections, those that are still being greeted included.
    pub connections: usize,
    /// Feet that are here or may resume.
    pub feet: usize,
    /// Calls that run on feet or wait for them.
    pub pending: usize,
    /// Listings kept ready, one for each subject that asked.
    pub views: usize,
}

/// All feet of this hub. Cheap to clone.
#[derive(Clone)]
pub struct FeetRegistry {
    core: Arc<Core>,
}

/// What all connections share.
struct Core {
    config: FeetConfig,
    node: Arc<Node>,
    clock: SharedClock,
    lifecycle: Lifecycle,
    scopes: Arc<dyn ScopeCheck>,
    bindings: Bindings,
    late: Arc<dyn LateResults>,
    intake: Intake,
    rosters: RwLock<HashMap<Scope, Arc<Roster>>>,
    epochs: AtomicU64,
    connections: AtomicUsize,
    totals: Totals,
    nothing: Arc<Listing>,
}

impl FeetRegistry {
    /// Reads the bindings of names and follows their changes from then on.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn open(parts: FeetParts) -> StoreResult<Self> {
        let FeetParts { config, store, clock, lifecycle, scopes, built_ins, late, surfaces } = parts;
        let (name, limits) = (config.node.clone(), config.limits());
        let node = Node { name, limits, started: Instant::now(), surfaces, parts: Arc::default() };
        let stored = store.changes();
        let core = Arc::new(Core {
            node: Arc::new(node),
            clock,
            lifecycle,
            scopes,
            bindings: Bindings::new(store),
            late,
            intake: Intake::new(built_ins),
            rosters: RwLock::default(),
            epochs: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            totals: Totals::default(),
            nothing: Arc::default(),
            config,
        });
        core.read_bindings().await?;
        core.lifecycle.spawn("feet-bindings", follow::follow(core.clone(), stored));
        Ok(Self { core })
    }

    /// Serves a foot's socket in a task of its own. The principal has the role `foot`. A foot is a service to the calls
    /// of others: an ordered stop waits for those, and the foot is there until they are done.
    pub fn connect<S: FootSocket>(&self, socket: S, principal: Arc<Principal>) {
        self.core.lifecycle.spawn("foot", connection::run(self.core.clone(), socket, principal));
    }

    /// Frees a name: a foot that is connected under it is told so and dropped, and any foot id may bind it anew.
    ///
    /// # Errors
    /// `not_found` when the name is not bound; `storage_unavailable`.
    pub async fn release(&self, scope: &Scope, subject: &Subject, name: &FootName) -> Result<(), Failure> {
        let address = (subject.clone(), name.clone());
        let held = self.core.bindings.hold(scope, &address).await;
        let was_stored = held.free().await.map_err(|error| unavailable(&error))?;
        let was_known = self.core.known(scope).is_some_and(|roster| roster.release(&address));
        if was_stored || was_known {
            tracing::info!(foot = %name, owner = %subject, %scope, "the name of a foot was released");
            Ok(())
        } else {
            Err(Failure::not_run(ErrorCode::NotFound, format!("no foot is bound to the name `{name}` here")))
        }
    }

    /// Every bound name of a scope, sorted by owner: name, owner and state, never more. For admins.
    pub fn list_all(&self, scope: &Scope) -> Vec<FootSummary> {
        self.core.known(scope).map(|roster| roster.all()).unwrap_or_default()
    }

    /// What is here now.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> FeetCounts {
        let mut counts =
            FeetCounts { connections: self.core.connections.load(Ordering::Relaxed), ..FeetCounts::default() };
        for roster in self.core.rosters.read().values() {
            let (feet, pending, views) = roster.counts();
            counts.feet += feet;
            counts.pending += pending;
            counts.views += views;
        }
        counts
    }

    /// What feet did since the hub started.
    #[cfg(test)]
    pub(crate) fn metrics(&self) -> totals::FeetMetrics {
        self.core.totals.read()
    }
}

#[async_trait]
impl ToolSource for FeetRegistry {
    async fn listing(&self, scope: &Scope, subject: &Subject) -> Result<Arc<Listing>, Failure> {
        let view = self.core.known(scope).and_then(|roster| roster.view(subject));
        Ok(view.map_or_else(|| self.core.nothing.clone(), |view| view.listing.clone()))
    }
}

impl FeetRegistry {
    /// The MCP servers of the feet that work for `subject`, by name: those whose names, the public one and the one on the foot,
    /// no document has. What a document names never shines through from below.
    pub fn servers_below(
        &self,
        scope: &Scope,
        subject: &Subject,
        has_document: impl Fn(&EntryName) -> bool,
    ) -> Vec<Arc<dyn McpServer>> {
        let Some(view) = self.core.known(scope).and_then(|roster| roster.view(subject)) else { return Vec::new() };
        let servers =
            view.servers.iter().filter(|server| !has_document(server.name()) && !has_document(server.local()));
        servers.map(|server| server.clone() as Arc<dyn McpServer>).collect()
    }
}

impl FootDirectory for FeetRegistry {
    fn feet(&self, scope: &Scope, subject: &Subject) -> Vec<FootSummary> {
        self.core.known(scope).map(|roster| roster.feet(subject)).unwrap_or_default()
    }

    fn tools_of(&self, scope: &Scope, subject: &Subject, foot: &FootName) -> Option<Arc<[Arc<Tool>]>> {
        self.core.known(scope)?.tools_of(subject, foot)
    }
}

impl Core {
    /// The roster of a scope where a foot was ever bound.
    fn known(&self, scope: &Scope) -> Option<Arc<Roster>> {
        self.rosters.read().get(scope).cloned()
    }

    /// The roster of a scope that is about to have a foot.
    fn roster_of(&self, scope: &Scope) -> Arc<Roster> {
        if let Some(roster) = self.known(scope) {
            return roster;
        }
        let new = || Arc::new(Roster::new(self.node.clone(), scope.clone()));
        self.rosters.write().entry(scope.clone()).or_insert_with(new).clone()
    }

    /// Larger than all before it: connections are ordered by this, never by a clock.
    fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Node {
    /// The answer to a ping.
    fn pong(&self, ping: &Ping) -> Pong {
        Pong { echo_ms: ping.sent_ms, sent_ms: self.now_ms() }
    }
}

fn unavailable(error: &StoreError) -> Failure {
    Failure::not_run(ErrorCode::StorageUnavailable, "the name could not be released: the store does not answer")
        .cause(error)
}
