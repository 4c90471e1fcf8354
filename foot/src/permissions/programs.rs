//! Which file a program's name means, so that a rule for `git` is about that one and no other of its name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::command::{Part, file_name};
use super::pattern::{Program, fold};
use super::rules::Scene;
use crate::exec::Inherited;

/// What a shell does by itself. In a script these names are no files.
const BUILT_IN: [&str; 16] = [
    ":", "[", "cd", "echo", "exit", "export", "false", "printf", "pwd", "read", "set", "shift", "test", "true",
    "umask", "wait",
];

/// Where programs are looked for: just as when they are started.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    inherited: Inherited,
}

impl Default for Programs {
    /// In the folders of the system.
    fn default() -> Self {
        Self::new(None, &[])
    }
}

impl Programs {
    /// By a search path, as far as commands get to see it: what is relative in it, or lies in a root, is left out.
    pub(crate) fn new(search_path: Option<OsString>, roots: &[PathBuf]) -> Self {
        let variables = search_path.map(|path| ("PATH".into(), path)).into_iter().collect();
        Self { inherited: Inherited::new(variables, roots) }
    }

    /// The file that would be run.
    fn find(&self, program: &str, cwd: &Path) -> Option<PathBuf> {
        self.inherited.program(program, cwd).ok()
    }

    /// What its links lead to.
    fn real(&self, program: &str, cwd: &Path) -> Option<PathBuf> {
        self.find(program, cwd).and_then(|path| std::fs::canonicalize(path).ok())
    }

    /// The name of the file that its links lead to.
    pub(crate) fn real_name(&self, program: &str, cwd: &Path) -> Option<String> {
        let real = self.real(program, cwd)?;
        Some(real.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether a command may run the program of a rule that keeps something from happening: by its name, or by what its
    /// links lead to. Case does not count.
    pub(super) fn may_be(&self, wanted: &Program, part: &Part, cwd: &Path) -> bool {
        let Some(given) = part.words.first().and_then(|word| word.text()) else {
            // Nobody knows, and to assume the worst would be to forbid every script.
            return *wanted == Program::Any;
        };
        match wanted {
            Program::Any => true,
            Program::Named(pattern) => {
                let pattern = super::pattern::NamePattern::new(&fold(pattern.text()));
                let real = self.real_name(given, cwd);
                pattern.matches(&fold(file_name(given))) || real.is_some_and(|real| pattern.matches(&fold(&real)))
            }
            Program::At(pattern) => {
                let pattern_folded = super::pattern::NamePattern::new(&fold(pattern.text()));
                let paths = [self.find(given, cwd), self.real(given, cwd)];
                let same = pattern.is_literal().then(|| std::fs::canonicalize(pattern.text()).ok()).flatten();
                paths
                    .into_iter()
                    .flatten()
                    .any(|path| pattern_folded.matches(&fold(&path.to_string_lossy())) || same.as_ref() == Some(&path))
            }
        }
    }

    /// Whether what a program's path means may be another program by the time it runs: a script may be in another folder
    /// then, and a link in a root may be anybody's.
    fn may_change(&self, given: &str, part: &Part, scene: &Scene<'_>) -> bool {
        if !given.contains('/') {
            return false;
        }
        if part.scripted && !given.starts_with('/') {
            return true;
        }
        let is_served = |path: &Path| scene.roots.iter().any(|root| path.starts_with(root));
        let written = scene.cwd.join(given);
        let Ok(real) = std::fs::canonicalize(&written) else { return true };
        // A program of a root that the owner named is there to be changed.
        let through_a_root =
            || written.ancestors().any(|above| above.canonicalize().is_ok_and(|real| is_served(&real)));
        !is_served(&real) && through_a_root()
    }

    /// Whether a command runs just the program of a rule that allows it.
    pub(super) fn is(&self, wanted: &Program, part: &Part, scene: &Scene<'_>) -> bool {
        let Some(given) = part.words.first().and_then(|word| word.text()) else { return false };
        if *wanted != Program::Any && self.may_change(given, part, scene) {
            return false;
        }
        match wanted {
            Program::Any => true,
            Program::Named(pattern) => {
                let name = file_name(given);
                if !pattern.matches(name) {
                    return false;
                }
                if part.scripted && BUILT_IN.contains(&given) {
                    return true;
                }
                // The one that the search path has, and not one that somebody put into a folder of the project.
                let meant = self.real(name, scene.cwd);
                let is_served = |path: &PathBuf| scene.roots.iter().any(|root| path.starts_with(root));
                let found = self.find(name, scene.cwd);
                meant.is_some_and(|meant| {
                    !is_served(&meant)
                        && !found.as_ref().is_some_and(is_served)
                        && self.real(given, scene.cwd).as_ref() == Some(&meant)
                })
            }
            Program::At(pattern) => {
                let Some(found) = self.find(given, scene.cwd) else { return false };
                let Some(real) = std::fs::canonicalize(&found).ok() else { return false };
                let text = |path: &Path| path.to_str().map(str::to_owned);
                if !pattern.is_literal() {
                    return text(&real).is_some_and(|real| pattern.matches(&real));
                }
                // Programs that are many in one have one file and many names.
                let same_name = file_name(pattern.text()) == file_name(given);
                same_name && std::fs::canonicalize(pattern.text()).ok() == Some(real)
            }
        }
    }
}
