//! Whether a call may do what it would do: deny, then allow, then ask.
//!
//! Every call comes through here, whatever its tool: between what it plans and what it does.

mod ask;
mod audit;
mod command;
mod decision;
mod desk;
mod pattern;
mod programs;
mod remembered;
mod rules;
mod shown;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use footbridge_shared::{ErrorCode, Outcome};

pub(crate) use ask::{Asker, Headless, Terminal};
pub(crate) use audit::{Audit, AuditLine, read_back};
pub(crate) use decision::{Decision, Judge, ReadRules, Reason, Verdict};
pub(crate) use desk::Desk;
pub(crate) use programs::Programs;
pub(crate) use remembered::{Answer, Literal, Remembered, What};
pub(crate) use rules::{List, Place, Rule, RuleText, Rules};
pub(crate) use shown::quoted;

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
    /// To have a local MCP server do something.
    Server(ServerAction),
}

/// What a local MCP server would be asked for. What it then does is known to it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAction {
    /// The server.
    pub(crate) server: String,
    /// Its tool, by its own name; or a method of MCP.
    pub(crate) what: String,
    /// What it is given: JSON.
    pub(crate) arguments: String,
    /// What the owner says of this server, where no rule speaks.
    pub(crate) permission: Mode,
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
    /// What it reads first of its input: to a shell that is a script.
    pub(crate) stdin: Option<String>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// It is refused; tools that could do nothing else are not offered.
    #[default]
    Deny,
    /// A person is asked.
    Ask,
    /// It goes on.
    Allow,
}

impl Mode {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Deny, Self::Ask, Self::Allow];

    /// As it stands in the settings.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| format!("`{}` is none of deny, ask, allow", crate::failure::shown(text)))
    }
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
    judge: Arc<Judge>,
    desk: Arc<Desk>,
}

/// Tools that write files.
const WRITE_TOOLS: [&str; 3] = ["file_write", "file_edit", "file_delete"];
/// Tools that run commands of the caller's.
const EXEC_TOOLS: [&str; 1] = ["exec_run"];

impl Permissions {
    /// Without any rule but those of the policy, and without anybody to ask.
    #[cfg(test)]
    pub(crate) fn new(policy: Arc<Policy>, defaults: Defaults) -> Arc<Self> {
        let judge = Judge { policy, defaults, rules: Arc::default(), programs: Programs::default(), ask_client: false };
        Self::with(judge, Arc::new(Desk::closed()))
    }

    /// With all that decides, and who is asked and keeps the books.
    pub(crate) fn with(judge: Judge, desk: Arc<Desk>) -> Arc<Self> {
        Arc::new(Self { judge: Arc::new(judge), desk })
    }

    /// Whether the tools that write files could ever do so: else they are not offered.
    pub(crate) fn offers_write(&self) -> bool {
        self.judge.defaults.write != Mode::Deny || self.judge.rules.could_allow(&WRITE_TOOLS, false)
    }

    /// Whether the tools that run commands could ever do so.
    pub(crate) fn offers_exec(&self) -> bool {
        self.judge.defaults.exec != Mode::Deny || self.judge.rules.could_allow(&EXEC_TOOLS, true)
    }

    /// Whether a tool that no mode lets go on could ever be let do something, by a rule.
    pub(crate) fn could_allow(&self, tool: &str) -> bool {
        self.judge.rules.could_allow_tool(tool)
    }

    /// Whether there is any rule by which a tool of a local server could be let do something.
    pub(crate) fn could_allow_some(&self) -> bool {
        self.judge.rules.could_allow_some()
    }

    /// Which paths are served.
    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.judge.policy
    }

    /// Lets a call go on, or says why not. May wait for a person.
    ///
    /// # Errors
    /// `permission_denied`, with the outcome `not_run`; `cancelled` if the call is stopped while a person is asked.
    pub(crate) async fn admit(&self, tool: &str, action: &Action, ctx: &CallContext) -> Result<(), Failure> {
        let remembered = self.desk.remembered(tool, action, &ctx.caller);
        let decision = match action {
            // No file is looked at: it takes no thread. And where no rule spoke there was nothing to decide, so nothing is
            // written down: a line costs more than such a call does.
            Action::Nothing => match self.judge.decide(tool, action, remembered) {
                Decision { verdict: Verdict::Allow, reason: Reason::Reading } => return Ok(()),
                decision => decision,
            },
            Action::Server(_) => self.judge.decide(tool, action, remembered),
            Action::File { access: Access::Read, .. } if self.judge.rules.count() == 0 => {
                self.judge.decide(tool, action, remembered)
            }
            // Rules look at where links lead.
            Action::File { .. } | Action::Run(_) => {
                let (judge, tool, action) = (self.judge.clone(), tool.to_owned(), action.clone());
                let decided = tokio::task::spawn_blocking(move || judge.decide(&tool, &action, remembered)).await;
                decided.map_err(|broken| {
                    Failure::new(ErrorCode::Internal, Outcome::NotRun, "the permissions broke off").cause(broken)
                })?
            }
        };
        self.desk.settle(tool, action, ctx, decision, self.judge.ask_client).await
    }

    /// Whether a rule, or a mode, speaks against something, without asking anybody.
    pub(crate) fn forbids(&self, tool: &str, action: &Action) -> bool {
        self.judge.decide(tool, action, None).verdict == Verdict::Deny
    }

    /// Keeps in the books that a call was refused before the rules were asked: for its path.
    pub(crate) fn refused(&self, tool: &str, failure: &Failure, ctx: &CallContext) {
        if failure.code == ErrorCode::PathDenied {
            self.desk.refused(tool, failure, ctx);
        }
    }

    /// Nothing but what tests do in memory.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Arc<Self> {
        let policy = Policy::new(&["/".into()], crate::policy::Floor::default()).unwrap();
        Self::new(Arc::new(policy), Defaults { write: Mode::Allow, exec: Mode::Allow })
    }
}

#[cfg(test)]
mod tests;
