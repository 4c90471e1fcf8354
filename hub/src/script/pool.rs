//! The pool of workers: the door to the sandbox.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::{ErrorCode, Outcome};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::answers::Answers;
use super::frame::{Done, Run};
use super::gate::{Full, Gate};
use super::host::GLOBAL;
use super::limits::{
    BUSY_RETRY_AFTER_MS, DEFAULT_IDLE, DEFAULT_PER_TENANT, DEFAULT_QUEUE, DEFAULT_WORKERS, MAX_INPUT_BYTES,
    MAX_SOURCE_BYTES,
};
use super::process::NotReady;
use super::report::{succeeded, threw};
use super::session::{Ended, Stopped, attend};
use super::worker::ARGUMENT;
use super::workers::Workers;
use crate::domain::call::{CallContext, MAX_DEPTH};
use crate::domain::document::DocumentReader;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::script::{ScriptRequest, ScriptRunner};
use crate::lifecycle::Lifecycle;

/// Globals that cannot be variables.
const FIXED_GLOBALS: [&str; 5] = [GLOBAL, "undefined", "NaN", "Infinity", "globalThis"];

/// How many workers there are and how they are started.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// The program that is a worker when started with `args`: an absolute path. On Linux the running program stays what
    /// it is when its file is replaced: workers are then started from what runs, not from what has come to lie there.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Scripts that run at once, at each depth of nesting.
    pub workers: usize,
    /// Those of one tenant.
    pub per_tenant: usize,
    /// Callers that may wait, at each depth of nesting; one tenant may fill seven eighths of the queue.
    pub queue: usize,
    /// How long a worker is kept with nothing to do; one is kept for ever.
    pub idle: Duration,
    /// Run scripts also where the kernel does not lock workers in although it should: Linux without seccomp.
    pub allow_unsandboxed: bool,
}

impl PoolConfig {
    /// The defaults, with workers that are this program started as [`super::worker`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: vec![ARGUMENT.into()],
            workers: DEFAULT_WORKERS,
            per_tenant: DEFAULT_PER_TENANT,
            queue: DEFAULT_QUEUE,
            idle: DEFAULT_IDLE,
            allow_unsandboxed: false,
        }
    }
}

/// Runs scripts in worker processes.
pub struct Pool {
    gate: Gate,
    workers: Arc<Workers>,
    documents: Arc<dyn DocumentReader>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("gate", &self.gate).field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl Pool {
    /// Starts a pool on the current runtime, with one worker warm. `documents` is what `vance.documents` reads.
    ///
    /// # Errors
    /// When the system gives no thread. A worker that does not start is no error here but one of each script.
    pub async fn start(
        config: &PoolConfig,
        documents: Arc<dyn DocumentReader>,
        lifecycle: &Lifecycle,
    ) -> io::Result<Self> {
        let workers = Arc::new(Workers::new(config, lifecycle)?);
        workers.warm_up().await;
        lifecycle.spawn("script workers", workers.clone().keep());
        Ok(Self { gate: Gate::new(config.workers, config.per_tenant, config.queue), workers, documents })
    }

    /// Kills all workers, with whatever they run, and waits until the processes are gone. Scripts that come later are
    /// refused. The same happens when the lifecycle turns hard.
    pub async fn shutdown(&self) {
        self.workers.shut_down().await;
    }

    /// Number of worker processes that live.
    pub fn processes(&self) -> usize {
        self.workers.count()
    }

    async fn run_admitted(&self, request: ScriptRequest, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let ending = self.workers.ending();
        let not_run = |stopped: Stopped| stopped.failure(Outcome::NotRun);
        let _permit = tokio::select! {
            biased;
            stopped = Stopped::wait(ctx, ending) => return Err(not_run(stopped)),
            permit = self.gate.admit(ctx.depth, &ctx.scope.tenant) => permit?,
        };
        let ScriptRequest { name, source, inputs, params, .. } = request;
        let run = Arc::new(Run { source, inputs, params, context: context_of(ctx)? });
        let started = Instant::now();
        let mut worker = tokio::select! {
            biased;
            stopped = Stopped::wait(ctx, ending) => return Err(not_run(stopped)),
            worker = self.workers.start(run, ctx.clock.hard()) => worker?,
        };
        let mut answers = Answers::new(ctx, self.documents.as_ref(), &name);
        let ended = attend(&mut worker, &mut answers, ctx, ending).await;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match ended {
            Ended::Done(done) => {
                self.workers.give_back(worker);
                match done {
                    Done::Value(value) => Ok(succeeded(value, duration_ms)),
                    Done::Threw(thrown) => Ok(threw(&name, &thrown, duration_ms)),
                    Done::Deadline => Err(Stopped::Deadline.failure(Outcome::Unknown)),
                }
            }
            Ended::Stopped(stopped) => Err(stopped.failure(Outcome::Unknown)),
            Ended::Lost(error) => Err(Failure::new(
                ErrorCode::ScriptWorkerLost,
                Outcome::Unknown,
                "the process that ran the script ended before it answered",
            )
            .cause(error)),
        }
    }
}

#[async_trait]
impl ScriptRunner for Pool {
    async fn run(&self, request: ScriptRequest, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let own = ctx.narrowed(ctx.clock.idle(), request.timeout);
        // However this ends: whatever the script started ends with it.
        let _ended = own.cancel.clone().drop_guard();
        check(&request, ctx)?;
        self.run_admitted(request, &own).await
    }
}

/// Refuses what cannot run.
fn check(request: &ScriptRequest, ctx: &CallContext) -> Result<(), Failure> {
    if ctx.depth > MAX_DEPTH {
        let message = format!("tools may call tools {MAX_DEPTH} levels deep");
        return Err(Failure::not_run(ErrorCode::DepthExceeded, message));
    }
    let refuse = |message: String| Err(Failure::not_run(ErrorCode::InvalidArguments, message));
    let input: usize = request.inputs.iter().map(|(name, json)| name.len() + json.get().len()).sum();
    if request.source.len() > MAX_SOURCE_BYTES {
        return refuse(format!("the script has more than {MAX_SOURCE_BYTES} bytes"));
    }
    if request.source.contains('\0') {
        return refuse("the script holds a NUL character".to_owned());
    }
    if input + request.params.get().len() > MAX_INPUT_BYTES {
        return refuse(format!("the inputs of the script have more than {MAX_INPUT_BYTES} bytes"));
    }
    if let Some((name, _)) = request.inputs.iter().find(|(name, _)| FIXED_GLOBALS.contains(&name.as_str())) {
        return refuse(format!("`{name}` cannot be an input of a script"));
    }
    Ok(())
}

/// `vance.context`.
fn context_of(ctx: &CallContext) -> Result<Box<RawValue>, Failure> {
    #[derive(Serialize)]
    struct Who<'a> {
        tenant: &'a str,
        project: &'a str,
        process: Option<&'a str>,
        user: &'a str,
    }
    let who = Who {
        tenant: ctx.scope.tenant.as_str(),
        project: ctx.scope.project.as_str(),
        process: ctx.caller.process.as_deref(),
        user: ctx.caller.subject.as_str(),
    };
    to_raw_value(&who)
        .map_err(|error| Failure::not_run(ErrorCode::Internal, "the script could not be prepared").cause(error))
}

impl From<Full> for Failure {
    fn from(_: Full) -> Self {
        Self::not_run(ErrorCode::ScriptBusy, "all script workers are busy and the queue is full")
            .retry_after_ms(BUSY_RETRY_AFTER_MS)
    }
}

impl From<NotReady> for Failure {
    fn from(reason: NotReady) -> Self {
        let failure = match &reason {
            NotReady::Refused(_) => Self::not_run(
                ErrorCode::NotSupported,
                "scripts do not run here: the kernel does not lock their workers in",
            )
            .hint("the operator can allow scripts without a kernel sandbox"),
            NotReady::Ended(_) => Self::not_run(ErrorCode::Internal, "no script worker could be started"),
        };
        failure.cause(reason)
    }
}
