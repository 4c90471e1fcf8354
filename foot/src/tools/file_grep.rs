//! `file_grep`: lines that match a regular expression.

mod collect;

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::walk::{self, DEFAULT_DEPTH, FileGlob, LeftOut, Pace, Walk, is_zero};
use super::{CallContext, ToolOutput};
use crate::failure::Failure;
use crate::policy::Gate;
use collect::{Collector, Match};

/// Matches unless told.
const DEFAULT_LIMIT: usize = 200;
/// Most matches.
const MAX_LIMIT: usize = 1000;
/// Most lines of context on either side.
const MAX_CONTEXT: usize = 20;
/// Files that a walk skips for their size, in bytes. A file that is named itself may be larger.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// Longest line that is searched, in bytes.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// Largest compiled expression, in bytes.
const MAX_REGEX_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct FileGrep;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    pattern: String,
    #[serde(default = "super::file_list::here")]
    path: String,
    path_glob: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    #[serde(default)]
    context_before: usize,
    #[serde(default)]
    context_after: usize,
    max_depth: Option<usize>,
    limit: Option<usize>,
    #[serde(default)]
    include_generated: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found<'a> {
    matches: &'a [Match],
    match_count: usize,
    files_searched: u64,
    truncated: bool,
    skipped: Skipped,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Skipped {
    #[serde(flatten)]
    walk: LeftOut,
    /// Files over the size limit.
    #[serde(skip_serializing_if = "is_zero")]
    large: u64,
    /// Files with NUL bytes.
    #[serde(skip_serializing_if = "is_zero")]
    binary: u64,
}

impl FileTool for FileGrep {
    const NAME: &'static str = "file_grep";
    const TITLE: &'static str = "Search inside of files";
    const DESCRIPTION: &'static str = "Searches the lines of files on the developer's machine with a regular \
        expression (Rust syntax: no look-around, no back references), in a folder and everything below it or in one \
        file. Leaves out what .gitignore names, generated folders, binary files, and files over 2 MiB unless one is \
        named as `path`. Returns path, line number and line of each match, with lines of context if asked for.";
    const PRIMARY: bool = true;
    type Arguments = Arguments;

    fn properties() -> Value {
        walk::properties(json!({
            "pattern": {"type": "string", "minLength": 1, "maxLength": 4096,
                "description": "Regular expression, matched within a line. Escape what is meant literally: `foo\\(`."},
            "path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".",
                "description": "Folder or file to search. Relative paths start at the project root."},
            "caseInsensitive": {"type": "boolean", "default": false, "description": "Match in any case."},
            "contextBefore": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "default": 0,
                "description": "Lines to show before each match."},
            "contextAfter": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "default": 0,
                "description": "Lines to show after each match."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                "description": "Most matches to return."},
        }))
    }

    fn required() -> &'static [&'static str] {
        &["pattern"]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn run(gate: &Gate, base: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let mut search = Search::new(&arguments)?;
        let files = FileGlob::new(arguments.path_glob.as_deref())?;
        if base.is_dir() {
            let walk = Walk {
                base: base.to_owned(),
                max_depth: arguments.max_depth.unwrap_or(DEFAULT_DEPTH),
                include_generated: arguments.include_generated,
                files,
            };
            search.skipped.walk = walk.run(gate, ctx, |entry, left_out, pace| {
                let size = entry.metadata().map_or(0, |metadata| metadata.len());
                if size > MAX_FILE_BYTES {
                    search.skipped.large += 1;
                    return Ok(ControlFlow::Continue(()));
                }
                // Gone or closed to us since it was listed: that costs this file.
                let Ok(file) = gate.open_file(entry.path(), "") else {
                    left_out.unreadable += 1;
                    return Ok(ControlFlow::Continue(()));
                };
                search.file(gate, entry.path(), file, left_out, pace)?;
                Ok(if search.found.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        } else {
            let file = gate.open_file(base, &arguments.path)?;
            let mut left_out = LeftOut::default();
            search.file(gate, base, file, &mut left_out, &mut Pace::new(ctx))?;
            search.skipped.walk = left_out;
        }
        Ok(search.answer())
    }
}

/// One search under way.
struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    found: Collector,
    files: u64,
    skipped: Skipped,
}

impl Search {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(arguments.case_insensitive)
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .build(&arguments.pattern)
            .map_err(|error| Failure::invalid_arguments(format!("`/pattern`: {error}")))?;
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(arguments.context_before)
            .after_context(arguments.context_after)
            .heap_limit(Some(MAX_LINE_BYTES))
            .build();
        let found = Collector::new(arguments.limit.unwrap_or(DEFAULT_LIMIT));
        Ok(Self { matcher, searcher, found, files: 0, skipped: Skipped::default() })
    }

    fn file(
        &mut self,
        gate: &Gate,
        path: &Path,
        file: File,
        left_out: &mut LeftOut,
        pace: &mut Pace<'_>,
    ) -> Result<(), Failure> {
        self.files += 1;
        let mut stopped = Ok(None);
        let reader = Paced { file, pace, stopped: &mut stopped };
        let before = self.found.begin(gate.show(path));
        let searched = self.searcher.search_reader(&self.matcher, reader, self.found.sink(&self.matcher));
        left_out.stopped = stopped?;
        if self.found.was_binary() {
            self.skipped.binary += 1;
            self.found.undo(before);
        } else if searched.is_err() && left_out.stopped.is_none() {
            left_out.unreadable += 1;
        }
        Ok(())
    }

    fn answer(self) -> ToolOutput {
        let Self { found, files, skipped, .. } = self;
        let truncated = found.is_full() || skipped.walk.stopped.is_some();
        let mut notes = Vec::new();
        if found.is_full() {
            notes.push(format!("the first {} matches shown; narrow the search for others", found.matches().len()));
        } else if found.matches().is_empty() {
            notes.push(format!("no match in {files} files"));
        }
        notes.extend(skipped.walk.notes());
        for (count, what) in [(skipped.large, "files over 2 MiB skipped"), (skipped.binary, "binary files skipped")] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        let lines = found.matches().iter().flat_map(Match::lines).collect();
        let answer = Found {
            match_count: found.matches().len(),
            matches: found.matches(),
            files_searched: files,
            truncated,
            skipped,
        };
        ToolOutput::listing(lines, &notes).with_structured(&answer)
    }
}

/// A file whose reading can be stopped.
struct Paced<'a, 'b> {
    file: File,
    pace: &'a mut Pace<'b>,
    stopped: &'a mut Result<Option<&'static str>, Failure>,
}

impl Read for Paced<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        *self.stopped = self.pace.step();
        match self.stopped {
            Ok(None) => self.file.read(buffer),
            _ => Err(io::Error::other("stopped")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::{Tree, structured, texts};
    use footbridge_shared::ErrorCode;
    use serde_json::{Value, json};

    fn grep(tree: &Tree, arguments: &Value) -> Value {
        structured(&tree.run("file_grep", arguments).unwrap())
    }

    fn places(answer: &Value) -> Vec<(String, u64)> {
        let matches = answer["matches"].as_array().unwrap();
        matches.iter().map(|m| (m["path"].as_str().unwrap().to_owned(), m["lineNumber"].as_u64().unwrap())).collect()
    }

    #[test]
    fn matches_come_with_place_and_context() {
        let tree = Tree::new(&[("a.rs", "one\ntwo TODO\nthree\nfour TODO\r\nfive\nsix\n"), ("b.md", "todo\n")]);
        let arguments = json!({"pattern": r"\bTODO$", "contextBefore": 2, "contextAfter": 1});
        let output =
            tree.run("file_grep", &json!({"pattern": r"TODO", "contextBefore": 2, "contextAfter": 1})).unwrap();
        let expected = json!([
            {"path": "a.rs", "lineNumber": 2, "line": "two TODO", "before": ["one"], "after": ["three"]},
            {"path": "a.rs", "lineNumber": 4, "line": "four TODO", "after": ["five"]}]);
        assert_eq!(structured(&output)["matches"], expected);
        let text = "a.rs-1- one\na.rs:2: two TODO\na.rs-3- three\na.rs:4: four TODO\na.rs-5- five";
        assert_eq!(texts(&output), [text]);
        assert_eq!(places(&grep(&tree, &arguments)), [("a.rs".to_owned(), 2)], "`$` is the end of a line");
        let any_case = grep(&tree, &json!({"pattern": "todo", "caseInsensitive": true}));
        assert_eq!(places(&any_case).len(), 3);
        assert_eq!(places(&grep(&tree, &json!({"pattern": "todo", "pathGlob": "*.rs"}))), []);
        assert_eq!(places(&grep(&tree, &json!({"pattern": "TODO", "path": "a.rs"}))).len(), 2);
    }

    #[test]
    fn a_long_path_is_told_whole_in_every_text() {
        let path = format!("{0}/{0}/{0}\u{1b}.txt", "long".repeat(50));
        let tree = Tree::new(&[(&path, "needle")]);
        let told = path.replace('\u{1b}', "\\u{1b}");
        for (tool, arguments) in [
            ("file_grep", json!({"pattern": "needle"})),
            ("file_find", json!({})),
            ("file_stat", json!({"path": path})),
        ] {
            let text = texts(&tree.run(tool, &arguments).unwrap()).concat();
            assert!(text.contains(&told), "{tool}: {text}");
        }
    }

    #[test]
    fn what_is_skipped_is_counted() {
        let large = format!("{}needle\n", "x\n".repeat(1_100_000));
        let tree = Tree::new(&[
            (".gitignore", "ignored.txt\n"),
            ("ignored.txt", "needle"),
            ("node_modules/a.js", "needle"),
            ("large.txt", &large),
            ("late.bin", &format!("needle\n{}\0", "x".repeat(100_000))),
            ("text.txt", "needle"),
        ]);
        let answer = grep(&tree, &json!({"pattern": "needle"}));
        assert_eq!(places(&answer), [("text.txt".to_owned(), 1)]);
        assert_eq!(answer["skipped"], json!({"generated": 1, "large": 1, "binary": 1}));
        let named = grep(&tree, &json!({"pattern": "needle", "path": "large.txt"}));
        assert_eq!(places(&named), [("large.txt".to_owned(), 1_100_001)], "a named file may be large");
        let all = grep(&tree, &json!({"pattern": "needle", "includeGenerated": true}));
        assert_eq!(places(&all).len(), 3);
    }

    #[test]
    fn an_answer_is_bounded_and_says_so() {
        let tree = Tree::new(&[("a.txt", &"needle \u{1}\"\n".repeat(5_000)), ("b.txt", "needle\n")]);
        let few = grep(&tree, &json!({"pattern": "needle", "limit": 3}));
        assert_eq!((places(&few).len(), &few["truncated"]), (3, &json!(true)));
        let exactly = grep(&tree, &json!({"pattern": "needle", "limit": 1, "path": "b.txt"}));
        assert_eq!((places(&exactly).len(), &exactly["truncated"]), (1, &json!(false)));
        let arguments = json!({"pattern": "needle", "limit": 1000, "contextAfter": 20, "contextBefore": 20});
        let output = tree.run("file_grep", &arguments).unwrap();
        assert!(output.wire_bytes() < 60 * 1024, "{}", output.wire_bytes());
        assert_eq!(structured(&output)["truncated"], true);
    }

    #[test]
    fn a_bad_or_huge_expression_is_refused_before_anything_is_read() {
        let tree = Tree::new(&[]);
        for pattern in ["(", "a{1000}{1000}{1000}", "a\nb"] {
            let failure = tree.run("file_grep", &json!({"pattern": pattern})).unwrap_err();
            assert_eq!(failure.code, ErrorCode::InvalidArguments, "{pattern}");
            assert!(failure.message.contains("pattern"), "{failure}");
        }
        // Exponential elsewhere, linear here.
        tree.write("a.txt", &"a".repeat(50_000));
        assert_eq!(places(&grep(&tree, &json!({"pattern": "(a*)*b"}))), []);
    }

    #[test]
    fn links_are_not_followed_and_pipes_not_waited_for() {
        let tree = Tree::new(&[("a.txt", "needle")]);
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(outside.path(), "needle").unwrap();
        std::os::unix::fs::symlink(outside.path(), tree.path("link.txt")).unwrap();
        let pipe = tree.path("pipe.txt");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!(places(&grep(&tree, &json!({"pattern": "needle"}))), [("a.txt".to_owned(), 1)]);
        let named = |path: &str| tree.run("file_grep", &json!({"pattern": "needle", "path": path})).unwrap_err().code;
        assert_eq!(named("pipe.txt"), ErrorCode::NotAFile);
        assert_eq!(named("link.txt"), ErrorCode::PathDenied);
    }
}
