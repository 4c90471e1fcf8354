//! Keeps catalogs up to date when nobody asks for them: what was written elsewhere is noticed, and the servers of documents
//! that come, change and go begin and end at once.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::ConfiguredSource;
use crate::documents::DocumentChange;
use crate::domain::document::SERVER_TOOLS;
use crate::domain::scope::Scope;

/// How often the revisions of scopes in use are compared although nothing was noticed.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Most scopes that are compiled before somebody asks for them.
pub(super) const MAX_WARMED: usize = 1_000;

/// Notices what was written elsewhere and not announced.
pub(super) async fn poll(source: ConfiguredSource, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        for (scope, slot) in source.inner.cache.poll() {
            let Some(installed) = slot.installed.load_full() else { continue };
            match source.inner.documents.revision(&scope).await {
                Ok(revision) if revision != installed.revision => {
                    slot.stale.store(true, Ordering::Release);
                    if installed.catalog.has_servers() {
                        source.bring_up(&scope).await;
                    }
                }
                Ok(_) => {}
                // What is in force stays so; whoever writes or asks hears of it.
                Err(error) => tracing::debug!(%scope, %error, "the revision of a scope could not be compared"),
            }
        }
    }
}

/// Compiles scopes whose tool documents changed: a server that was taken away ends, and a new one begins.
pub(super) async fn follow(source: ConfiguredSource, stop: CancellationToken) {
    let mut changes = source.inner.documents.subscribe();
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return,
            change = changes.recv() => change,
        };
        let mut touched = BTreeSet::new();
        let mut change = match change {
            Err(RecvError::Closed) => return,
            Err(RecvError::Lagged(_)) => DocumentChange::Everything,
            Ok(change) => change,
        };
        // What came meanwhile is looked at together.
        loop {
            touched.extend(scopes(&source, &change));
            change = match changes.try_recv() {
                Ok(change) => change,
                Err(tokio::sync::broadcast::error::TryRecvError::Lagged(_)) => DocumentChange::Everything,
                Err(_) => break,
            };
        }
        for scope in touched {
            source.bring_up(&scope).await;
        }
    }
}

/// The scopes whose catalogs a change concerns, as far as they are in use; of a project that has one of its own also if it
/// is not.
fn scopes(source: &ConfiguredSource, change: &DocumentChange) -> Vec<Scope> {
    let (scope, own) = match change {
        DocumentChange::Document { path, .. } if !path.as_str().starts_with(SERVER_TOOLS) => return Vec::new(),
        DocumentChange::Document { scope, .. } => (Some(scope), !scope.project.is_tenant_layer()),
        DocumentChange::Scope(scope) => (Some(scope), false),
        DocumentChange::Everything => (None, false),
    };
    let mut touched = source.inner.cache.touched_by(scope);
    touched.extend(scope.filter(|_| own).cloned());
    touched
}
