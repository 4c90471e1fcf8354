//! What walks and listings do not get to see: rules about paths, bound to the roots as things are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::permissions::pattern::PathPattern;

/// Patterns of a rule, each with its detours.
#[derive(Debug)]
pub(super) struct Bound(pub(super) Vec<(PathPattern, Vec<(PathBuf, PathBuf)>)>);

impl Bound {
    fn keeps(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.0.iter().any(|(pattern, detours)| pattern.keeps(path, roots, detours))
    }

    fn is(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.0.iter().any(|(pattern, _)| pattern.is(path, roots))
    }
}

/// What one tool does not get to see during one call.
#[derive(Debug)]
pub(crate) struct KeptFromTool {
    pub(super) roots: Arc<[PathBuf]>,
    pub(super) deny: Vec<Bound>,
    pub(super) allow: Vec<Bound>,
    pub(super) ask: Vec<Bound>,
}

impl crate::policy::Kept for KeptFromTool {
    /// What a person would have to be asked about is kept in a walk: nobody can be asked about each file. But whoever
    /// was asked about a folder was asked about what lies in it.
    fn keeps(&self, real: &Path, granted: Option<&Path>) -> bool {
        let any = |rules: &[Bound], path| rules.iter().any(|rule| rule.keeps(path, &self.roots));
        if any(&self.deny, real) {
            return true;
        }
        let asks = |path| any(&self.ask, path) && !self.allow.iter().any(|rule| rule.is(path, &self.roots));
        asks(real) && !granted.is_some_and(|granted| real.starts_with(granted) && asks(granted))
    }
}
