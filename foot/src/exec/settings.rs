//! What the owner says of commands.

use std::path::PathBuf;

use super::command_tool::Checked;
use super::jobs::DEFAULT_MAX_JOBS;

/// Whether the kernel keeps commands within the roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KernelSandbox {
    /// It must; where it cannot, no command is run.
    #[default]
    Required,
    /// It does not: a command may do what the owner's account may.
    Off,
}

/// How commands are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSettings {
    /// Whether they are confined.
    pub sandbox: KernelSandbox,
    /// What they may read beyond the roots, absolute paths. What is never served is left out of them.
    pub extra_read: Vec<PathBuf>,
    /// What they may change beyond the roots, absolute paths. Nothing that is never served may lie there.
    pub extra_write: Vec<PathBuf>,
    /// How many run at once.
    pub max_jobs: usize,
    /// Commands that are tools of their own.
    pub commands: Vec<Checked>,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self {
            sandbox: KernelSandbox::default(),
            extra_read: Vec::new(),
            extra_write: Vec::new(),
            max_jobs: DEFAULT_MAX_JOBS,
            commands: Vec::new(),
        }
    }
}
