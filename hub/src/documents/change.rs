//! Who is told when documents change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::domain::document::{DocumentPath, SERVER_TOOLS};
use crate::domain::scope::Scope;
use crate::store::{CHANGE_QUEUE, Change};

/// Documents changed. A scope whose project is `_tenant` stands for every project of that tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentChange {
    /// One document.
    Document {
        /// Where it lies.
        scope: Scope,
        /// Which.
        path: DocumentPath,
    },
    /// Many of one scope.
    Scope(Scope),
    /// Some were missed: anything may have changed.
    Everything,
}

impl DocumentChange {
    /// Whether what `scope` sees may have changed.
    #[cfg(test)]
    pub(crate) fn touches(&self, scope: &Scope) -> bool {
        match self {
            Self::Document { scope: changed, .. } | Self::Scope(changed) => {
                changed.tenant == scope.tenant
                    && (changed.project == scope.project || changed.project.is_tenant_layer())
            }
            Self::Everything => true,
        }
    }
}

/// How often the tool documents of a scope, those of its tenant's layer and everything at once have changed, as far as
/// this hub knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    scope: u64,
    tenant: u64,
    everything: u64,
}

/// Counts changes and passes them on.
pub(super) struct Changes {
    everything: AtomicU64,
    /// Of tool documents only: agents write notes far more often than anybody writes tools.
    tools: DashMap<Scope, u64>,
    sender: broadcast::Sender<DocumentChange>,
}

impl Changes {
    pub(super) fn new() -> Self {
        Self { everything: AtomicU64::new(0), tools: DashMap::new(), sender: broadcast::Sender::new(CHANGE_QUEUE) }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<DocumentChange> {
        self.sender.subscribe()
    }

    /// Counts the change of a document if it is a tool's. Whoever compares generations afterwards sees that something
    /// happened.
    pub(super) fn count(&self, scope: &Scope, path: &DocumentPath) {
        if path.as_str().starts_with(SERVER_TOOLS) {
            self.count_tools(scope);
        }
    }

    fn count_tools(&self, scope: &Scope) {
        *self.tools.entry(scope.clone()).or_default() += 1;
    }

    /// Counts a change, then tells subscribers; nobody listening is fine.
    pub(super) fn publish(&self, change: DocumentChange) {
        match &change {
            DocumentChange::Document { scope, path } => self.count(scope, path),
            DocumentChange::Scope(scope) => self.count_tools(scope),
            DocumentChange::Everything => {
                self.everything.fetch_add(1, Ordering::AcqRel);
            }
        }
        let _ = self.sender.send(change);
    }

    pub(super) fn tool_generation(&self, scope: &Scope) -> Generation {
        let count = |scope: &Scope| self.tools.get(scope).map_or(0, |count| *count);
        Generation {
            scope: count(scope),
            tenant: count(&scope.tenant_layer()),
            everything: self.everything.load(Ordering::Acquire),
        }
    }
}

/// Passes on what the store says of documents, until it or the hub ends.
pub(super) async fn forward(mut stored: broadcast::Receiver<Change>, changes: Arc<Changes>, stop: CancellationToken) {
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return,
            change = stored.recv() => change,
        };
        match change {
            Ok(Change::Document { scope, path }) => changes.publish(DocumentChange::Document { scope, path }),
            Ok(Change::Record { .. }) => {}
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "changes of the store were missed; everything is read anew");
                changes.publish(DocumentChange::Everything);
            }
            Err(RecvError::Closed) => return,
        }
    }
}
