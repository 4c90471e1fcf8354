//! `file_list`: one folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use footbridge_shared::ErrorCode;
use rustix::fs::{Dir, FileType};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::text::Budget;
use super::{CallContext, ToolOutput};
use crate::failure::{Failure, escaped, shown};
use crate::policy::Gate;

/// Entries unless told.
const DEFAULT_LIMIT: usize = 500;
/// Most entries.
const MAX_LIMIT: usize = 2000;
/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// The default of `path`: the first root.
pub(super) fn here() -> String {
    ".".to_owned()
}

pub(super) struct FileList;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default = "here")]
    path: String,
    limit: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    path: String,
    entries: Vec<String>,
    count: usize,
    truncated: bool,
}

impl FileTool for FileList {
    const NAME: &'static str = "file_list";
    const TITLE: &'static str = "List a folder";
    const DESCRIPTION: &'static str = "Lists one folder on the developer's machine, sorted by name; names of folders \
        end with `/`. Start here to see what a project holds. For files below it use file_find.";
    const PRIMARY: bool = true;
    type Arguments = Arguments;

    fn properties() -> Value {
        json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".",
                "description": "The folder. Relative paths start at the project root."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                "description": "Most entries to return."},
        })
    }

    fn required() -> &'static [&'static str] {
        &[]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn run(gate: &Gate, real: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let names = read(gate, real, &arguments.path, ctx)?;
        let count = names.len();

        let mut budget = Budget::new();
        let mut entries = Vec::new();
        for name in names.into_iter().take(arguments.limit.unwrap_or(DEFAULT_LIMIT)) {
            if !budget.take(&escaped(&name), &name) {
                break;
            }
            entries.push(name);
        }
        let truncated = entries.len() < count || count == MAX_ENTRIES;
        let mut notes = Vec::new();
        if truncated {
            notes.push(format!("{} of {count} entries shown; file_find with a `pathGlob` narrows it", entries.len()));
        } else if count == 0 {
            notes.push("the folder is empty".to_owned());
        }
        let lines = entries.iter().map(|name| escaped(name)).collect();
        let listing = Listing { path: gate.show(real), entries, count, truncated };
        Ok(ToolOutput::listing(lines, &notes).with_structured(&listing))
    }
}

/// The names in a folder, sorted, without what is never served.
fn read(gate: &Gate, real: &Path, given: &str, ctx: &CallContext) -> Result<Vec<String>, Failure> {
    let failed = |error: rustix::io::Errno| {
        let message = format!("`{}` cannot be listed", shown(given));
        Failure::completed(ErrorCode::ToolFailed, message).cause(error)
    };
    let folder = Dir::new(gate.open_folder(real, given)?).map_err(failed)?;
    let mut names = Vec::new();
    for entry in folder {
        ctx.check()?;
        let entry = entry.map_err(failed)?;
        let bytes = entry.file_name().to_bytes();
        let path = real.join(OsStr::from_bytes(bytes));
        if matches!(bytes, b"." | b"..") || !gate.serves(&path) {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            // Not every file system tells; and a link is a folder where it leads to one that is served.
            FileType::Unknown | FileType::Symlink => {
                std::fs::canonicalize(&path).is_ok_and(|target| gate.serves(&target) && target.is_dir())
            }
            _ => false,
        };
        let mut name = String::from_utf8_lossy(bytes).into_owned();
        if is_folder {
            name.push('/');
        }
        names.push(name);
        if names.len() == MAX_ENTRIES {
            break;
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::{Tree, structured, texts};
    use footbridge_shared::ErrorCode;
    use serde_json::json;

    #[test]
    fn names_are_sorted_and_folders_are_marked() {
        let tree = Tree::new(&[("b/x", ""), ("a.txt", ""), (".env.example", ""), ("B", ""), ("we\nird", "")]);
        for (link, target) in [("to_b", "b"), ("to_etc", "/etc"), ("to_none", "none")] {
            std::os::unix::fs::symlink(target, tree.path(link)).unwrap();
        }
        let output = tree.run("file_list", &json!({})).unwrap();
        let names = [".env.example", "B", "a.txt", "b/", "to_b/", "to_etc", "to_none", "we\nird"];
        assert_eq!(structured(&output), json!({"path": ".", "entries": names, "count": 8, "truncated": false}));
        assert!(texts(&output).concat().ends_with("to_none\nwe\\u{a}ird"), "a name cannot pass for two");
    }

    #[test]
    fn a_long_folder_is_cut_and_says_so() {
        let tree = Tree::new(&[]);
        (0..700).for_each(|n| tree.write(&format!("{n:03}{}", "\u{7f}".repeat(60)), ""));
        let cut = structured(&tree.run("file_list", &json!({"limit": 2})).unwrap());
        assert_eq!((cut["entries"].as_array().unwrap().len(), &cut["count"]), (2, &json!(700)));
        let output = tree.run("file_list", &json!({"limit": 2000})).unwrap();
        assert!(output.wire_bytes() < 60 * 1024, "{}", output.wire_bytes());
        assert_eq!(structured(&output)["truncated"], true);
    }

    #[test]
    fn only_folders_that_are_served_are_listed() {
        let tree = Tree::new(&[("a", "")]);
        for (path, code) in [("a", ErrorCode::NotAFile), ("none", ErrorCode::NotFound), ("..", ErrorCode::PathDenied)] {
            assert_eq!(tree.run("file_list", &json!({"path": path})).unwrap_err().code, code, "{path}");
        }
    }
}
