//! The worker processes: started when needed, kept warm, replaced after a while, gone at the end. They are services of the
//! hub: while it drains, the calls that still run may still run scripts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::deadline::Deadline;
use super::frame::{Confinement, Run, ToWorker};
use super::limits::{MAX_RUNS, SHORTEST_TIDYING, START_ATTEMPTS, WARM_WORKERS};
use super::pool::PoolConfig;
use super::process::{NotReady, Worker, supervise};
use super::spawner::Spawner;
use crate::lifecycle::Lifecycle;

/// All processes of a pool.
#[derive(Debug)]
pub(super) struct Workers {
    spawner: Spawner,
    lifecycle: Lifecycle,
    /// How long a surplus worker is kept with nothing to do.
    idle_kept: Duration,
    /// The most recently used last: it is the warmest.
    idle: Mutex<Vec<Worker>>,
    /// Ends all processes. Fires when the lifecycle turns hard, if not before.
    end: CancellationToken,
    processes: TaskTracker,
    weakness_told: AtomicBool,
}

impl Workers {
    /// Prepares to start workers; starts none.
    pub(super) fn new(config: &PoolConfig, lifecycle: &Lifecycle) -> io::Result<Self> {
        Ok(Self {
            spawner: Spawner::start(config)?,
            lifecycle: lifecycle.clone(),
            idle_kept: config.idle,
            idle: Mutex::default(),
            end: lifecycle.hard().child_token(),
            processes: TaskTracker::new(),
            weakness_told: AtomicBool::new(false),
        })
    }

    /// Hands a script to a worker. Processes that ended before they took it are replaced: it has not run in them.
    pub(super) async fn start(&self, run: Arc<Run>, deadline: Instant) -> Result<Worker, NotReady> {
        // Idle workers that ended say nothing about whether a new one would work: they are no attempts.
        while let Some(worker) = self.take_idle() {
            match self.hand_over(worker, &run, deadline).await {
                Err(NotReady::Ended(error)) => tracing::debug!(%error, "an idle script worker had ended"),
                other => return other,
            }
        }
        let mut last = NotReady::Ended(io::ErrorKind::NotConnected.into());
        for _ in 0..START_ATTEMPTS {
            match self.hire_for(&run, deadline).await {
                Err(NotReady::Ended(error)) => last = NotReady::Ended(error),
                other => return other,
            }
        }
        Err(last)
    }

    /// The warmest idle worker whose process lives, as far as is known.
    fn take_idle(&self) -> Option<Worker> {
        let mut idle = self.idle.lock();
        while let Some(worker) = idle.pop() {
            if !worker.gone().is_cancelled() {
                return Some(worker);
            }
        }
        None
    }

    async fn hire_for(&self, run: &Arc<Run>, deadline: Instant) -> Result<Worker, NotReady> {
        let worker = self.hire().await?;
        self.hand_over(worker, run, deadline).await
    }

    async fn hand_over(&self, mut worker: Worker, run: &Arc<Run>, deadline: Instant) -> Result<Worker, NotReady> {
        self.tell_weakness(worker.ready().await?);
        let left = deadline.saturating_duration_since(Instant::now());
        worker.runs += 1;
        worker.send(&ToWorker::Run(Deadline::after(left), run.clone())).await?;
        Ok(worker)
    }

    async fn hire(&self) -> io::Result<Worker> {
        if self.end.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut child = self.spawner.spawn().await?;
        let (kill, gone) = (self.end.child_token(), CancellationToken::new());
        let worker = Worker::new(&mut child, kill.clone(), gone.clone())?;
        self.lifecycle.spawn("script worker", self.processes.track_future(supervise(child, kill, gone)));
        Ok(worker)
    }

    /// Takes a worker back that ended its script by itself.
    pub(super) fn give_back(&self, mut worker: Worker) {
        worker.idle_since = Instant::now();
        if worker.runs < MAX_RUNS && !self.end.is_cancelled() {
            self.idle.lock().push(worker);
        }
    }

    /// Has a worker ready before the first script comes.
    pub(super) async fn warm_up(&self) {
        match self.hire().await {
            Ok(worker) => self.give_back(worker),
            Err(error) => tracing::error!(%error, "no script worker could be started; scripts will fail"),
        }
    }

    /// Lets go of workers that nobody has needed for a while.
    pub(super) async fn keep(self: Arc<Self>) {
        let pause = (self.idle_kept / 2).max(SHORTEST_TIDYING);
        while self.end.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
            self.let_go(self.idle_kept);
        }
    }

    fn let_go(&self, unused_for: Duration) {
        let mut idle = self.idle.lock();
        let surplus = idle.len().saturating_sub(WARM_WORKERS);
        let unused = idle.iter().take_while(|worker| worker.idle_since.elapsed() >= unused_for).count();
        idle.drain(..surplus.min(unused));
    }

    /// Kills all processes, with whatever they run, and waits until they are gone. None is started any more.
    pub(super) async fn shut_down(&self) {
        self.end.cancel();
        self.idle.lock().clear();
        self.processes.close();
        self.processes.wait().await;
    }

    /// Fires when all processes are being ended.
    pub(super) fn ending(&self) -> &CancellationToken {
        &self.end
    }

    /// Number of processes.
    pub(super) fn count(&self) -> usize {
        self.processes.len()
    }

    fn tell_weakness(&self, confinement: Confinement) {
        if confinement == Confinement::Full || self.weakness_told.swap(true, Ordering::Relaxed) {
            return;
        }
        match confinement {
            Confinement::None => {
                tracing::warn!("scripts run without a kernel sandbox, by the interpreter's limits alone")
            }
            _ => tracing::info!("this kernel has no Landlock; scripts are locked in by the system call filter alone"),
        }
    }
}
