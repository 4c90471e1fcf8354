//! The foot: offers a developer machine's tools to a Footbridge hub.
//!
//! It only ever dials out. [`run`] connects, serves calls, and connects again, until it is told to stop or until only a
//! person can help. It runs on Unix: permissions, links and file locks are used as they are there.

mod calls;
mod cli;
mod clock;
mod config;
mod connection;
mod error;
mod exec;
mod failure;
mod frame;
mod identity;
mod journal;
mod launcher;
mod permissions;
mod policy;
mod random;
mod runner;
mod sandbox;
mod session;
mod tools;

use std::sync::Arc;

use permissions::{Defaults, Permissions};
use policy::Policy;
use tokio_util::sync::CancellationToken;
use tools::ToolSet;

pub use cli::cli_main;
pub use config::{ConfigError, FootConfig, HubUrl, HubUrlError, Token, TokenError, TokenSource};
pub use error::{Exit, FootError};
pub use exec::{ExecSettings, ExecUnavailable, KernelSandbox, ReachError};
pub use identity::IdentityError;
pub use launcher::{COMMAND as JOB_COMMAND, main as job_main};
pub use policy::{FloorRule, PolicyError};
pub use runner::Runner;

/// Works as a foot until `shutdown` fires, which ends running calls and says good-bye, or until the hub turns it away
/// for good.
///
/// # Errors
/// [`FootError`]: the configuration cannot be used, or the hub does not want this foot.
pub async fn run(config: FootConfig, shutdown: CancellationToken) -> Result<Exit, FootError> {
    // Later a file may be away for a moment, while it is exchanged. At the start that is a mistake somebody can mend.
    config.token.read()?;
    let policy = Arc::new(Policy::new(&config.roots, config.floor())?);
    let permissions = Permissions::new(policy.clone(), Defaults::default());
    let clock: clock::SharedClock = Arc::new(clock::SystemClock);
    let jobs = exec::Jobs::new(exec::Launcher::of_this_program(), clock.clone(), config.exec.max_jobs);
    let executor = exec::Executor::offered(&jobs, &permissions, &config.exec);
    let mut offered = config.runner.tools(&permissions);
    offered.extend(executor.iter().flat_map(tools::exec_tools));
    let (tools, left_out) = ToolSet::new(offered, &permissions);
    for reason in left_out {
        tracing::warn!(%reason, "a tool is not offered");
    }
    let identity = identity::Identity::open(&config)?;
    if identity.in_use && !config.supersede {
        return Err(IdentityError::InUse(config.name).into());
    }
    if identity.in_use {
        tracing::warn!(name = %config.name, "another process of this foot runs on this machine; it will be superseded");
    }
    let roots: Vec<_> = policy.roots().iter().map(|root| root.display().to_string()).collect();
    tracing::info!(name = %config.name, hub = %config.hub, ?roots, share = ?config.share, "foot starts");
    session::Session::new(config, identity, Arc::new(tools), clock)?.run(shutdown).await
}
