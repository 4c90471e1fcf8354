//! Word that what surfaces show may have changed.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells those who show tools, resources or prompts to somebody that they may be others now. Cheap to clone: all clones are
/// one.
#[derive(Debug, Clone, Default)]
pub struct SurfaceChanges(Arc<watch::Sender<u64>>);

impl SurfaceChanges {
    /// Something may have changed. Called often is called once: who follows looks when there is time.
    pub fn tell(&self) {
        self.0.send_modify(|revision| *revision = revision.wrapping_add(1));
    }

    /// Follows from now on.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
