//! Which paths a foot serves: what lies under its roots, but for the floor.
//!
//! A path is judged by where it really leads, links resolved, and what is opened afterwards is what was judged. Whether
//! something exists where the foot does not serve cannot be learnt from its answers.

mod floor;
mod open;
mod place;
mod resolve;
mod writing;

use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use footbridge_shared::ErrorCode;

pub use floor::FloorRule;
pub(crate) use floor::{Floor, covers};
use open::OpenError;
pub(crate) use place::{Found, Place};
use resolve::Real;

use crate::failure::{Failure, shown};

/// Why a policy cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// There is no root.
    #[error("a foot needs at least one root folder")]
    NoRoots,
    /// A root cannot be resolved.
    #[error("the root `{}` cannot be used: {cause}", path.display())]
    Root {
        /// As it was given.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A root lies in what is never served.
    #[error("the root `{}` lies in `{}` ({}), which is never served", path.display(), rule.label, rule.why)]
    RootInFloor {
        /// As it was given.
        path: PathBuf,
        /// The rule.
        rule: FloorRule,
    },
}

/// What a policy says of one path, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is served.
    Served {
        /// Where it really leads.
        real: PathBuf,
        /// The root it lies under.
        root: PathBuf,
        /// Whether there is something.
        exists: bool,
    },
    /// It lies under no root.
    Outside,
    /// It is never served.
    Floor(FloorRule),
    /// It leads nowhere: links in a circle, `..` below something that is not there, a NUL byte.
    Nowhere,
}

/// Rules that keep files from single tools.
pub(crate) trait ReadRules: Send + Sync + std::fmt::Debug {
    /// Those for one tool, as the file system stands now; `None` if there are none.
    fn for_tool(&self, tool: &str, roots: &[PathBuf]) -> Option<Arc<dyn Kept>>;
}

/// What is kept from one tool during one call.
pub(crate) trait Kept: Send + Sync + std::fmt::Debug {
    /// Whether a real path is. `granted` is the one that the call was admitted for.
    fn keeps(&self, real: &Path, granted: Option<&Path>) -> bool;
}

/// Roots and floor.
#[derive(Debug)]
pub(crate) struct Policy {
    roots: Arc<[PathBuf]>,
    floor: Floor,
    rules: Option<Arc<dyn ReadRules>>,
}

impl Policy {
    /// Resolves the roots. Relative paths in calls start at the first one.
    ///
    /// # Errors
    /// [`PolicyError`]: no root, one that is no folder, or one that lies in the floor.
    pub(crate) fn new(roots: &[PathBuf], floor: Floor) -> Result<Self, PolicyError> {
        let covered = floor.resolved();
        let mut real = Vec::new();
        for path in roots {
            let fail = |cause| PolicyError::Root { path: path.clone(), cause };
            let root = std::fs::canonicalize(path).map_err(fail)?;
            if !root.is_dir() {
                return Err(fail(std::io::ErrorKind::NotADirectory.into()));
            }
            let rule = covered.iter().find(|(_, covered)| floor::covers(covered, &root));
            if let Some(rule) = rule.map(|(rule, _)| (*rule).clone()).or_else(|| floor::by_name(&root)) {
                return Err(PolicyError::RootInFloor { path: path.clone(), rule });
            }
            if !real.contains(&root) {
                real.push(root);
            }
        }
        drop(covered);
        if real.is_empty() { Err(PolicyError::NoRoots) } else { Ok(Self { roots: real.into(), floor, rules: None }) }
    }

    /// The same, with rules that keep more from single tools.
    pub(crate) fn with_rules(self, rules: Arc<dyn ReadRules>) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// The roots, resolved. There is at least one.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The rules of the floor that cut something out of a root, as things are.
    pub(crate) fn cut_out(&self) -> Vec<FloorRule> {
        let mut rules: Vec<FloorRule> = self.gate().floor.iter().map(|(rule, _)| rule.clone()).collect();
        rules.dedup();
        rules.retain(FloorRule::exists);
        rules
    }

    /// All paths that are never served, whether or not they lie under a root, as things are.
    pub(crate) fn never_served(&self) -> Vec<PathBuf> {
        self.floor.resolved().into_iter().map(|(_, covered)| covered).collect()
    }

    /// The policy as the file system stands now. Make one for each call: links of the floor may change.
    pub(crate) fn gate(&self) -> Gate {
        // What lies outside of the roots is not served anyway; most roots are projects and keep no rule.
        self.gate_with(|covered| {
            self.roots.iter().any(|root| floor::covers(root, covered) || floor::covers(covered, root))
        })
    }

    /// The same for a tool that looks at more than the one path it was admitted for.
    pub(crate) fn gate_for(&self, tool: &str) -> Gate {
        let kept = self.rules.as_ref().and_then(|rules| rules.for_tool(tool, &self.roots));
        Gate { kept, ..self.gate() }
    }

    /// What it says of a path, and why. For people: it tells more of what lies outside than a call may learn.
    pub(crate) fn explain(&self, given: &str) -> Verdict {
        self.gate_with(|_| true).judge(given)
    }

    fn gate_with(&self, keep: impl Fn(&Path) -> bool) -> Gate {
        let floor = self.floor.resolved().into_iter().filter(|(_, covered)| keep(covered));
        let floor = floor.map(|(rule, covered)| (rule.clone(), covered)).collect();
        Gate { roots: self.roots.clone(), floor, kept: None, granted: None }
    }
}

/// A policy during one call. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    roots: Arc<[PathBuf]>,
    floor: Arc<[(FloorRule, PathBuf)]>,
    kept: Option<Arc<dyn Kept>>,
    granted: Option<Arc<Path>>,
}

impl Gate {
    /// The same, for a call that will be admitted for this real path or not run.
    pub(crate) fn granting(self, real: &Path) -> Self {
        Self { granted: Some(real.into()), ..self }
    }

    /// Resolves a path of a call to where it really leads, if that is served.
    ///
    /// # Errors
    /// `path_denied`, or `not_found` where the foot serves and there is nothing.
    pub(crate) fn resolve(&self, given: &str) -> Result<PathBuf, Failure> {
        match self.judge(given) {
            Verdict::Served { real, exists: true, .. } => Ok(real),
            // Whether it is there is not for everybody to know: the rules answer.
            Verdict::Served { real, .. } if self.kept.as_ref().is_some_and(|kept| kept.keeps(&real, None)) => Ok(real),
            Verdict::Served { .. } => Err(not_found(given)),
            Verdict::Outside | Verdict::Floor(_) | Verdict::Nowhere => Err(self.denied(given)),
        }
    }

    /// Whether a real path is served.
    pub(crate) fn serves(&self, real: &Path) -> bool {
        let granted = self.granted.as_deref();
        self.roots.iter().any(|root| real.starts_with(root))
            && self.rule_on(real).is_none()
            && (granted == Some(real) || !self.kept.as_ref().is_some_and(|kept| kept.keeps(real, granted)))
    }

    /// The root that a real path lies under: the closest one.
    pub(crate) fn root_of(&self, real: &Path) -> Option<&Path> {
        let above = self.roots.iter().filter(|root| real.starts_with(root));
        above.max_by_key(|root| root.components().count()).map(PathBuf::as_path)
    }

    /// Opens a regular file at a real path that is served.
    ///
    /// # Errors
    /// `path_denied`, `not_found`, `not_a_file`, or `tool_failed` when the operating system refuses.
    pub(crate) fn open_file(&self, real: &Path, given: &str) -> Result<File, Failure> {
        if !self.serves(real) {
            return Err(self.denied(given));
        }
        open::file(real).map_err(|error| self.open_failure(error, given, "a regular file"))
    }

    /// Opens a folder at a real path that is served.
    ///
    /// # Errors
    /// As [`Self::open_file`].
    pub(crate) fn open_folder(&self, real: &Path, given: &str) -> Result<OwnedFd, Failure> {
        if !self.serves(real) {
            return Err(self.denied(given));
        }
        open::folder(real).map_err(|error| self.open_failure(error, given, "a folder"))
    }

    /// Looks at what is at a real path that is served, whatever it is.
    ///
    /// # Errors
    /// `path_denied`, `not_found`, or `tool_failed` when the operating system refuses.
    pub(crate) fn look(&self, real: &Path, given: &str) -> Result<Metadata, Failure> {
        if !self.serves(real) {
            return Err(self.denied(given));
        }
        open::look(real).map_err(|error| self.open_failure(error, given, "there"))
    }

    /// A path of a call in full, with all links that are on its way.
    pub(crate) fn written(&self, given: &str) -> PathBuf {
        self.roots.first().map(|root| root.join(given)).unwrap_or_default()
    }

    /// A real path as a caller would write it: from the first root, else in full.
    pub(crate) fn show(&self, real: &Path) -> String {
        let short = self.roots.first().and_then(|root| real.strip_prefix(root).ok()).unwrap_or(real);
        if short.as_os_str().is_empty() { ".".to_owned() } else { short.to_string_lossy().into_owned() }
    }

    fn judge(&self, given: &str) -> Verdict {
        let Some(first) = self.roots.first().filter(|_| !given.contains('\0')) else {
            return Verdict::Nowhere;
        };
        let path = first.join(given);
        // `/etc/x/..` would tell whether `/etc/x` is there. To step out of a root, or of what leads to one, tells nothing.
        for prefix in resolve::stepped_out_of(&path) {
            match resolve::real(&prefix) {
                None => return Verdict::Nowhere,
                Some(Real { path, .. }) => {
                    if let Some(rule) = self.rule_on(&path) {
                        return Verdict::Floor(rule);
                    }
                    if !self.roots.iter().any(|root| path.starts_with(root) || root.starts_with(&path)) {
                        return Verdict::Outside;
                    }
                }
            }
        }
        let Some(Real { path: real, exists }) = resolve::real(&path) else {
            return Verdict::Nowhere;
        };
        let root = self.roots.iter().find(|root| real.starts_with(root));
        match (self.rule_on(&real), root) {
            (Some(rule), _) => Verdict::Floor(rule),
            (None, None) => Verdict::Outside,
            (None, Some(root)) => Verdict::Served { root: root.clone(), exists, real },
        }
    }

    fn rule_on(&self, real: &Path) -> Option<FloorRule> {
        let by_path = self.floor.iter().find(|(_, covered)| floor::covers(covered, real));
        by_path.map(|(rule, _)| rule.clone()).or_else(|| floor::by_name(real))
    }

    fn denied(&self, given: &str) -> Failure {
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        let hint = format!("this foot serves {}; relative paths start at the first", roots.join(", "));
        Failure::not_run(ErrorCode::PathDenied, format!("this foot does not serve `{}`", shown(given))).hint(hint)
    }

    fn open_failure(&self, error: OpenError, given: &str, wanted: &str) -> Failure {
        match error {
            OpenError::NotFound => not_found(given),
            OpenError::Moved | OpenError::Confined => self.denied(given),
            OpenError::WrongKind => not_a(given, wanted),
            OpenError::Io(cause) => {
                let message = format!("`{}` cannot be opened: {}", shown(given), cause.kind());
                Failure::completed(ErrorCode::ToolFailed, message).cause(cause)
            }
        }
    }
}

/// Where an absolute path really leads, also one to something that is not there yet.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    resolve::real(path).map(|real| real.path)
}

fn not_found(given: &str) -> Failure {
    Failure::completed(ErrorCode::NotFound, format!("there is nothing at `{}`", shown(given)))
}

fn not_a(given: &str, wanted: &str) -> Failure {
    Failure::completed(ErrorCode::NotAFile, format!("`{}` is not {wanted}", shown(given)))
}

#[cfg(test)]
mod tests;
