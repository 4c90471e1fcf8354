//! Settings on the command line, which `run`, `check` and `tools` have in common.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::{self, Environment, Resolved, Served, Settings};
use crate::error::FootError;
use crate::exec::KernelSandbox;
use crate::permissions::Mode;
use crate::runner::Runner;

/// What a foot can be told on the command line.
#[derive(Debug, Clone, Args)]
pub(super) struct SettingsArgs {
    /// The hub, for instance https://hub.example.org
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// A file with the token, readable by you alone.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The tenant to serve [default: local]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// The project to serve.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// A folder to serve; can be repeated. Relative paths in calls start at the first [default: the current folder]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// The name of this foot [default: after the first root]
    #[arg(long)]
    name: Option<String>,
    /// For whom it works: `owner`, `project`, or subjects with commas between them [default: owner]
    #[arg(long, value_name = "WHOM")]
    share: Option<String>,
    /// Where the key of this foot is kept [default: in your state folder]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Certificates to trust besides the public authorities, as PEM.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Calls to run at once [default: 64]
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// A path that is never served, with everything below it; can be repeated.
    #[arg(long = "deny", value_name = "PATH")]
    deny: Vec<PathBuf>,
    /// A file `mcp.json` with MCP servers of this machine to offer, as other programs write it; nothing is read from a working
    /// folder by itself.
    #[arg(long, value_name = "FILE")]
    mcp_json: Option<PathBuf>,
    #[command(flatten)]
    permitted: PermittedArgs,
    /// Settings file [default: footbridge/foot.yaml in your configuration folder]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Offer tools that only echo, for tests and measurements.
    #[arg(long, hide = true)]
    pub(super) echo: bool,
    /// The same, and one that appends lines to this file.
    #[arg(long, hide = true, value_name = "FILE")]
    echo_append: Option<PathBuf>,
}

/// What a foot can be told on the command line of what callers may do.
#[derive(Debug, Clone, Args)]
struct PermittedArgs {
    /// What becomes of calls that write or delete files, where no rule speaks of them: `deny` (the tools are not offered),
    /// `ask`, or `allow` [default: deny]
    #[arg(long, value_name = "MODE")]
    write: Option<Mode>,
    /// The same for calls that run commands [default: deny]
    #[arg(long, value_name = "MODE")]
    exec: Option<Mode>,
    /// The same as --write allow: callers write and delete files in the roots without asking.
    #[arg(long, conflicts_with = "write")]
    allow_write: bool,
    /// The same as --exec allow: callers run any command without asking. This equals handing over your account, within
    /// the sandbox.
    #[arg(long, conflicts_with = "exec")]
    allow_exec: bool,
    /// Run commands without the kernel's sandbox: they can then do whatever you can.
    #[arg(long)]
    no_kernel_sandbox: bool,
}

impl PermittedArgs {
    fn write(&self) -> Option<Mode> {
        self.write.or(self.allow_write.then_some(Mode::Allow))
    }

    fn exec(&self) -> Option<Mode> {
        self.exec.or(self.allow_exec.then_some(Mode::Allow))
    }
}

impl SettingsArgs {
    /// The configuration, with all layers.
    pub(super) fn resolve(mut self, environment: &Environment, here: &Path) -> Result<Resolved, FootError> {
        let runner = match self.echo_append.take() {
            Some(file) => Runner::EchoAppend(here.join(file)),
            None if self.echo => Runner::Echo,
            None => Runner::Real,
        };
        let (flags, file) = self.layer();
        let mut resolved = config::resolve(flags, file.as_deref(), environment, here)?;
        resolved.config.runner = runner;
        Ok(resolved)
    }

    /// What of it says which files are served.
    pub(super) fn served(self, environment: &Environment, here: &Path) -> Result<Served, FootError> {
        let (flags, file) = self.layer();
        Ok(config::served(flags, file.as_deref(), environment, here)?)
    }

    /// The layer of the command line, and the settings file that it names.
    fn layer(self) -> (Settings, Option<PathBuf>) {
        let flags = Settings {
            hub: self.hub,
            token_file: self.token_file,
            tenant: self.tenant,
            project: self.project,
            name: self.name,
            roots: (!self.roots.is_empty()).then_some(self.roots),
            share: self.share,
            state: self.state,
            ca: self.ca,
            max_concurrent: self.max_concurrent,
            deny: (!self.deny.is_empty()).then_some(self.deny),
            write: self.permitted.write(),
            exec: self.permitted.exec(),
            mcp_json: self.mcp_json,
            kernel_sandbox: self.permitted.no_kernel_sandbox.then_some(KernelSandbox::Off),
            ..Settings::default()
        };
        (flags, self.config)
    }
}
