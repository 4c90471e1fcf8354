//! The owner's rules: what they are about, and which of them speak of an action.

mod kept;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::command::{Part, Reading};
use super::pattern::{ArgvPattern, Fit, NamePattern, PathPattern, PatternError};
use super::programs::Programs;

use kept::{Bound, KeptFromTool};

/// Words of a command, and parts of them, that are looked at as paths.
const MAX_PATHS: usize = 16_000;
/// Folders from which a command's relative paths may start.
const MAX_STARTS: usize = 8;
/// Longest word that may be a path, in bytes: the kernel takes no longer one.
const MAX_PATH_BYTES: usize = 4_096;

/// Which of the three lists a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// What never happens.
    Deny,
    /// What happens without asking.
    Allow,
    /// What a person is asked about.
    Ask,
}

impl List {
    /// Its key in the settings.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::Ask => "ask",
        }
    }

    /// To allow something a rule must match for certain, to keep something it is enough that it may.
    pub(crate) const fn fit(self) -> Fit {
        match self {
            Self::Allow => Fit::Certain,
            Self::Deny | Self::Ask => Fit::Possible,
        }
    }
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) list: List,
    /// Counted from 1.
    pub(crate) nth: usize,
    /// Counted from 1.
    pub(crate) line: u64,
    pub(crate) file: Arc<Path>,
}

impl Place {
    /// The same for whoever called: which rule, not where the owner keeps it.
    pub(crate) fn short(&self) -> String {
        format!("permissions.{} rule {}", self.list.key(), self.nth)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, line {})", self.short(), self.file.display(), self.line)
    }
}

/// A rule as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RuleText {
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) paths: Option<Vec<String>>,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) shell: bool,
    pub(crate) env: Option<Vec<String>>,
}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    /// One of its patterns is none.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// It is about nothing.
    #[error("it says nothing: give tools, paths, argv, env or shell")]
    Empty,
    /// It is about files and commands at once.
    #[error("it is about files and about commands: make two rules of it")]
    TwoThings,
    /// It would allow whatever a caller runs, as long as it sets these names.
    #[error("`env` alone allows every command: say which with argv")]
    EnvAlone,
    /// A list in it has no entries, and so would match nothing.
    #[error("`{0}` has no entries")]
    NoEntries(&'static str),
}

/// One rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) place: Place,
    tools: Option<Vec<NamePattern>>,
    about: About,
    shell: bool,
    env: Vec<NamePattern>,
}

#[derive(Debug, Clone)]
enum About {
    /// Whatever the tools do.
    Anything,
    /// Files.
    Paths(Vec<PathPattern>),
    /// Commands, whatever they are.
    Commands,
    /// Commands of this kind.
    Argv(ArgvPattern),
}

impl Rule {
    /// Compiles a rule. `home` is what `~/` stands for.
    ///
    /// # Errors
    /// [`RuleError`].
    pub(crate) fn new(text: RuleText, place: Place, home: Option<&Path>) -> Result<Self, RuleError> {
        let RuleText { tools, paths, argv, shell, env } = text;
        for (key, list) in [("tools", &tools), ("paths", &paths), ("argv", &argv), ("env", &env)] {
            if list.as_ref().is_some_and(Vec::is_empty) {
                return Err(RuleError::NoEntries(key));
            }
        }
        if place.list == List::Allow && env.is_some() && argv.is_none() && !shell {
            return Err(RuleError::EnvAlone);
        }
        let about_commands = argv.is_some() || shell || env.is_some();
        let about = match (paths, argv) {
            (Some(_), _) if about_commands => return Err(RuleError::TwoThings),
            (Some(paths), _) => {
                About::Paths(paths.iter().map(|path| PathPattern::new(path, home)).collect::<Result<_, _>>()?)
            }
            (None, Some(argv)) => About::Argv(ArgvPattern::new(&argv, place.list.fit())?),
            (None, None) if about_commands => About::Commands,
            (None, None) if tools.is_none() => return Err(RuleError::Empty),
            (None, None) => About::Anything,
        };
        let names = |names: Vec<String>| names.iter().map(|name| NamePattern::new(name)).collect();
        Ok(Self { place, tools: tools.map(names), about, shell, env: env.map(names).unwrap_or_default() })
    }

    /// Whether it is about this tool.
    fn is_about(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|pattern| pattern.matches(tool)))
    }

    fn matches_path(&self, tool: &str, path: &Path, scene: &Scene<'_>) -> bool {
        if !self.is_about(tool) {
            return false;
        }
        match &self.about {
            About::Anything => true,
            About::Paths(paths) if self.place.list == List::Allow => paths.iter().any(|p| p.is(path, scene.roots)),
            About::Paths(paths) => paths.iter().any(|p| p.keeps(path, scene.roots, &p.detours(scene.roots))),
            About::Commands | About::Argv(_) => false,
        }
    }

    /// Whether it keeps any of these commands from running unseen.
    fn keeps_command(&self, tool: &str, reading: &Reading, scene: &Scene<'_>) -> bool {
        if !self.is_about(tool) {
            return false;
        }
        let env = |part: &Part| {
            self.env.is_empty() || part.env.iter().any(|name| self.env.iter().any(|pattern| pattern.matches(name)))
        };
        match &self.about {
            About::Anything => true,
            About::Paths(paths) => names_one(paths, reading, scene),
            // A script that sets names in a way that is not read may set any.
            About::Commands if self.env.is_empty() => reading.script,
            About::Commands => reading.parts.iter().any(|part| env(part) && (!self.shell || part.scripted)),
            About::Argv(pattern) => reading.parts.iter().any(|part| {
                (!self.shell || part.scripted)
                    && env(part)
                    && pattern.arguments_fit(part, Fit::Possible)
                    && scene.programs.may_be(pattern.program(), part, scene.cwd)
            }),
        }
    }

    /// Whether it allows one of the commands, for certain.
    fn allows_part(&self, tool: &str, part: &Part, scene: &Scene<'_>) -> bool {
        let env = part.env.iter().all(|name| self.env.iter().any(|pattern| pattern.matches(name)));
        if !self.is_about(tool) || !env || (part.scripted && !self.shell) {
            return false;
        }
        match &self.about {
            About::Anything => true,
            About::Paths(_) => false,
            About::Commands => self.shell || !part.scripted,
            About::Argv(pattern) => {
                pattern.arguments_fit(part, Fit::Certain) && scene.programs.is(pattern.program(), part, scene)
            }
        }
    }

    /// Whether it allows any script whatsoever.
    fn allows_any_script(&self, tool: &str, env: &[String]) -> bool {
        let named = env.iter().all(|name| self.env.iter().any(|pattern| pattern.matches(name)));
        self.is_about(tool) && named && self.shell && matches!(self.about, About::Commands)
    }

    /// Whether it could ever let one of these tools do something.
    fn could_allow(&self, tools: &[&str], commands: bool) -> bool {
        let about = match self.about {
            About::Anything => true,
            About::Paths(_) => !commands,
            About::Commands | About::Argv(_) => commands,
        };
        about && tools.iter().any(|tool| self.is_about(tool))
    }

    /// Its patterns, with where they lead as things are; `None` if it is about something else.
    fn bound(&self, tool: &str, roots: &[PathBuf]) -> Option<Bound> {
        match &self.about {
            About::Paths(paths) if self.is_about(tool) => {
                Some(Bound(paths.iter().map(|pattern| (pattern.clone(), pattern.detours(roots))).collect()))
            }
            _ => None,
        }
    }
}

/// Whether a command names a path that these patterns keep. One that finds its way to a file by itself is not seen.
fn names_one(patterns: &[PathPattern], reading: &Reading, scene: &Scene<'_>) -> bool {
    let patterns: Vec<_> = patterns.iter().map(|pattern| (pattern, pattern.detours(scene.roots))).collect();
    // `cd a; cat ../x`, `git -C a add x`: a folder that is named may be where the paths behind it start.
    let mut starts = vec![scene.cwd.to_owned()];
    let (mut seen, mut looked_at) = (HashSet::new(), 0);
    for path in reading.paths().filter(|path| path.len() <= MAX_PATH_BYTES) {
        if !seen.insert((path, starts.len())) {
            continue;
        }
        // It is not known what the rest names.
        looked_at += 1;
        if looked_at > MAX_PATHS {
            return true;
        }
        let reals: Vec<PathBuf> =
            starts.iter().filter_map(|start| crate::policy::real_path(&start.join(path))).collect();
        if reals.iter().any(|real| patterns.iter().any(|(pattern, detours)| pattern.keeps(real, scene.roots, detours)))
        {
            return true;
        }
        let room = MAX_STARTS.saturating_sub(starts.len());
        let more: Vec<PathBuf> = reals.into_iter().filter(|real| !starts.contains(real) && real.is_dir()).collect();
        starts.extend(more.into_iter().take(room));
    }
    false
}

/// What is around an action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) roots: &'a [PathBuf],
    pub(crate) programs: &'a Programs,
    /// The folder that a command starts in.
    pub(crate) cwd: &'a Path,
}

/// All rules.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    pub(crate) deny: Vec<Rule>,
    pub(crate) allow: Vec<Rule>,
    pub(crate) ask: Vec<Rule>,
}

impl Rules {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.deny.len() + self.allow.len() + self.ask.len()
    }

    /// Whether one of these tools could ever be let do something, by a rule.
    pub(crate) fn could_allow(&self, tools: &[&str], commands: bool) -> bool {
        self.allow.iter().chain(&self.ask).any(|rule| rule.could_allow(tools, commands))
    }

    /// Whether a tool of which nothing more is known could ever be let do something, by a rule.
    pub(crate) fn could_allow_tool(&self, tool: &str) -> bool {
        let mut rules = self.allow.iter().chain(&self.ask);
        rules.any(|rule| rule.is_about(tool) && matches!(rule.about, About::Anything))
    }

    /// Whether there is any rule by which such a tool could be.
    pub(crate) fn could_allow_some(&self) -> bool {
        self.allow.iter().chain(&self.ask).any(|rule| matches!(rule.about, About::Anything))
    }

    /// The first rule of a list that speaks of what a tool does with a path.
    pub(crate) fn on_path(&self, list: List, tool: &str, path: &Path, scene: &Scene<'_>) -> Option<&Rule> {
        self.list(list).iter().find(|rule| rule.matches_path(tool, path, scene))
    }

    /// The first rule of a list that speaks of a tool alone, which does nothing that is known.
    pub(crate) fn on_tool(&self, list: List, tool: &str) -> Option<&Rule> {
        self.list(list).iter().find(|rule| rule.is_about(tool) && matches!(rule.about, About::Anything))
    }

    /// The first rule that keeps a command from running unseen.
    pub(crate) fn keeping(&self, list: List, tool: &str, reading: &Reading, scene: &Scene<'_>) -> Option<&Rule> {
        self.list(list).iter().find(|rule| rule.keeps_command(tool, reading, scene))
    }

    /// The rule that allows a command: each of its parts has to have one, and the first one's is named.
    pub(crate) fn allowing(&self, tool: &str, reading: &Reading, env: &[String], scene: &Scene<'_>) -> Option<&Rule> {
        if let Some(rule) = self.allow.iter().find(|rule| reading.script && rule.allows_any_script(tool, env)) {
            let around = reading.parts.iter().filter(|part| part.sure && !part.scripted);
            let mut around = around.map(|part| self.allow.iter().any(|rule| rule.allows_part(tool, part, scene)));
            return around.all(|allowed| allowed).then_some(rule);
        }
        if reading.unclear || reading.too_much {
            return None;
        }
        let mut first = None;
        for part in reading.parts.iter().filter(|part| part.sure) {
            let rule = self.allow.iter().find(|rule| rule.allows_part(tool, part, scene))?;
            first.get_or_insert(rule);
        }
        first
    }

    /// What a tool does not get to see; `None` if there is no such rule.
    pub(crate) fn kept_from(&self, tool: &str, roots: &[PathBuf]) -> Option<KeptFromTool> {
        let bound =
            |rules: &[Rule]| -> Vec<Bound> { rules.iter().filter_map(|rule| rule.bound(tool, roots)).collect() };
        let (deny, ask) = (bound(&self.deny), bound(&self.ask));
        let allow = if ask.is_empty() { Vec::new() } else { bound(&self.allow) };
        let some = !(deny.is_empty() && ask.is_empty());
        some.then(|| KeptFromTool { roots: roots.into(), deny, allow, ask })
    }

    /// Whether any rule of a list looks into the commands of a tool: at what they run, or which paths they name.
    pub(crate) fn tells_commands_apart(&self, list: List, tool: &str) -> bool {
        self.list(list).iter().any(|rule| rule.is_about(tool) && !matches!(rule.about, About::Anything))
    }

    fn list(&self, list: List) -> &[Rule] {
        match list {
            List::Deny => &self.deny,
            List::Allow => &self.allow,
            List::Ask => &self.ask,
        }
    }
}
