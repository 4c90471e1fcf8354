//! The documents folder: files as documents, read into memory and kept up to date.
//!
//! `DIR/<tenant>/<project>/<path>` lies above the stored documents of that scope. Requests never touch the disk: they read
//! the last snapshot. A file may be a link within its own scope's folder (so that mounted configuration works); whatever
//! leads out of it, into another scope's folder too, is refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::change::Changes;
use crate::clock::SharedClock;

mod file;
mod scan;
mod snapshot;
mod watch;

#[cfg(test)]
mod tests;

pub use scan::FolderError;
pub(super) use scan::is_editor_file;
pub use snapshot::FolderProblem;
pub(super) use snapshot::Snapshot;
pub(super) use watch::watch;

/// How long the folder must be quiet after a change before it is read.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How long a change may wait at most while others keep coming.
const DEBOUNCE_MAX: Duration = Duration::from_millis(400);
/// How often the folder is looked through although nothing was noticed: notices can be lost.
const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// The same where the system gives no notices at all.
const POLL_INTERVAL_UNWATCHED: Duration = Duration::from_secs(1);

/// The folder and what was last read from it.
pub(super) struct Folder {
    root: PathBuf,
    clock: SharedClock,
    snapshot: ArcSwap<Snapshot>,
    /// One reader at a time, so that an older state never replaces a newer one.
    scanning: tokio::sync::Mutex<()>,
}

impl Folder {
    /// Reads the folder for the first time.
    pub(super) async fn open(root: PathBuf, clock: SharedClock) -> Result<Self, FolderError> {
        let folder = Self { root, clock, snapshot: ArcSwap::default(), scanning: tokio::sync::Mutex::default() };
        let first = folder.scan().await?;
        first.report(&Snapshot::default());
        folder.snapshot.store(Arc::new(first));
        Ok(folder)
    }

    /// What was last read.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Reads the folder and says what changed.
    pub(super) async fn rescan(&self, changes: &Changes) -> Result<(), FolderError> {
        let _one = self.scanning.lock().await;
        let before = self.snapshot();
        let mut now = self.scan().await?;
        let changed = now.succeed(&before);
        now.report(&before);
        self.snapshot.store(Arc::new(now));
        for change in changed {
            changes.publish(change);
        }
        Ok(())
    }

    async fn scan(&self) -> Result<Snapshot, FolderError> {
        let (root, before, now) = (self.root.clone(), self.snapshot(), self.clock.now());
        tokio::task::spawn_blocking(move || scan::scan(&root, &before, now))
            .await
            .map_err(|_| FolderError::Unreadable(std::io::Error::other("reading the folder was interrupted")))?
    }
}
