//! Running commands: what they inherit, what they may reach, and what becomes of them.
//!
//! Each command has a launcher of its own ([`footbridge_launcher`]), so that nothing of it is left when it ends, when its time
//! is up, when its call is cancelled, and when the foot is killed.

mod command_tool;
mod environment;
mod input;
mod job;
mod jobs;
mod orders;
mod output;
mod reach;
mod report;
mod settings;
mod template;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use footbridge_launcher::Order;
use footbridge_launcher::sandbox::{self, SandboxError};
use footbridge_shared::{ErrorCode, Outcome};

pub(crate) use command_tool::check_all as check_commands;
pub use command_tool::{Checked, CommandInput, CommandTool, InputType};
pub(crate) use environment::{Inherited, check as check_environment, word as check_word};
pub(crate) use input::write_input;
pub(crate) use jobs::{Input, Jobs};
pub(crate) use orders::Orders;
pub use reach::ReachError;
pub(crate) use report::{Lines, lines, result, state};
pub use settings::{ExecSettings, KernelSandbox};

use crate::failure::Failure;
use crate::permissions::{Command, CommandLine, Permissions};
use crate::policy::Policy;
use crate::tools::{CallContext, ToolOutput};
use jobs::Start;

/// How long a command may run unless its caller says otherwise.
pub(crate) const DEFAULT_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Longest that a caller may ask for.
pub(crate) const MAX_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// What would have spared a caller's command its end.
const CALLER_WAITS: &str = "a command goes on without its call if the call waits no longer than `waitMs` says; exec_status \
    and exec_tail follow it";
/// The same of a command that the owner made a tool of.
const OWNER_LIMITS: &str = "it runs no longer than its call; how long that is stands in foot.yaml as `timeoutSeconds`";
/// What runs a script.
const SHELL: &str = "/bin/sh";

/// Why no command is run by this foot. It costs the tools that run commands, nothing else.
#[derive(Debug, thiserror::Error)]
pub enum ExecUnavailable {
    /// Nobody could end all that a command starts.
    #[error("commands are run on Linux alone: only there can all that a command starts be ended with it")]
    System,
    /// The kernel cannot confine them.
    #[error("{0}; to run them unconfined, say --no-kernel-sandbox")]
    Sandbox(String),
    /// What they are to be kept from lies in what they may reach.
    #[error(transparent)]
    Reach(#[from] ReachError),
}

impl From<SandboxError> for ExecUnavailable {
    fn from(error: SandboxError) -> Self {
        Self::Sandbox(error.to_string())
    }
}

/// Runs commands, as one set of permissions and settings says.
#[derive(Debug)]
pub(crate) struct Executor {
    jobs: Arc<Jobs>,
    orders: Orders,
    any: bool,
}

/// A command, how long it may run, and how long somebody waits for it.
#[derive(Debug)]
pub(crate) struct Request {
    /// What.
    pub(crate) command: Command,
    /// What it reads; `None` for nothing at all.
    pub(crate) input: Option<Input>,
    /// How long it may run.
    pub(crate) limit: Duration,
    /// How long the call waits; `None`: to the end, and then the command ends with the call.
    pub(crate) wait: Option<Duration>,
}

impl Executor {
    /// Who runs commands, if they are permitted and can be run; logs why not.
    pub(crate) fn offered(jobs: &Arc<Jobs>, permissions: &Permissions, settings: &ExecSettings) -> Option<Arc<Self>> {
        if !permissions.offers_exec() && settings.commands.is_empty() {
            return None;
        }
        match Self::new(jobs.clone(), permissions, settings.clone(), crate::config::inherited()) {
            Ok(executor) => Some(executor),
            Err(reason) => {
                tracing::error!(%reason, "this foot runs no commands");
                None
            }
        }
    }

    /// Finds out whether commands can be run as the settings want it, and logs what keeps them in and what does not.
    ///
    /// # Errors
    /// [`ExecUnavailable`]: then no command is to be offered.
    pub(crate) fn new(
        jobs: Arc<Jobs>,
        permissions: &Permissions,
        settings: ExecSettings,
        variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Arc<Self>, ExecUnavailable> {
        if cfg!(not(target_os = "linux")) {
            return Err(ExecUnavailable::System);
        }
        let orders = Orders::new(permissions, settings, variables);
        let executor = Self { jobs, orders, any: permissions.offers_exec() };
        match executor.orders.settings().sandbox {
            KernelSandbox::Off => tracing::warn!(
                "commands run unconfined: they may do what your account may, whatever the roots and rules are"
            ),
            KernelSandbox::Required => {
                executor.orders.grants()?;
                let confined = sandbox::probe()?;
                tracing::warn!(
                    write = executor.orders.write(),
                    other_processes = if confined.scoped { "kept out" } else { "within reach: it takes Linux 6.12" },
                    sockets_in_files = if confined.sockets { "kept out" } else { "within reach, such as docker's" },
                    network = "within reach",
                    "commands are confined to the roots by the kernel, and not in everything"
                );
            }
        }
        Ok(Arc::new(executor))
    }

    /// The commands that were started.
    pub(crate) fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// Commands that the owner made tools of.
    pub(crate) fn commands(&self) -> &[Checked] {
        &self.orders.settings().commands
    }

    /// Whether callers may come up with commands of their own.
    pub(crate) fn runs_any(&self) -> bool {
        self.any
    }

    /// Runs a command, and waits for it as long as the request says.
    ///
    /// # Errors
    /// As [`Jobs::start`]; `cancelled` if the call was stopped, when nothing of the command is left.
    pub(crate) async fn run(self: &Arc<Self>, request: Request, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let Request { command, input, limit, wait } = request;
        let hint = if command.configured { OWNER_LIMITS } else { CALLER_WAITS };
        let executor = self.clone();
        let prepared = tokio::task::spawn_blocking(move || executor.order(&command)).await;
        let broken = |cause| Failure::not_run(ErrorCode::Internal, "the command could not be prepared").cause(cause);
        let order = prepared.map_err(broken)??;
        ctx.check()?;
        let job = self.jobs.start(Start { order, owner: ctx.caller.subject.clone(), limit, input }).await?;
        job.listen(ctx.clone());
        let waited = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let stopped = tokio::select! {
            biased;
            () = job.ended() => false,
            () = ctx.cancelled() => true,
            () = waited => false,
        };
        job.deafen();
        if stopped {
            job.kill();
            job.ended().await;
            let failure = Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "the command was ended with its call");
            return Err(failure.hint(hint));
        }
        Ok(result(&job, self.jobs.now()))
    }

    /// Resolves the folder that a command starts in; the first root if none is named.
    ///
    /// # Errors
    /// As [`crate::policy::Gate::resolve`], and `not_a_file` for what is no folder. Nothing ran.
    pub(crate) async fn resolve_cwd(&self, given: Option<String>) -> Result<PathBuf, Failure> {
        let policy = self.orders.policy().clone();
        let resolved = tokio::task::spawn_blocking(move || resolve_cwd(&policy, given.as_deref().unwrap_or("."))).await;
        let broken = |cause| Failure::not_run(ErrorCode::Internal, "the folder could not be looked at").cause(cause);
        resolved.map_err(broken)?
    }

    /// What a launcher is to be told. Looks at files.
    fn order(&self, command: &Command) -> Result<Order, Failure> {
        let (program, argv) = match &command.line {
            CommandLine::Shell(script) => {
                (PathBuf::from(SHELL), vec!["sh".into(), "-c".into(), check_word(script)?.into()])
            }
            CommandLine::Argv(words) => {
                let first = words.first().ok_or_else(|| Failure::invalid_arguments("`argv` is empty"))?;
                let argv = words.iter().map(|word| Ok(check_word(word)?.into())).collect::<Result<_, Failure>>()?;
                (self.orders.program(first, &command.cwd)?, argv)
            }
        };
        self.orders.order(program, argv, &command.env, command.cwd.clone(), true)
    }
}

fn resolve_cwd(policy: &Policy, given: &str) -> Result<PathBuf, Failure> {
    let not_run = |failure: Failure| Failure { outcome: Outcome::NotRun, ..failure };
    let gate = policy.gate();
    let real = gate.resolve(given).map_err(not_run)?;
    if !gate.look(&real, given).map_err(not_run)?.is_dir() {
        let message = format!("`{}` is not a folder", crate::failure::shown(given));
        return Err(Failure::not_run(ErrorCode::NotAFile, message));
    }
    Ok(real)
}

#[cfg(test)]
mod tests;
