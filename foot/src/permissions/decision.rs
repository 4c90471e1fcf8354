//! What the rules say of an action, before anybody is asked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::command::Reading;
use super::programs::Programs;
use super::rules::{List, Place, Rules, Scene};
use super::{Access, Action, Command, CommandLine, Defaults, Mode, ServerAction};
use crate::policy::Policy;

/// What becomes of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Deny,
    Ask,
}

impl From<Mode> for Verdict {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Deny => Self::Deny,
            Mode::Ask => Self::Ask,
            Mode::Allow => Self::Allow,
        }
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is never served, whatever the rules say.
    Floor,
    /// A rule of the settings.
    Rule(Place),
    /// An answer that a person gave once and for all.
    Remembered(Verdict),
    /// A mode of the settings, by its key.
    Mode(&'static str, Mode),
    /// What the settings say of a local server.
    Server(String, Mode),
    /// Nothing speaks against what only reads.
    Reading,
    /// The owner wrote the command into the settings.
    Configured,
    /// It is nested so deeply, or so long, that it cannot be seen whether a rule speaks against it.
    TooMuch,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Floor => f.write_str("what is never served"),
            Self::Rule(place) => place.fmt(f),
            Self::Remembered(Verdict::Allow) => f.write_str("remembered: always yes"),
            Self::Remembered(_) => f.write_str("remembered: always no"),
            Self::Mode(key, mode) => write!(f, "{key}: {mode}"),
            Self::Server(server, mode) => write!(f, "servers.{server}.permission: {mode}"),
            Self::Reading => f.write_str("what only reads is allowed"),
            Self::Configured => f.write_str("the command stands in the settings"),
            Self::TooMuch => f.write_str("it is too long or too deeply nested to be judged"),
        }
    }
}

/// What is said of an action, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) reason: Reason,
}

impl Decision {
    fn new(verdict: Verdict, reason: Reason) -> Self {
        Self { verdict, reason }
    }

    fn by_rule(list: List, place: &Place) -> Self {
        let verdict = match list {
            List::Deny => Verdict::Deny,
            List::Allow => Verdict::Allow,
            List::Ask => Verdict::Ask,
        };
        Self::new(verdict, Reason::Rule(place.clone()))
    }

    fn by_mode(key: &'static str, mode: Mode) -> Self {
        Self::new(mode.into(), Reason::Mode(key, mode))
    }
}

/// All that decides.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(crate) policy: Arc<Policy>,
    pub(crate) defaults: Defaults,
    pub(crate) rules: Arc<Rules>,
    pub(crate) programs: Programs,
    /// Whether the owner may be asked through an MCP client of theirs.
    pub(crate) ask_client: bool,
}

impl Judge {
    /// Deny, then allow, then ask, then the mode. `remembered` is what a person said of this very action, once and for all.
    pub(crate) fn decide(&self, tool: &str, action: &Action, remembered: Option<Verdict>) -> Decision {
        match action {
            Action::Nothing => self.in_order(
                |list| self.rules.on_tool(list, tool).map(|rule| rule.place.clone()),
                remembered,
                || Decision::new(Verdict::Allow, Reason::Reading),
            ),
            Action::Server(ServerAction { server, permission, .. }) => self.in_order(
                |list| self.rules.on_tool(list, tool).map(|rule| rule.place.clone()),
                remembered,
                || Decision::new((*permission).into(), Reason::Server(server.clone(), *permission)),
            ),
            Action::File { access, path } => self.file(tool, *access, path, remembered),
            Action::Run(command) => self.command(tool, command, remembered),
        }
    }

    fn file(&self, tool: &str, access: Access, path: &Path, remembered: Option<Verdict>) -> Decision {
        // Who plans to read has asked the policy a moment ago; who changes something is looked at twice.
        if access != Access::Read && !self.policy.gate().serves(path) {
            return Decision::new(Verdict::Deny, Reason::Floor);
        }
        let scene = self.scene(path);
        self.in_order(
            |list| self.rules.on_path(list, tool, path, &scene).map(|rule| rule.place.clone()),
            remembered,
            || match access {
                Access::Read => Decision::new(Verdict::Allow, Reason::Reading),
                Access::Write | Access::Delete => Decision::by_mode("write", self.defaults.write),
            },
        )
    }

    fn command(&self, tool: &str, command: &Command, remembered: Option<Verdict>) -> Decision {
        if !self.policy.gate().serves(&command.cwd) {
            return Decision::new(Verdict::Deny, Reason::Floor);
        }
        let scene = self.scene(&command.cwd);
        let reading = self.read(command);
        if reading.too_much && self.rules.tells_commands_apart(List::Deny, tool) {
            return Decision::new(Verdict::Deny, Reason::TooMuch);
        }
        let env: Vec<String> = command.env.keys().cloned().collect();
        self.in_order(
            |list| match list {
                List::Allow => self.rules.allowing(tool, &reading, &env, &scene).map(|rule| rule.place.clone()),
                kept => self.rules.keeping(kept, tool, &reading, &scene).map(|rule| rule.place.clone()),
            },
            remembered,
            || match command.configured {
                _ if reading.too_much && self.rules.tells_commands_apart(List::Ask, tool) => {
                    Decision::new(Verdict::Ask, Reason::TooMuch)
                }
                true => Decision::new(Verdict::Allow, Reason::Configured),
                false => Decision::by_mode("exec", self.defaults.exec),
            },
        )
    }

    /// What a command would run.
    pub(crate) fn read(&self, command: &Command) -> Reading {
        let env: Vec<String> = command.env.keys().cloned().collect();
        let real_name = |program: &str| self.programs.real_name(program, &command.cwd);
        let reading = match &command.line {
            CommandLine::Argv(argv) => Reading::of_argv(argv, env, command.stdin.as_deref(), &real_name),
            CommandLine::Shell(script) => Reading::of_script(script, &env, command.stdin.as_deref(), &real_name),
        };
        // A caller may name a file in a variable, and the variable in the command.
        reading.naming(command.env.values().cloned())
    }

    fn in_order(
        &self,
        rule: impl Fn(List) -> Option<Place>,
        remembered: Option<Verdict>,
        otherwise: impl FnOnce() -> Decision,
    ) -> Decision {
        let said = |verdict| (remembered == Some(verdict)).then(|| Decision::new(verdict, Reason::Remembered(verdict)));
        let by = |list| rule(list).map(|place| Decision::by_rule(list, &place));
        by(List::Deny)
            .or_else(|| said(Verdict::Deny))
            .or_else(|| by(List::Allow))
            .or_else(|| said(Verdict::Allow))
            .or_else(|| by(List::Ask))
            .unwrap_or_else(otherwise)
    }

    fn scene<'a>(&'a self, cwd: &'a Path) -> Scene<'a> {
        Scene { roots: self.policy.roots(), programs: &self.programs, cwd }
    }
}

/// The rules that keep files from being read, bound to the roots. Walks and listings ask them of each entry.
#[derive(Debug)]
pub(crate) struct ReadRules {
    rules: Arc<Rules>,
}

impl ReadRules {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        Self { rules }
    }
}

impl crate::policy::ReadRules for ReadRules {
    fn for_tool(&self, tool: &str, roots: &[PathBuf]) -> Option<Arc<dyn crate::policy::Kept>> {
        Some(Arc::new(self.rules.kept_from(tool, roots)?))
    }
}
