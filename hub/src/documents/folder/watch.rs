//! Noticing that the folder changed: notices of the system, and a look every few seconds in case one was lost.

use std::path::Path;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{DEBOUNCE, DEBOUNCE_MAX, Folder, POLL_INTERVAL, POLL_INTERVAL_UNWATCHED};
use crate::documents::change::Changes;

/// Keeps the folder's snapshot current until `stop`.
pub(in crate::documents) async fn watch(folder: Arc<Folder>, changes: Arc<Changes>, stop: CancellationToken) {
    let noticed = Arc::new(Notify::new());
    let mut watcher: Option<RecommendedWatcher> = None;
    let mut watched = None;
    let mut failing = false;
    loop {
        let root = folder.snapshot().root.map(|root| root.place());
        // The folder may have been replaced by another one of the same name; notices of the old one say nothing then.
        if watched != root {
            watched = root;
            let (place, noticed) = (folder.root.clone(), noticed.clone());
            // What changed while nobody watched counts as noticed.
            noticed.notify_one();
            watcher = tokio::task::spawn_blocking(move || start(&place, noticed)).await.ok().flatten();
        }
        let interval = if watcher.is_some() { POLL_INTERVAL } else { POLL_INTERVAL_UNWATCHED };
        tokio::select! {
            () = stop.cancelled() => return,
            () = noticed.notified() => settle(&noticed).await,
            () = sleep(interval) => {}
        }
        match folder.rescan(&changes).await {
            Ok(()) => failing = false,
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::error!(%error, "the documents folder keeps what it held before");
                }
            }
        }
    }
}

/// Waits until the folder has been quiet for a while, so that a write in several steps is read once it is done.
async fn settle(noticed: &Notify) {
    let end = Instant::now() + DEBOUNCE_MAX;
    loop {
        let quiet = (Instant::now() + DEBOUNCE).min(end);
        if timeout_at(quiet, noticed.notified()).await.is_err() {
            return;
        }
    }
}

/// Watches the folder and everything below; may take a while where there is much.
fn start(root: &Path, noticed: Arc<Notify>) -> Option<RecommendedWatcher> {
    let handler = move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| matters(event.kind)) {
            noticed.notify_one();
        }
    };
    let config = Config::default().with_follow_symlinks(false);
    let started = RecommendedWatcher::new(handler, config).and_then(|mut watcher| {
        let place = root.canonicalize().map_err(notify::Error::io)?;
        watcher.watch(&place, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    // The system's words may name the folder, which is the operator's own log.
    started
        .inspect_err(|error| {
            tracing::warn!(%error, "the documents folder cannot be watched; it is looked through every second");
        })
        .ok()
}

/// Reading the folder is an event too, and must not lead to reading it again.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}
