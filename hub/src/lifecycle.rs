//! Start and stop. Every task of the hub is spawned here, tracked, and awaited at the end.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// How long an ordered stop waits for running calls before it turns hard.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a hard stop waits for tasks that were told to end.
pub const HARD_TIMEOUT: Duration = Duration::from_secs(3);

/// Owns the tasks of the hub and the two signals that end them. Cheap to clone.
///
/// An ordered stop first waits for the *work* (requests, calls, connections), while the *services* that it needs go on; then
/// the services end too.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    soft: CancellationToken,
    hard: CancellationToken,
    services: TaskTracker,
    work: TaskTracker,
}

impl Lifecycle {
    /// A new one, running.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a service, with a name for the log. It must end soon after [`Self::hard`] fires, and may after [`Self::soft`].
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        #[expect(clippy::disallowed_methods, reason = "tracked, and awaited at the end")]
        tokio::spawn(self.services.track_future(task.instrument(tracing::debug_span!("task", name))));
    }

    /// Spawns a piece of work. An ordered stop waits for it: once [`Self::soft`] fires it finishes what it has and ends, once
    /// [`Self::hard`] fires it ends.
    pub fn spawn_work<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        #[expect(clippy::disallowed_methods, reason = "tracked, and awaited at the end")]
        tokio::spawn(self.work.track_future(task));
    }

    /// Fires when the hub stops accepting: finish what runs, start nothing new.
    pub fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    /// Fires when whatever still runs must end now.
    pub fn hard(&self) -> &CancellationToken {
        &self.hard
    }

    /// Number of tasks that run.
    pub fn running(&self) -> usize {
        self.services.len() + self.work.len()
    }

    /// Ends all tasks: asks for the end (soft), waits `drain` for the work, then insists (hard). A second call while the first
    /// one waits may be shorter. Returns how many tasks did not end in time.
    pub async fn shut_down(&self, drain: Duration) -> usize {
        self.soft.cancel();
        self.services.close();
        self.work.close();
        tokio::select! {
            () = self.work.wait() => {}
            () = tokio::time::sleep(drain) => {}
            () = self.hard.cancelled() => {}
        }
        self.hard.cancel();
        // Whoever ignores the hard signal is reported, not waited for.
        let all = async { tokio::join!(self.work.wait(), self.services.wait()) };
        let _ = tokio::time::timeout(HARD_TIMEOUT, all).await;
        self.running()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn services_outlive_the_work_that_needs_them() {
        let lifecycle = Lifecycle::new();
        let hard = lifecycle.hard().clone();
        lifecycle.spawn("service", async move { hard.cancelled().await });
        let (soft, hard) = (lifecycle.soft().clone(), lifecycle.hard().clone());
        lifecycle.spawn_work(async move {
            soft.cancelled().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(!hard.is_cancelled(), "the service was still there");
        });
        let begun = tokio::time::Instant::now();
        assert_eq!(lifecycle.shut_down(DRAIN_TIMEOUT).await, 0);
        assert_eq!(begun.elapsed(), Duration::from_secs(5), "no longer than the work took");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_ignores_the_end_is_counted_and_not_waited_for() {
        let lifecycle = Lifecycle::new();
        lifecycle.spawn_work(std::future::pending());
        let begun = tokio::time::Instant::now();
        assert_eq!(lifecycle.shut_down(DRAIN_TIMEOUT).await, 1);
        assert_eq!(begun.elapsed(), DRAIN_TIMEOUT + HARD_TIMEOUT);
    }
}
