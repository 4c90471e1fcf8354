//! Walking a tree: ignored and generated folders are pruned before they are read, one bad folder costs itself.
//!
//! Ignore files count from the root down: what lies above it belongs to somebody else, who may ignore everything.
//!
//! Walks see names and sizes; what is inside of files is only read through the policy, which opens no links. Names and
//! sizes are read by path: whoever may write in a root, and puts a link in place of a folder while it is walked, can make
//! a walk tell names, sizes and times from where that leads. They could read all of that themselves.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use serde::Serialize;
use serde_json::{Value, json};

use super::CallContext;
use crate::failure::Failure;
use crate::policy::Gate;

/// How deep a walk goes unless it is told.
pub(super) const DEFAULT_DEPTH: usize = 12;
/// How deep a walk may be told to go.
const MAX_DEPTH: usize = 64;
/// Entries that one walk looks at.
const MAX_ENTRIES: u64 = 500_000;
/// How long one walk takes before it answers with what it has.
const MAX_TIME: Duration = Duration::from_secs(20);
/// Entries between two signs of life.
const PROGRESS_EVERY: u64 = 512;

/// Folders that tools make and nobody edits.
const GENERATED: [&str; 22] = [
    ".git",
    ".hg",
    ".jj",
    ".svn",
    "node_modules",
    "bower_components",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".parcel-cache",
    ".turbo",
    ".terraform",
    ".cache",
];

/// What to walk over.
#[derive(Debug)]
pub(super) struct Walk {
    /// Where to start: a real path that is served.
    pub(super) base: PathBuf,
    /// How deep to go.
    pub(super) max_depth: usize,
    /// Also what is ignored or generated.
    pub(super) include_generated: bool,
    /// Which files.
    pub(super) files: FileGlob,
}

/// JSON Schema of a tool's own arguments, and of those that every tool with a walk has.
pub(super) fn properties(mut own: Value) -> Value {
    let walks = json!({
        "pathGlob": {"type": "string", "minLength": 1, "maxLength": 1024,
            "description": "Only files such as `*.rs`, `src/**/*.ts` or `*.{yml,yaml}`. Without a `/` it matches file \
                names, else paths from `path` on."},
        "maxDepth": {"type": "integer", "minimum": 1, "maximum": MAX_DEPTH, "default": DEFAULT_DEPTH,
            "description": "How many levels of folders to go down."},
        "includeGenerated": {"type": "boolean", "default": false,
            "description": "Also search ignored and generated folders."},
    });
    if let (Value::Object(own), Value::Object(walks)) = (&mut own, walks) {
        own.extend(walks);
    }
    own
}

/// What a walk left out.
#[derive(Debug, Default, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeftOut {
    /// Generated folders that were not entered. Those that `.gitignore` names are not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) generated: u64,
    /// Folders below the deepest level.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) deeper: u64,
    /// Files and folders that cannot be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) unreadable: u64,
    /// The walk ended before the tree did, for time or for the number of entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl LeftOut {
    /// The same in words, for the end of a text; nothing if nothing was left out.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (count, what) in [
            (self.generated, "generated folders skipped (includeGenerated reads them)"),
            (self.deeper, "folders below maxDepth not entered"),
            (self.unreadable, "entries could not be read"),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        if let Some(limit) = self.stopped {
            notes.push(format!("stopped early: {limit}; narrow `path` or `pathGlob`"));
        }
        notes
    }
}

/// The limits of one walk, and its signs of life.
pub(super) struct Pace<'a> {
    ctx: &'a CallContext,
    started: Instant,
    seen: u64,
}

impl<'a> Pace<'a> {
    pub(super) fn new(ctx: &'a CallContext) -> Self {
        Self { ctx, started: Instant::now(), seen: 0 }
    }

    /// One more entry, or one more stretch of a large file. Says which limit is reached, if one is.
    pub(super) fn step(&mut self) -> Result<Option<&'static str>, Failure> {
        self.ctx.check()?;
        self.seen += 1;
        if self.seen.is_multiple_of(PROGRESS_EVERY) {
            #[expect(clippy::cast_precision_loss, reason = "a count for people")]
            self.ctx.progress(self.seen as f64, None, "searching");
        }
        if self.seen > MAX_ENTRIES {
            return Ok(Some("too many entries"));
        }
        Ok((self.started.elapsed() > MAX_TIME).then_some("it took too long"))
    }
}

impl Walk {
    /// Visits the regular files that match, by name; links are neither followed nor visited.
    pub(super) fn run(
        &self,
        gate: &Gate,
        ctx: &CallContext,
        mut visit: impl FnMut(&DirEntry, &mut LeftOut, &mut Pace<'_>) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<LeftOut, Failure> {
        let mut left_out = LeftOut::default();
        let mut pace = Pace::new(ctx);
        let root = gate.root_of(&self.base).filter(|_| !self.include_generated).unwrap_or(&self.base);
        let seen = Arc::new(Seen { base: AtomicBool::new(root == self.base), ..Seen::default() });
        let from_root = self.builder(root, gate.clone(), seen.clone()).build();
        // Whoever names a folder that is ignored means it: it is searched by its own ignore files.
        let named = std::iter::once_with(|| {
            let missed = !seen.base.load(Ordering::Relaxed);
            missed.then(|| self.builder(&self.base, gate.clone(), seen.clone()).build())
        });
        for entry in from_root.chain(named.flatten().flatten()) {
            left_out.stopped = pace.step()?;
            if left_out.stopped.is_some() {
                break;
            }
            let Ok(entry) = entry else {
                left_out.unreadable += 1;
                continue;
            };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if is_file
                && self.files.matches(&self.base, entry.path())
                && visit(&entry, &mut left_out, &mut pace)?.is_break()
            {
                break;
            }
        }
        left_out.generated = seen.generated.load(Ordering::Relaxed);
        left_out.deeper = seen.deeper.load(Ordering::Relaxed);
        Ok(left_out)
    }

    /// Walks from `start` straight to the base, for the ignore files on the way, and through all that lies in it.
    fn builder(&self, start: &Path, gate: Gate, seen: Arc<Seen>) -> WalkBuilder {
        let (all, max_depth, base) = (self.include_generated, self.max_depth, self.base.clone());
        let above = base.strip_prefix(start).map_or(0, |way| way.components().count());
        let mut builder = WalkBuilder::new(start);
        builder
            .standard_filters(false)
            .git_ignore(!all)
            .git_exclude(!all)
            .ignore(!all)
            .require_git(false)
            .follow_links(false)
            .max_depth(Some(above + max_depth))
            .sort_by_file_name(std::ffi::OsStr::cmp)
            // What `start` itself is, is not asked.
            .filter_entry(move |entry| {
                if entry.depth() <= above {
                    seen.base.fetch_or(entry.path() == base, Ordering::Relaxed);
                    return base.starts_with(entry.path());
                }
                if !gate.serves(entry.path()) {
                    return false;
                }
                if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                    return true;
                }
                if !all && is_generated(entry) {
                    seen.generated.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                if entry.depth() == above + max_depth {
                    seen.deeper.fetch_add(1, Ordering::Relaxed);
                }
                true
            });
        builder
    }
}

/// What comes by while a walk decides where to go.
#[derive(Default)]
struct Seen {
    generated: AtomicU64,
    deeper: AtomicU64,
    /// The folder where the walk is to start.
    base: AtomicBool,
}

fn is_generated(entry: &DirEntry) -> bool {
    let Some(name) = entry.file_name().to_str() else { return false };
    // `target` is a word that people use, too: it counts where a build tool left its mark.
    GENERATED.contains(&name) || (name == "target" && entry.path().join("CACHEDIR.TAG").exists())
}

/// Which files a walk is about.
#[derive(Debug)]
pub(super) struct FileGlob(Option<(GlobMatcher, bool)>);

impl FileGlob {
    /// Compiles a glob. Without a `/` it is about names, else about paths from where the walk starts.
    pub(super) fn new(glob: Option<&str>) -> Result<Self, Failure> {
        let Some(glob) = glob else { return Ok(Self(None)) };
        let compiled = GlobBuilder::new(glob.strip_prefix("./").unwrap_or(glob)).literal_separator(true).build();
        let glob_error = |error: globset::Error| {
            Failure::invalid_arguments(format!("`/pathGlob`: {}", error.kind()))
                .hint("for instance `*.rs`, `src/**/*.ts`, `*.{yml,yaml}`")
        };
        let matcher = compiled.map_err(glob_error)?.compile_matcher();
        Ok(Self(Some((matcher, glob.contains('/')))))
    }

    fn matches(&self, base: &Path, path: &Path) -> bool {
        match &self.0 {
            None => true,
            Some((glob, true)) => glob.is_match(path.strip_prefix(base).unwrap_or(path)),
            Some((glob, false)) => path.file_name().is_some_and(|name| glob.is_match(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_without_a_slash_is_about_names() {
        let matches = |glob, path| FileGlob::new(Some(glob)).unwrap().matches(Path::new("/r"), Path::new(path));
        assert!(matches("*.rs", "/r/a/b.rs") && !matches("*.rs", "/r/a/b.rsx"));
        assert!(matches("src/**/*.rs", "/r/src/a/b.rs") && matches("src/**/*.rs", "/r/src/b.rs"));
        assert!(!matches("src/*.rs", "/r/src/a/b.rs"), "`*` does not cross folders");
        assert!(matches("./a/*.{yml,yaml}", "/r/a/x.yaml"));
        assert!(FileGlob::new(Some("a[")).unwrap_err().message.contains("pathGlob"));
    }
}
