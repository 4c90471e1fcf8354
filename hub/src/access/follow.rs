//! Keeps what is in memory of a kind of record as it is in the store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use crate::store::{Change, Store, StoreResult};

/// How long a change of another hub can stay unnoticed when its notice is lost.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Something that has read all records of a kind.
#[async_trait]
pub(super) trait Follower: Send + Sync {
    /// Where the records are.
    fn store(&self) -> &dyn Store;
    /// Reads all of them anew.
    async fn refresh(&self) -> StoreResult<()>;
}

/// Refreshes now, and whenever there is a reason to, until `end` fires. While the store does not answer, what was read
/// last stays in force.
pub(super) async fn follow(follower: Arc<dyn Follower>, kind: &'static str, end: CancellationToken) {
    let mut changes = follower.store().changes();
    loop {
        if let Err(error) = follower.refresh().await {
            tracing::warn!(kind, %error, source = ?std::error::Error::source(&error), "records could not be read anew");
        }
        if !reason_to_refresh(&mut changes, kind, &end).await {
            return;
        }
    }
}

/// Waits for a change of the kind, for notices that were missed, or for the poll. False: it is over.
async fn reason_to_refresh(changes: &mut broadcast::Receiver<Change>, kind: &str, end: &CancellationToken) -> bool {
    let poll = tokio::time::sleep(POLL_INTERVAL);
    tokio::pin!(poll);
    loop {
        tokio::select! {
            () = end.cancelled() => return false,
            () = &mut poll => return true,
            change = changes.recv() => match change {
                Ok(Change::Record { kind: changed, .. }) if changed == kind => break,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return false,
            }
        }
    }
    // All is read anew after this, so the notices that wait have nothing to add.
    *changes = changes.resubscribe();
    true
}

/// Waits until the other tasks of a test's runtime have brought something about. Time does not pass.
#[cfg(test)]
pub(super) async fn soon(condition: impl Fn() -> bool) {
    const TURNS: usize = 1000;
    for _ in 0..TURNS {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it did not come about");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;
    use crate::clock::manual::ManualClock;
    use crate::store::memory::MemoryStore;
    use crate::store::{CHANGE_QUEUE, Precondition, StoreError};

    fn change(kind: &str) -> Change {
        Change::Record { kind: kind.to_owned(), key: "k".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_kind_is_a_reason_and_takes_those_behind_it_along() {
        let (sender, mut changes) = broadcast::channel(16);
        for kind in ["tenant", "token", "token", "tenant"] {
            sender.send(change(kind)).unwrap();
        }
        let start = Instant::now();
        assert!(reason_to_refresh(&mut changes, "token", &CancellationToken::new()).await);
        assert_eq!((start.elapsed(), changes.len()), (Duration::ZERO, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_one_the_poll_comes_on_time_whatever_else_changes() {
        let (sender, mut changes) = broadcast::channel(16);
        let (start, end) = (Instant::now(), CancellationToken::new());
        let others = async {
            loop {
                sender.send(change("tenant")).unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = others => unreachable!("it never ends"),
            reason = reason_to_refresh(&mut changes, "token", &end) => assert!(reason),
        }
        assert_eq!(start.elapsed(), POLL_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn missed_notices_are_a_reason() {
        let (sender, mut changes) = broadcast::channel(2);
        for _ in 0..5 {
            sender.send(change("tenant")).unwrap();
        }
        let start = Instant::now();
        assert!(reason_to_refresh(&mut changes, "token", &CancellationToken::new()).await);
        assert_eq!((start.elapsed(), changes.len()), (Duration::ZERO, 0));
    }

    /// Counts, and fails while the store is said to be down.
    struct Counter {
        store: MemoryStore,
        refreshes: AtomicUsize,
        down: bool,
    }

    #[async_trait]
    impl Follower for Counter {
        fn store(&self) -> &dyn Store {
            &self.store
        }

        async fn refresh(&self) -> StoreResult<()> {
            self.refreshes.fetch_add(1, Ordering::Relaxed);
            if self.down { Err(StoreError::Unavailable("down".into())) } else { Ok(()) }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_reads_at_once_then_by_need_and_goes_on_after_failures() {
        for down in [false, true] {
            let store = MemoryStore::new(ManualClock::new());
            let counter = Arc::new(Counter { store, refreshes: AtomicUsize::new(0), down });
            let end = CancellationToken::new();
            let mut following = Box::pin(follow(counter.clone(), "token", end.clone()));
            assert!(futures::poll!(&mut following).is_pending());
            assert_eq!(counter.refreshes.load(Ordering::Relaxed), 1);

            // More than the queue holds, of which the newest are of another kind.
            for number in 0..=CHANGE_QUEUE {
                let kind = if number == 0 { "token" } else { "tenant" };
                counter.store.put_record(kind, "k", "{}", Precondition::Any).await.unwrap();
            }
            assert!(futures::poll!(&mut following).is_pending());
            assert_eq!(counter.refreshes.load(Ordering::Relaxed), 2);

            let polls = tokio::time::timeout(POLL_INTERVAL * 3 + Duration::from_millis(1), &mut following);
            polls.await.unwrap_err();
            assert_eq!(counter.refreshes.load(Ordering::Relaxed), 5);
            end.cancel();
            following.await;
        }
    }
}
