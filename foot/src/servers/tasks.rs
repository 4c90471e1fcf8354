//! The tasks of all local servers, which end with the foot.

use std::time::Duration;

use footbridge_mcp::Spawn;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Owns them. Clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    /// Ends those that do not end by themselves.
    end: CancellationToken,
}

impl Tasks {
    /// Runs a task to its end, or to that of the foot.
    pub(super) fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = task => {}
                () = end.cancelled() => {}
            }
        });
    }

    /// Waits until all have ended, and after a while ends those that have not.
    pub(super) async fn ended(&self, within: Duration) {
        self.tracker.close();
        if tokio::time::timeout(within, self.tracker.wait()).await.is_err() {
            tracing::warn!("local servers did not end in time");
            self.end.cancel();
            self.tracker.wait().await;
        }
    }
}

impl Spawn for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.run(task);
    }
}
