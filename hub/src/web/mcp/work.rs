//! A request's work: done in the task of its request, and in one of its own where it must outlive that.

use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lifecycle::Lifecycle;

/// What becomes of the work when nobody waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphan {
    /// It is let go, which stops it.
    Stops,
    /// It goes on to its end.
    GoesOn,
}

/// Work that gives a `T`.
pub(super) struct Work<T: Send + 'static> {
    state: State<T>,
    orphan: Orphan,
    lifecycle: Lifecycle,
}

enum State<T> {
    Here(BoxFuture<'static, T>),
    There { told: oneshot::Receiver<T>, _stop: Option<DropGuard> },
    Gone,
}

impl<T: Send + 'static> Work<T> {
    pub(super) fn new(work: BoxFuture<'static, T>, orphan: Orphan, lifecycle: Lifecycle) -> Self {
        Self { state: State::Here(work), orphan, lifecycle }
    }

    /// What comes of it; `None`: the hub goes down. Can be dropped and asked again until it is there.
    pub(super) async fn outcome(&mut self) -> Option<T> {
        let outcome = match &mut self.state {
            State::Here(work) => Some(work.await),
            State::There { told, .. } => told.await.ok(),
            State::Gone => None,
        };
        self.state = State::Gone;
        outcome
    }

    /// Lets it run in a task of its own.
    pub(super) fn detach(&mut self) {
        let work = match std::mem::replace(&mut self.state, State::Gone) {
            State::Here(work) => work,
            elsewhere => {
                self.state = elsewhere;
                return;
            }
        };
        let (tell, told) = oneshot::channel();
        let (stop, hard) = (CancellationToken::new(), self.lifecycle.hard().clone());
        let guard = (self.orphan == Orphan::Stops).then(|| stop.clone().drop_guard());
        self.lifecycle.spawn_work(async move {
            tokio::select! {
                outcome = work => { let _ = tell.send(outcome); }
                () = stop.cancelled() => {}
                () = hard.cancelled() => {}
            }
        });
        self.state = State::There { told, _stop: guard };
    }
}

impl<T: Send + 'static> Drop for Work<T> {
    fn drop(&mut self) {
        if self.orphan == Orphan::GoesOn
            && let State::Here(work) = std::mem::replace(&mut self.state, State::Gone)
        {
            let hard = self.lifecycle.hard().clone();
            self.lifecycle.spawn_work(async move {
                tokio::select! {
                    _ = work => {}
                    () = hard.cancelled() => {}
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// Work that says when it was let go, and the place to look.
    fn endless() -> (BoxFuture<'static, u8>, CancellationToken) {
        let gone = CancellationToken::new();
        let guard = gone.clone().drop_guard();
        let work = async move {
            let _guard = guard;
            std::future::pending().await
        };
        (work.boxed(), gone)
    }

    #[tokio::test]
    async fn work_that_is_let_run_elsewhere_goes_on_however_often_that_is_said() {
        let (tell, told) = oneshot::channel::<u8>();
        let work = async move { told.await.unwrap_or_default() }.boxed();
        let mut work = Work::new(work, Orphan::Stops, Lifecycle::new());
        work.detach();
        work.detach();
        tell.send(7).unwrap();
        assert_eq!(work.outcome().await, Some(7));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_stops_or_goes_on_as_it_was_made() {
        let lifecycle = Lifecycle::new();
        for detached in [false, true] {
            let (future, gone) = endless();
            let mut work = Work::new(future, Orphan::Stops, lifecycle.clone());
            if detached {
                work.detach();
            }
            drop(work);
            gone.cancelled().await;
        }
        let (tell, told) = oneshot::channel();
        let future = async move { tell.send(()) }.boxed();
        drop(Work::new(future, Orphan::GoesOn, lifecycle.clone()));
        told.await.unwrap();
    }
}
