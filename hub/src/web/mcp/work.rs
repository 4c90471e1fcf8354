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
        // What runs in a task of its own already stays there: at a second question its request waits again.
        if !matches!(self.state, State::Here(_)) {
            return;
        }
        let State::Here(work) = std::mem::replace(&mut self.state, State::Gone) else { return };
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
    use super::*;

    #[tokio::test]
    async fn what_is_let_run_a_second_time_goes_on() {
        let (send, sent) = oneshot::channel();
        let mut work = Work::new(Box::pin(async move { sent.await.ok() }), Orphan::Stops, Lifecycle::new());
        work.detach();
        work.detach();
        send.send(7).unwrap();
        assert_eq!(work.outcome().await, Some(Some(7)));
    }
}
