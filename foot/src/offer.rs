//! What a foot offers under its settings: the tools, and what they are permitted. Settings may change while it runs.

use std::path::PathBuf;
use std::sync::Arc;

use footbridge_launcher::Launcher;

use crate::clock::SharedClock;
use crate::config::{FootConfig, Permitted};
use crate::error::FootError;
use crate::exec::{ExecSettings, Executor, Jobs, Orders};
use crate::permissions::{Asker, Audit, Desk, Judge, Permissions, Programs, ReadRules, Remembered};
use crate::policy::{Floor, Policy, PolicyError};
use crate::runner::Runner;
use crate::tools::{Tool, ToolSetError, exec_tools};

/// All that is on offer, and all that it takes to make it anew under other settings. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    desk: Arc<Desk>,
    /// Commands go on, whatever the settings become.
    jobs: Arc<Jobs>,
}

impl Offer {
    /// Opens the books of a foot, which lie beside its key.
    ///
    /// # Errors
    /// [`FootError::Remembered`], [`FootError::Audit`]: they cannot be used.
    pub(crate) fn open(config: &FootConfig, asker: Box<dyn Asker>, clock: SharedClock) -> Result<Self, FootError> {
        let remembered =
            Remembered::open(config.own_file(ANSWERS)).map_err(|error| FootError::Remembered(error.to_string()))?;
        let audit = Audit::open(config.own_file(AUDIT)).map_err(FootError::Audit)?;
        let jobs = Jobs::new(Launcher::of_this_program(), clock.clone(), config.exec.max_jobs);
        let desk = Desk { asker, remembered: Arc::new(remembered), audit, clock };
        Ok(Self { desk: Arc::new(desk), jobs })
    }

    /// What it permits under these settings.
    ///
    /// # Errors
    /// [`PolicyError`]: the roots cannot be served.
    pub(crate) fn permissions(&self, config: &FootConfig) -> Result<Arc<Permissions>, PolicyError> {
        let judge = judge(&config.roots, config.floor(), &config.permitted)?;
        Ok(Permissions::with(judge, self.desk.clone()))
    }

    /// What a person answered once and for all.
    pub(crate) fn answers(&self) -> &Arc<Remembered> {
        &self.desk.remembered
    }

    /// The tools, within what is permitted.
    pub(crate) fn tools(&self, config: &FootConfig, permissions: &Arc<Permissions>) -> Vec<Arc<dyn Tool>> {
        tools(&config.runner, &config.exec, &self.jobs, permissions)
    }
}

/// The tools of a runner, and, where the settings and the machine let commands be run, those for them.
pub(crate) fn tools(
    runner: &Runner,
    exec: &ExecSettings,
    jobs: &Arc<Jobs>,
    permissions: &Arc<Permissions>,
) -> Vec<Arc<dyn Tool>> {
    let mut tools = runner.tools(permissions);
    let executor = Executor::offered(jobs, permissions, exec);
    tools.extend(executor.iter().flat_map(exec_tools));
    tools
}

/// How local MCP servers are started under these settings.
pub(crate) fn orders(exec: &ExecSettings, permissions: &Permissions) -> Arc<Orders> {
    Arc::new(Orders::new(permissions, exec.clone(), crate::config::inherited_by_servers()))
}

/// Suffix of the file of remembered answers.
pub(crate) const ANSWERS: &str = "answers.json";
/// Suffix of the audit file.
pub(crate) const AUDIT: &str = "audit.jsonl";

/// What decides under these settings.
///
/// # Errors
/// [`PolicyError`]: the roots cannot be served.
pub(crate) fn judge(roots: &[PathBuf], floor: Floor, permitted: &Permitted) -> Result<Judge, PolicyError> {
    let rules = permitted.rules.clone();
    let policy = Policy::new(roots, floor)?.with_rules(Arc::new(ReadRules::new(rules.clone())));
    let programs = Programs::new(permitted.search_path.clone(), policy.roots());
    let (defaults, ask_client) = (permitted.defaults, permitted.ask_client);
    Ok(Judge { policy: Arc::new(policy), defaults, rules, programs, ask_client })
}

/// Says what had to be left out.
pub(crate) fn tell(left_out: Vec<ToolSetError>) {
    for reason in left_out {
        tracing::warn!(%reason, "a tool is not offered");
    }
}
