//! The threads that file tools work on. Each is confined to the roots before its first work, and stays so: what such a
//! thread did for one call leaves nothing that the next could use.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::sandbox::{self, SandboxError};

/// Threads of one pool. The work mostly waits for a disk.
const MAX_THREADS: usize = 16;

/// What a thread does to itself before its first work.
type Confine = dyn Fn() -> Result<(), SandboxError> + Send + Sync;
type Job = Box<dyn FnOnce(Result<(), SandboxError>) + Send>;

/// A pool of threads, started as they are needed. They end with it, each after the work it is at.
pub(super) struct FileThreads(Arc<Pool>);

struct Pool {
    confine: Box<Confine>,
    state: Mutex<State>,
    /// There is work, or the pool is closed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
    /// It was said that nothing confines these threads.
    warned: bool,
}

impl FileThreads {
    /// Threads that reach what lies below the roots; with `write` they may change it.
    pub(super) fn new(roots: Vec<PathBuf>, write: bool) -> Self {
        Self::confined_by(move || sandbox::restrict_this_thread(&roots, write).map(drop))
    }

    fn confined_by(confine: impl Fn() -> Result<(), SandboxError> + Send + Sync + 'static) -> Self {
        let (state, changed) = Default::default();
        Self(Arc::new(Pool { confine: Box::new(confine), state, changed }))
    }

    /// Does work that blocks. It goes on to its end even if nobody waits for it any more.
    ///
    /// # Errors
    /// Those of the work; `sandbox_unavailable` when the kernel refuses to confine a thread; `internal` when the work
    /// panics or no thread can be had.
    pub(super) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let (answer, answered) = oneshot::channel();
        self.0.submit(Box::new(move |confined| {
            let refused = |error: SandboxError| {
                let message = "file tools cannot be confined to the roots on this machine, so they do nothing";
                Failure::not_run(ErrorCode::SandboxUnavailable, message).cause(error)
            };
            // The caller may have stopped to wait.
            let _ = answer.send(confined.map_err(refused).and_then(|()| work()));
        }));
        let broken = || Failure::new(ErrorCode::Internal, Outcome::Unknown, "the tool broke off");
        answered.await.unwrap_or_else(|_| Err(broken()))
    }
}

impl Drop for FileThreads {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(self: &Arc<Self>, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle || state.threads == MAX_THREADS {
            drop(state);
            return self.changed.notify_one();
        }
        let pool = self.clone();
        let name = format!("foot-files-{}", state.threads);
        match std::thread::Builder::new().name(name).spawn(move || pool.work()) {
            Ok(_) => state.threads += 1,
            Err(error) => {
                tracing::warn!(%error, threads = state.threads, "no further thread for file tools can be started");
                if state.threads == 0 {
                    // Nobody would ever come to do it: to be dropped is an answer.
                    state.jobs.clear();
                }
            }
        }
    }

    fn work(&self) {
        let confined = match (self.confine)() {
            Err(SandboxError::Unsupported) => {
                let warned = std::mem::replace(&mut self.lock().warned, true);
                if !warned {
                    tracing::warn!(
                        "file tools are held by the rules of this foot alone: {}",
                        SandboxError::Unsupported
                    );
                }
                Ok(())
            }
            other => other,
        };
        while let Some(job) = self.next() {
            // Its sender is dropped, which is the answer; the message is in the log.
            let _ = catch_unwind(AssertUnwindSafe(|| job(confined.clone())));
        }
        self.lock().threads -= 1;
    }

    /// Waits for work. `None`: the pool is closed, and nothing is left to do.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
