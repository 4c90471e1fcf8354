//! `file_find`: files by name, size and age.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::path::Path;

use footbridge_shared::ErrorCode;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::text::Budget;
use super::walk::{self, DEFAULT_DEPTH, FileGlob, LeftOut, Walk};
use super::{CallContext, ToolOutput};
use crate::failure::{Failure, escaped, shown};
use crate::policy::Gate;

/// Entries unless told.
const DEFAULT_LIMIT: usize = 200;
/// Most entries.
const MAX_LIMIT: usize = 2000;

pub(super) struct FileFind;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SortBy {
    #[default]
    Name,
    Size,
    Modified,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default = "super::file_list::here")]
    path: String,
    path_glob: Option<String>,
    min_size_bytes: Option<u64>,
    max_size_bytes: Option<u64>,
    modified_after: Option<String>,
    modified_before: Option<String>,
    #[serde(default)]
    sort_by: SortBy,
    max_depth: Option<usize>,
    limit: Option<usize>,
    #[serde(default)]
    include_generated: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    path: String,
    size: u64,
    modified_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    entries: Vec<Entry>,
    match_count: usize,
    truncated: bool,
    skipped: LeftOut,
}

impl FileTool for FileFind {
    const NAME: &'static str = "file_find";
    const TITLE: &'static str = "Find files";
    const DESCRIPTION: &'static str = "Finds files on the developer's machine by name pattern, size and age, in a \
        folder and everything below it. Leaves out what .gitignore names and generated folders such as node_modules, \
        unless `includeGenerated` is true. Use it to learn where things are; use file_grep to search inside of files \
        and file_list for a single folder. Returns path, size in bytes and time of the last change of each file.";
    const PRIMARY: bool = false;
    type Arguments = Arguments;

    fn properties() -> Value {
        walk::properties(json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".",
                "description": "Folder to search. Relative paths start at the project root."},
            "minSizeBytes": {"type": "integer", "minimum": 0, "description": "Leave out smaller files."},
            "maxSizeBytes": {"type": "integer", "minimum": 0, "description": "Leave out larger files."},
            "modifiedAfter": {"type": "string", "maxLength": 64,
                "description": "Only files changed after this time: RFC 3339, or a date such as 2026-03-01 (UTC)."},
            "modifiedBefore": {"type": "string", "maxLength": 64,
                "description": "Only files changed before this time: RFC 3339, or a date (UTC)."},
            "sortBy": {"type": "string", "enum": ["name", "size", "modified"], "default": "name",
                "description": "Order: by path, largest first, or latest change first."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                "description": "Most files to return."},
        }))
    }

    fn required() -> &'static [&'static str] {
        &[]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn run(gate: &Gate, base: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let filter = Filter::new(&arguments)?;
        if !base.is_dir() {
            let message = format!("`{}` is not a folder", shown(&arguments.path));
            return Err(Failure::completed(ErrorCode::NotAFile, message));
        }
        let walk = Walk {
            base: base.to_owned(),
            max_depth: arguments.max_depth.unwrap_or(DEFAULT_DEPTH),
            include_generated: arguments.include_generated,
            files: FileGlob::new(arguments.path_glob.as_deref())?,
        };
        let mut best = Best::new(arguments.sort_by, arguments.limit.unwrap_or(DEFAULT_LIMIT));
        let skipped = walk.run(gate, ctx, |entry, left_out, _| {
            let Ok(metadata) = entry.metadata() else {
                left_out.unreadable += 1;
                return Ok(ControlFlow::Continue(()));
            };
            let modified_at = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
            let entry = Entry { path: gate.show(entry.path()), size: metadata.len(), modified_at };
            if filter.admits(&entry) {
                best.push(entry);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(answer(best, skipped))
    }
}

fn answer(best: Best, skipped: LeftOut) -> ToolOutput {
    let match_count = best.seen;
    let mut budget = Budget::new();
    let mut lines = Vec::new();
    let mut entries = Vec::new();
    for mut entry in best.finish() {
        entry.modified_at = entry.modified_at.and_then(|at| Timestamp::from_second(at.as_second()).ok());
        let at = entry.modified_at.map(|at| at.to_string()).unwrap_or_default();
        let line = format!("{}\t{at}\t{}", entry.size, escaped(&entry.path));
        if !budget.take(&line, &entry) {
            break;
        }
        lines.push(line);
        entries.push(entry);
    }
    let truncated = entries.len() < match_count || skipped.stopped.is_some();
    let mut notes = Vec::new();
    if entries.len() < match_count {
        notes.push(format!("{} of {match_count} files shown", entries.len()));
    } else if match_count == 0 {
        notes.push("no file matches".to_owned());
    }
    notes.extend(skipped.notes());
    ToolOutput::listing(lines, &notes).with_structured(&Found { entries, match_count, truncated, skipped })
}

/// Which files count.
struct Filter {
    size: std::ops::RangeInclusive<u64>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl Filter {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        Ok(Self {
            size: arguments.min_size_bytes.unwrap_or(0)..=arguments.max_size_bytes.unwrap_or(u64::MAX),
            after: arguments.modified_after.as_deref().map(|text| time("modifiedAfter", text)).transpose()?,
            before: arguments.modified_before.as_deref().map(|text| time("modifiedBefore", text)).transpose()?,
        })
    }

    fn admits(&self, entry: &Entry) -> bool {
        self.size.contains(&entry.size)
            && self.after.is_none_or(|after| entry.modified_at.is_some_and(|at| at > after))
            && self.before.is_none_or(|before| entry.modified_at.is_some_and(|at| at < before))
    }
}

fn time(argument: &str, text: &str) -> Result<Timestamp, Failure> {
    let date = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    text.parse::<Timestamp>().ok().or_else(date).ok_or_else(|| {
        Failure::invalid_arguments(format!("`/{argument}`: `{}` is no time", shown(text)))
            .hint("write 2026-03-01T09:30:00Z or 2026-03-01")
    })
}

/// The first entries of an order, without keeping all of them.
struct Best {
    sort_by: SortBy,
    limit: usize,
    seen: usize,
    entries: Vec<Entry>,
}

impl Best {
    const fn new(sort_by: SortBy, limit: usize) -> Self {
        Self { sort_by, limit, seen: 0, entries: Vec::new() }
    }

    fn push(&mut self, entry: Entry) {
        self.seen += 1;
        self.entries.push(entry);
        if self.entries.len() >= 2 * MAX_LIMIT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let sort_by = self.sort_by;
        self.entries.sort_by(|a, b| order(sort_by, a, b));
        self.entries.truncate(self.limit);
    }

    fn finish(mut self) -> Vec<Entry> {
        self.cut();
        self.entries
    }
}

fn order(sort_by: SortBy, a: &Entry, b: &Entry) -> Ordering {
    let by_key = match sort_by {
        SortBy::Name => Ordering::Equal,
        SortBy::Size => b.size.cmp(&a.size),
        SortBy::Modified => b.modified_at.cmp(&a.modified_at),
    };
    by_key.then_with(|| a.path.cmp(&b.path))
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::{Tree, structured, texts};
    use serde_json::{Value, json};
    use std::time::{Duration, UNIX_EPOCH};

    fn paths(answer: &Value) -> Vec<&str> {
        answer["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
    }

    fn find(tree: &Tree, arguments: &Value) -> Value {
        structured(&tree.run("file_find", arguments).unwrap())
    }

    #[test]
    fn a_large_tree_is_pruned_before_it_is_read() {
        let tree = Tree::new(&[(".gitignore", "logs/\n*.tmp\n"), ("src/main.rs", ""), ("src/x.tmp", ""), ("a.md", "")]);
        for folder in 0..200 {
            std::fs::create_dir_all(tree.path(&format!("node_modules/p{folder}"))).unwrap();
            std::fs::create_dir_all(tree.path(&format!("logs/{folder}"))).unwrap();
            for file in 0..50 {
                tree.write(&format!("node_modules/p{folder}/{file}.js"), "");
                tree.write(&format!("logs/{folder}/{file}.rs"), "");
            }
        }
        let answer = find(&tree, &json!({}));
        assert_eq!(paths(&answer), [".gitignore", "a.md", "src/main.rs"]);
        assert_eq!(answer["skipped"], json!({"generated": 1}));
        assert_eq!(answer["truncated"], false);

        let all = find(&tree, &json!({"includeGenerated": true, "pathGlob": "*.{js,rs}", "limit": 2000}));
        assert_eq!((&all["matchCount"], &all["truncated"]), (&json!(20_001), &json!(true)));
        let inside = find(&tree, &json!({"path": "node_modules/p7", "limit": 3}));
        assert_eq!(paths(&inside)[0], "node_modules/p7/0.js", "a generated folder that is named is searched");
        assert_eq!(inside["matchCount"], 50);
    }

    #[test]
    fn ignore_files_count_from_the_root_down_and_not_above_it() {
        let files = [
            (".gitignore", "*"),
            (".ignore", "*"),
            ("root/.gitignore", "*.tmp\n/src/made/\nlogs/\n"),
            ("root/src/.gitignore", "!kept.tmp\n"),
            ("root/src/in/a.rs", ""),
            ("root/src/in/a.tmp", ""),
            ("root/src/in/kept.tmp", ""),
            ("root/src/in/deep/er/b.rs", ""),
            ("root/src/made/c.rs", ""),
            ("root/logs/.gitignore", "*.gz\n"),
            ("root/logs/d.log", ""),
            ("root/logs/d.gz", ""),
        ];
        let tree = Tree::with_root("root", &files);
        let found = |arguments: Value| {
            let answer = find(&tree, &arguments);
            paths(&answer).into_iter().filter(|path| !path.ends_with(".gitignore")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(json!({})), "src/in/a.rs src/in/deep/er/b.rs src/in/kept.tmp");
        assert_eq!(found(json!({"path": "src"})), "src/in/a.rs src/in/deep/er/b.rs src/in/kept.tmp");
        assert_eq!(found(json!({"path": "src/in", "maxDepth": 1})), "src/in/a.rs src/in/kept.tmp");
        assert_eq!(find(&tree, &json!({"path": "src/in", "maxDepth": 1}))["skipped"], json!({"deeper": 1}));
        assert_eq!(found(json!({"path": "src/in", "pathGlob": "deep/**/*.rs"})), "src/in/deep/er/b.rs");
        assert_eq!(found(json!({"path": "logs"})), "logs/d.log", "an ignored folder that is named is searched");
        assert_eq!(found(json!({"path": "src/made"})), "src/made/c.rs");
        assert_eq!(
            found(json!({"path": "src/in", "includeGenerated": true, "pathGlob": "a.*"})),
            "src/in/a.rs src/in/a.tmp"
        );
    }

    #[test]
    fn size_age_and_order() {
        let tree = Tree::new(&[("a", "1"), ("b", "22"), ("c", "333"), ("d", "4444")]);
        for (name, day) in [("a", 4), ("b", 3), ("c", 2), ("d", 1)] {
            let at = UNIX_EPOCH + Duration::from_secs(86_400 * day + 60);
            std::fs::File::options().append(true).open(tree.path(name)).unwrap().set_modified(at).unwrap();
        }
        let order = |arguments: Value| paths(&find(&tree, &arguments)).join(" ");
        assert_eq!(order(json!({})), "a b c d");
        assert_eq!(order(json!({"sortBy": "size"})), "d c b a");
        assert_eq!(order(json!({"sortBy": "modified"})), "a b c d");
        assert_eq!(order(json!({"minSizeBytes": 2, "maxSizeBytes": 3})), "b c");
        assert_eq!(order(json!({"modifiedAfter": "1970-01-04"})), "a b");
        assert_eq!(order(json!({"modifiedBefore": "1970-01-03T00:00:00Z"})), "d");
        assert_eq!(order(json!({"sortBy": "size", "limit": 1})), "d");
        let failure = tree.run("file_find", &json!({"modifiedAfter": "yesterday"})).unwrap_err();
        assert!(failure.message.contains("modifiedAfter"), "{failure}");
        let text = texts(&tree.run("file_find", &json!({"limit": 2})).unwrap()).concat();
        assert_eq!(text, "1\t1970-01-05T00:01:00Z\ta\n2\t1970-01-04T00:01:00Z\tb\n[2 of 4 files shown]");
    }

    #[test]
    fn depth_links_and_unreadable_folders_cost_themselves() {
        let tree = Tree::new(&[("1/2/3/deep", ""), ("top", "")]);
        std::os::unix::fs::symlink("/etc", tree.path("etc")).unwrap();
        std::os::unix::fs::symlink("..", tree.path("1/up")).unwrap();
        std::os::unix::fs::symlink("top", tree.path("link")).unwrap();
        let shallow = find(&tree, &json!({"maxDepth": 2}));
        assert_eq!((paths(&shallow), &shallow["skipped"]), (vec!["top"], &json!({"deeper": 1})));
        assert_eq!(paths(&find(&tree, &json!({}))), ["1/2/3/deep", "top"], "links are not followed");

        let closed = tree.path("1/2");
        set_mode(&closed, 0o000);
        let answer = find(&tree, &json!({}));
        set_mode(&closed, 0o755);
        // Whoever may read everything (root) sees through it.
        if answer["matchCount"] == 1 {
            assert_eq!((paths(&answer), &answer["skipped"]), (vec!["top"], &json!({"unreadable": 1})));
        }
    }

    fn set_mode(path: &std::path::Path, mode: u32) {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn an_answer_fits_a_frame_whatever_the_names_are() {
        let tree = Tree::new(&[]);
        for n in 0..1500 {
            tree.write(&format!("{n:04}-{}", "\u{1}\"\u{4e16}".repeat(20)), "");
        }
        let output = tree.run("file_find", &json!({"limit": 2000})).unwrap();
        assert!(output.wire_bytes() < 60 * 1024, "{}", output.wire_bytes());
        let answer = structured(&output);
        assert_eq!((&answer["matchCount"], &answer["truncated"]), (&json!(1500), &json!(true)));
    }
}
