//! The threads that file tools work on. Each is confined to the roots before its first work, and stays so: what such a
//! thread did for one call leaves nothing that the next could use.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use footbridge_launcher::sandbox::{self, SandboxError};
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::oneshot;

use crate::failure::Failure;

/// Says at the start where the kernel does not hold file tools to the roots, and not only when the first of them works.
pub(crate) fn tell_of_confinement() {
    // On a thread that ends at once: it stays as it made itself.
    let tried = std::thread::spawn(|| sandbox::restrict_this_thread(&[], false)).join();
    match tried.unwrap_or(Err(SandboxError::Unsupported)) {
        Ok(_) => {}
        Err(unsupported @ SandboxError::Unsupported) => {
            tracing::warn!("file tools are held by the rules of this foot alone: {unsupported}");
        }
        Err(refused @ SandboxError::Refused(_)) => {
            tracing::error!("file tools do nothing, as they cannot be held to the roots: {refused}");
        }
    }
}

/// Threads of one pool. The work mostly waits for a disk.
const MAX_THREADS: usize = 16;

/// What a thread does to itself before its first work.
trait Confinement: Send + Sync {
    /// Confines the calling thread, for good.
    fn apply(&self) -> Result<(), SandboxError>;

    /// Which folders that is to. Threads that were confined to others are of no more use.
    fn folders(&self) -> Vec<Option<FolderId>>;
}

/// A folder by device and number: one that was made anew under the same path is another.
type FolderId = (u64, u64);

/// Holds threads to what lies below the roots.
struct Roots {
    paths: Vec<PathBuf>,
    write: bool,
}

impl Confinement for Roots {
    fn apply(&self) -> Result<(), SandboxError> {
        sandbox::restrict_this_thread(&self.paths, self.write).map(drop)
    }

    fn folders(&self) -> Vec<Option<FolderId>> {
        let id = |path: &PathBuf| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        self.paths.iter().map(id).collect()
    }
}

/// Work, told what became of confining the thread it is on; `None` on a thread that is of no more use.
type Job = Box<dyn FnOnce(Option<Result<(), SandboxError>>) + Send>;

/// A pool of threads, started as they are needed. They end with it, each after the work it is at.
pub(super) struct FileThreads {
    confinement: Arc<dyn Confinement>,
    current: Mutex<Arc<Pool>>,
}

struct Pool {
    confinement: Arc<dyn Confinement>,
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
}

impl FileThreads {
    /// Threads that reach what lies below the roots; with `write` they may change it.
    pub(super) fn new(roots: Vec<PathBuf>, write: bool) -> Self {
        Self::confined_by(Roots { paths: roots, write })
    }

    fn confined_by(confinement: impl Confinement + 'static) -> Self {
        let confinement: Arc<dyn Confinement> = Arc::new(confinement);
        let current = Mutex::new(Pool::new(&confinement));
        Self { confinement, current }
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
        let refused = |error: SandboxError| {
            let message = "file tools cannot be confined to the roots on this machine, so they do nothing";
            Failure::not_run(ErrorCode::SandboxUnavailable, message).cause(error)
        };
        let mut work = work;
        loop {
            let pool = self.current().clone();
            let (answer, answered) = oneshot::channel();
            pool.submit(Box::new(move |confined| {
                // The caller may have stopped to wait.
                let _ = answer.send(match confined {
                    Some(confined) => Ok(confined.map_err(refused).and_then(|()| work())),
                    None => Err(work),
                });
            }));
            match answered.await {
                Ok(Ok(done)) => return done,
                Ok(Err(undone)) => {
                    work = undone;
                    self.renew(&pool);
                }
                Err(_) => return Err(Failure::new(ErrorCode::Internal, Outcome::Unknown, "the tool broke off")),
            }
        }
    }

    /// Puts a new pool in place of one whose threads are of no more use. They could start no others themselves: what they
    /// start is confined as they are.
    fn renew(&self, stale: &Arc<Pool>) {
        let mut current = self.current();
        if Arc::ptr_eq(&current, stale) {
            stale.close();
            *current = Pool::new(&self.confinement);
        }
    }

    fn current(&self) -> MutexGuard<'_, Arc<Pool>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FileThreads {
    fn drop(&mut self) {
        self.current().close();
    }
}

impl Pool {
    fn new(confinement: &Arc<dyn Confinement>) -> Arc<Self> {
        let (state, changed) = Default::default();
        Arc::new(Self { confinement: confinement.clone(), state, changed })
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

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

    fn work(self: Arc<Self>) {
        let folders = self.confinement.folders();
        let (confined, lasts) = match self.confinement.apply() {
            // That is told when the foot starts.
            Err(SandboxError::Unsupported) => (Ok(()), true),
            other => (other, false),
        };
        while let Some(job) = self.next() {
            let fits = lasts || self.confinement.folders() == folders;
            // Its sender is dropped, which is the answer; the message is in the log.
            let _ = catch_unwind(AssertUnwindSafe(|| job(fits.then(|| confined.clone()))));
        }
    }

    /// Waits for work. `None`: the pool is closed, nothing is left to do, and the thread counts no more.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                // Under the same lock: whoever brings work from now on starts a thread for it.
                state.threads -= 1;
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
