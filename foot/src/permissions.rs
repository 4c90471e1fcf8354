//! Whether a call may do what it would do: deny, then allow, then ask.
//!
//! Every call comes through here, whatever its tool: between what it plans and what it does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use footbridge_shared::ErrorCode;

use crate::failure::Failure;
use crate::policy::Policy;
use crate::tools::CallContext;

/// What a call would do, as the rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing outside of the foot's own memory.
    Nothing,
    /// Something with a file, or with all that lies below a folder.
    File {
        /// What.
        access: Access,
        /// Where it really is.
        path: PathBuf,
    },
    /// To run a command.
    Run(Command),
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its content, or that it is there.
    Read,
    /// Made, or changed.
    Write,
    /// Removed.
    Delete,
}

/// A command as it would be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// What is run.
    pub(crate) line: CommandLine,
    /// The folder that it starts in: a real path.
    pub(crate) cwd: PathBuf,
    /// What the caller sets in its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Whether the owner wrote the command into the settings, as a tool of its own.
    pub(crate) configured: bool,
}

/// The words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandLine {
    /// A program and its arguments. There is at least the program.
    Argv(Vec<String>),
    /// A script for `sh -c`.
    Shell(String),
}

/// What becomes of an action that no rule speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// It is refused; tools that could do nothing else are not offered.
    #[default]
    Deny,
    /// A person is asked.
    Ask,
    /// It goes on.
    Allow,
}

/// The modes of what changes something. What only reads goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Defaults {
    /// To write and delete files.
    pub(crate) write: Mode,
    /// To run commands.
    pub(crate) exec: Mode,
}

/// What the owner of this foot permits.
#[derive(Debug)]
pub(crate) struct Permissions {
    policy: Arc<Policy>,
    defaults: Defaults,
}

impl Permissions {
    /// Without any rule but those of the policy.
    pub(crate) fn new(policy: Arc<Policy>, defaults: Defaults) -> Arc<Self> {
        Arc::new(Self { policy, defaults })
    }

    /// Whether the tools that write files could ever do so: else they are not offered.
    pub(crate) fn offers_write(&self) -> bool {
        self.defaults.write != Mode::Deny
    }

    /// Whether the tools that run commands could ever do so.
    pub(crate) fn offers_exec(&self) -> bool {
        self.defaults.exec != Mode::Deny
    }

    /// Which paths are served.
    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Lets a call go on, or says why not. May wait for a person.
    ///
    /// # Errors
    /// `permission_denied`, with the outcome `not_run`.
    pub(crate) async fn admit(&self, tool: &str, action: &Action, ctx: &CallContext) -> Result<(), Failure> {
        let _ = (tool, ctx);
        let mode = match action {
            Action::Nothing | Action::File { access: Access::Read, .. } => Mode::Allow,
            Action::File { .. } => self.defaults.write,
            Action::Run(_) => self.defaults.exec,
        };
        if mode == Mode::Allow {
            return Ok(());
        }
        Err(Failure::not_run(ErrorCode::PermissionDenied, "the owner of this foot does not allow this"))
    }

    /// Nothing but what tests do in memory.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Arc<Self> {
        let policy = Policy::new(&["/".into()], crate::policy::Floor::default()).unwrap();
        Self::new(Arc::new(policy), Defaults { write: Mode::Allow, exec: Mode::Allow })
    }
}
