//! All commands of a foot: how many may run, whose they are, and how long they are remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use footbridge_launcher::{Ending, Launcher, NotStarted, Order, Process, Report};
use footbridge_shared::id::Subject;
use footbridge_shared::message::Stream;
use footbridge_shared::{ErrorCode, Outcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::job::{Job, Why};
use crate::clock::SharedClock;
use crate::failure::Failure;

/// Commands that run at once, unless the owner says otherwise.
pub(crate) const DEFAULT_MAX_JOBS: usize = 16;
/// Commands that are remembered after their end.
const MAX_ENDED: usize = 64;
/// How long they are.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// What `too_many_jobs` suggests to wait, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;
/// Longest time between two looks at the clock: it may have jumped with a suspend.
const TICK: Duration = Duration::from_secs(1);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// How long output may go on after the launcher is gone: nobody of the command is left to write.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// What is to be run, by whom, and how long.
#[derive(Debug)]
pub(crate) struct Start {
    /// The order, but for the mark of the job.
    pub(crate) order: Order,
    /// For whom.
    pub(crate) owner: Subject,
    /// How long it may run.
    pub(crate) limit: Duration,
    /// What it reads; `None` for nothing at all.
    pub(crate) input: Option<Input>,
}

/// What a command reads.
#[derive(Debug)]
pub(crate) struct Input {
    /// First of all.
    pub(crate) data: Vec<u8>,
    /// Whether more may come.
    pub(crate) stays_open: bool,
}

/// The commands.
#[derive(Debug)]
pub(crate) struct Jobs {
    launcher: Launcher,
    clock: SharedClock,
    room: Arc<Semaphore>,
    known: Mutex<HashMap<String, Arc<Job>>>,
    /// One task a running command. They end with this, and then so do the commands.
    tasks: Mutex<JoinSet<()>>,
}

impl Jobs {
    pub(crate) fn new(launcher: Launcher, clock: SharedClock, max_running: usize) -> Arc<Self> {
        let (known, tasks) = Default::default();
        Arc::new(Self { launcher, clock, room: Arc::new(Semaphore::new(max_running)), known, tasks })
    }

    /// The clock that their times are on.
    pub(crate) fn now(&self) -> Duration {
        self.clock.boot()
    }

    /// Starts a command.
    ///
    /// # Errors
    /// `too_many_jobs`, `not_found` (no such program), `permission_denied` (the system does not let it be executed),
    /// `sandbox_unavailable`, `tool_failed`. All of them `not_run`.
    pub(crate) async fn start(&self, start: Start) -> Result<Arc<Job>, Failure> {
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            let message = "as many commands run as this foot runs at once";
            return Err(Failure::not_run(ErrorCode::TooManyJobs, message).retry_after_ms(RETRY_AFTER_MS));
        };
        let Start { mut order, owner, limit, input } = start;
        let id = crate::random::id();
        order.environment.push((footbridge_launcher::MARK.into(), id.clone().into()));
        let broken = |cause| Failure::not_run(ErrorCode::ToolFailed, "the command could not be started").cause(cause);
        let mut process = self.launcher.start(&order, input.is_some()).await.map_err(broken)?;
        match process.reports.next().await {
            Some(Report::Started) => {}
            Some(Report::NotStarted(why)) => return Err(not_started(why)),
            Some(Report::Ended(_)) | None => {
                // It may have started the command, and been killed by it.
                process.reports.gone().await;
                clean_up(id, order).await;
                let message = "the process that starts commands was killed";
                return Err(Failure::new(ErrorCode::ToolFailed, Outcome::Unknown, message));
            }
        }
        let (now, pipe) = (self.clock.boot(), process.input.take());
        let job = Arc::new(Job::new(id, owner, now, now.saturating_add(limit), pipe));
        self.remember(&job, now);
        let attended = attend(job.clone(), process, input, self.clock.clone(), (order, room));
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(attended);
        Ok(job)
    }

    /// A command of this subject.
    ///
    /// # Errors
    /// `not_found`: there is none, or it is another's, or it is long over.
    pub(crate) fn get(&self, id: &str, subject: &Subject) -> Result<Arc<Job>, Failure> {
        let known = lock(&self.known);
        known.get(id).filter(|job| job.owner == *subject).cloned().ok_or_else(|| {
            let message = format!("there is no command `{}` of yours", crate::failure::shown(id));
            Failure::completed(ErrorCode::NotFound, message).hint("ended commands are remembered for an hour at most")
        })
    }

    fn remember(&self, job: &Arc<Job>, now: Duration) {
        let mut known = lock(&self.known);
        known.retain(|_, job| job.ended_at().is_none_or(|at| now.saturating_sub(at) < KEPT));
        let mut ended: Vec<(Duration, String)> =
            known.values().filter_map(|job| Some((job.ended_at()?, job.id.clone()))).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().rev().skip(MAX_ENDED) {
            known.remove(id);
        }
        known.insert(job.id.clone(), job.clone());
    }
}

fn not_started(why: NotStarted) -> Failure {
    match why {
        NotStarted::Unconfined(cause) => {
            Failure::not_run(ErrorCode::SandboxUnavailable, "the command could not be confined, so it was not run")
                .cause(cause)
        }
        NotStarted::NoProgram => {
            Failure::not_run(ErrorCode::NotFound, "there is no such program, or none that could interpret it")
        }
        NotStarted::Denied => {
            Failure::not_run(ErrorCode::PermissionDenied, "the system does not let this be executed, or not from there")
        }
        NotStarted::TooLong => {
            Failure::invalid_arguments("the arguments and the environment are more than the system takes")
                .hint("give long input as `stdin`")
        }
        NotStarted::Broken(cause) => {
            Failure::not_run(ErrorCode::ToolFailed, "the command could not be started").cause(cause)
        }
    }
}

/// Looks after a command until nothing is left of it.
async fn attend(
    job: Arc<Job>,
    process: Process,
    input: Option<Input>,
    clock: SharedClock,
    (order, room): (Order, OwnedSemaphorePermit),
) {
    let Process { mut reports, hold, output, error, .. } = process;
    let released = async {
        unwanted(&job, &clock).await;
        drop(hold);
        std::future::pending::<()>().await;
    };
    let ended = async {
        let last = reports.next().await;
        reports.gone().await;
        last
    };
    let streams = async {
        tokio::join!(pump(&job, Stream::Stdout, output), pump(&job, Stream::Stderr, error));
    };
    let fed = async {
        feed(&job, input).await;
        std::future::pending::<()>().await;
    };
    let life = async {
        let mut streams = std::pin::pin!(streams);
        let mut ended = std::pin::pin!(ended);
        let last = tokio::select! {
            last = &mut ended => {
                // Somebody else may have got hold of a pipe.
                let _ = tokio::time::timeout(LAST_OUTPUT, streams).await;
                last
            }
            () = &mut streams => ended.await,
        };
        match last {
            Some(Report::Ended(ending)) => Some(ending),
            _ => None,
        }
    };
    let ending: Option<Ending> = tokio::select! {
        ending = life => ending,
        () = released => None,
        () = fed => None,
    };
    if ending.is_none() {
        clean_up(job.id.clone(), order).await;
    }
    drop(room);
    job.over(ending, clock.boot());
    *job.input.lock().await = None;
}

/// Does what the launcher would have done, had it not been killed.
async fn clean_up(id: String, order: Order) {
    tracing::warn!(job = id, "the launcher of a command was killed; what is left of the command is ended");
    let done = tokio::task::spawn_blocking(move || {
        footbridge_launcher::end_leftovers(&id, &order.temporary.to_path());
    });
    if done.await.is_err() {
        tracing::error!("the end of a command broke off");
    }
}

/// Waits until a command is to end.
async fn unwanted(job: &Job, clock: &SharedClock) {
    loop {
        let left = job.deadline.saturating_sub(clock.boot());
        if left.is_zero() {
            return job.end_for(Why::Deadline);
        }
        tokio::select! {
            () = job.stop.cancelled() => return,
            () = tokio::time::sleep(left.min(TICK)) => {}
        }
    }
}

async fn pump(job: &Job, stream: Stream, mut from: pipe::Receiver) {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(count) = from.read(&mut buffer).await {
        match buffer.get(..count) {
            Some(bytes) if count > 0 => job.wrote(stream, bytes),
            _ => return,
        }
    }
}

/// Gives a command what it is to read.
async fn feed(job: &Job, input: Option<Input>) {
    let Some(Input { data, stays_open }) = input else { return };
    let mut pipe = job.input.lock().await;
    // A command need not read what it is given.
    let written = match pipe.as_mut() {
        Some(pipe) => pipe.write_all(&data).await,
        None => Ok(()),
    };
    if written.is_err() || !stays_open {
        *pipe = None;
    }
}

/// Nothing panics while it holds one of these; what is there would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
