//! `file_read`: lines of a text file, of any size, without loading it.

mod whole;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use footbridge_shared::content::{ContentHash, ContentHasher};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocking::FileTool;
use super::digest::unreadable;
use super::text::{ANSWER_BYTES, head};
use super::{CallContext, ToolOutput};
use crate::failure::Failure;
use crate::policy::Gate;

/// Characters unless told.
const DEFAULT_CHARS: usize = 8_000;
/// Most characters: what fits a frame as text and as JSON, if most of them are ASCII.
const MAX_CHARS: usize = 24_000;
/// Bytes that one read asks for.
const CHUNK_BYTES: usize = 64 * 1024;
/// How far a file is read past the wanted lines, to count all lines and characters, in bytes.
const COUNT_BYTES: u64 = 16 * 1024 * 1024;
/// Chunks between two signs of life: 64 MiB.
const PROGRESS_EVERY: u64 = 1024;

pub(super) struct FileRead;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    start_line: Option<u64>,
    max_lines: Option<u64>,
    max_chars: Option<usize>,
    #[serde(default)]
    whole: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    path: String,
    content: &'a str,
    /// The file goes on after `content`.
    truncated: bool,
    start_line: u64,
    /// The last line of which `content` has anything; one before `start_line` if it is empty.
    end_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_chars: Option<u64>,
    /// Of the whole file, where it was read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
    /// `end_line` is not there to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    line_cut: bool,
    /// Bytes that are no UTF-8 were replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lossy: bool,
    /// There are NUL bytes: most likely no text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    binary: bool,
}

impl FileTool for FileRead {
    const NAME: &'static str = "file_read";
    const TITLE: &'static str = "Read a file";
    const DESCRIPTION: &'static str = "Reads a text file on the developer's machine, whole or some lines of it. Long \
        files are cut at `maxChars`; the answer says so and at which line to go on with `startLine`. Bytes that are no \
        UTF-8 are replaced, and the answer says so. Use file_grep first to find the lines that matter in a large file.";
    const PRIMARY: bool = true;
    type Arguments = Arguments;

    fn properties() -> Value {
        json!({
            "path": {"type": "string", "minLength": 1, "maxLength": 4096,
                "description": "The file. Relative paths start at the project root."},
            "startLine": {"type": "integer", "minimum": 1, "default": 1, "description": "First line, counted from 1."},
            "maxLines": {"type": "integer", "minimum": 1, "description": "Most lines to return; all unless given."},
            "maxChars": {"type": "integer", "minimum": 1, "maximum": MAX_CHARS, "default": DEFAULT_CHARS,
                "description": "Most characters to return."},
            "whole": {"type": "boolean", "default": false,
                "description": "Return the exact and whole text, of at most 1 MiB, or fail. For programs that copy it."},
        })
    }

    fn required() -> &'static [&'static str] {
        &["path"]
    }

    fn path(arguments: &Arguments) -> &str {
        &arguments.path
    }

    fn resolve(gate: &Gate, arguments: &Arguments) -> Result<PathBuf, Failure> {
        let Arguments { start_line, max_lines, max_chars, whole, .. } = arguments;
        if *whole && (start_line.is_some() || max_lines.is_some() || max_chars.is_some()) {
            return Err(Failure::invalid_arguments("`whole` leaves nothing to choose: give it alone"));
        }
        gate.resolve(&arguments.path)
    }

    fn run(gate: &Gate, real: &Path, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let mut file = gate.open_file(real, &arguments.path)?;
        if arguments.whole {
            return whole::read(gate, real, &mut file, &arguments.path);
        }
        let start_line = arguments.start_line.unwrap_or(1);
        let max_chars = arguments.max_chars.unwrap_or(DEFAULT_CHARS);
        let mut scan = Scan::new(start_line, arguments.max_lines.unwrap_or(u64::MAX), max_chars);
        let at_end = scan.read(&mut file, &arguments.path, ctx)?;

        let text = String::from_utf8_lossy(&scan.wanted);
        let (content, chars) = head(&text, max_chars, ANSWER_BYTES);
        let wanted_chars = text.chars().count();
        let cut = chars < wanted_chars || scan.overfull;
        let newlines = newlines(content.as_bytes());
        let line_cut = cut && !content.ends_with('\n');
        let partial = u64::from(!content.is_empty() && !content.ends_with('\n'));
        let end_line = (start_line + newlines + partial).saturating_sub(1);
        let total_lines = at_end.then(|| scan.newlines + u64::from(scan.ends_within_line));
        let answer = Content {
            path: gate.show(real),
            content,
            truncated: cut || total_lines.is_none_or(|total| end_line < total),
            start_line,
            end_line,
            total_lines,
            total_chars: at_end.then_some(scan.chars),
            hash: at_end.then(|| scan.hasher.hash()),
            line_cut,
            lossy: content.contains(char::REPLACEMENT_CHARACTER) && is_lossy(&scan.wanted, content),
            binary: scan.binary,
        };
        let notes = notes(&answer);
        let blocks: &[&str] = if notes.is_empty() { &[content] } else { &[content, &notes] };
        Ok(ToolOutput::texts(blocks).with_structured(&answer))
    }
}

/// Whether a replacement character of `content` stands for bytes that are no UTF-8, and not for itself.
fn is_lossy(bytes: &[u8], content: &str) -> bool {
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    valid < content.len()
}

fn notes(answer: &Content<'_>) -> String {
    let mut notes = Vec::new();
    if answer.binary {
        notes.push("this looks like a binary file".to_owned());
    } else if answer.lossy {
        notes.push("bytes that are no UTF-8 were replaced".to_owned());
    }
    match (answer.total_lines, answer.content.is_empty()) {
        (Some(0), true) => notes.push("the file is empty".to_owned()),
        (Some(total), true) => notes.push(format!("the file has {total} lines")),
        _ if answer.truncated => {
            let of = answer.total_lines.map(|total| format!(" of {total}")).unwrap_or_default();
            let next = if answer.line_cut { answer.end_line } else { answer.end_line + 1 };
            let why = if answer.line_cut { format!(", line {} cut", answer.end_line) } else { String::new() };
            notes.push(format!("lines {}-{}{of}{why}; startLine {next} goes on", answer.start_line, answer.end_line));
        }
        _ => {}
    }
    if notes.is_empty() { String::new() } else { format!("[{}]", notes.join("; ")) }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// One pass over a file: keeps the wanted lines, counts the rest.
struct Scan {
    start_line: u64,
    max_lines: u64,
    max_bytes: usize,
    wanted: Vec<u8>,
    /// There were more bytes in the wanted lines than are kept.
    overfull: bool,
    newlines: u64,
    chars: u64,
    ends_within_line: bool,
    binary: bool,
    hasher: ContentHasher,
}

impl Scan {
    fn new(start_line: u64, max_lines: u64, max_chars: usize) -> Self {
        Self {
            start_line,
            max_lines,
            // The longest character has four bytes: this many hold at least one more than is wanted.
            max_bytes: max_chars * 4 + 4,
            wanted: Vec::new(),
            overfull: false,
            newlines: 0,
            chars: 0,
            ends_within_line: false,
            binary: false,
            hasher: ContentHasher::default(),
        }
    }

    /// Reads until the wanted lines are there, and some way on to count. Says whether that was to the end of the file.
    fn read(&mut self, file: &mut File, given: &str, ctx: &CallContext) -> Result<bool, Failure> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let (mut chunks, mut past) = (0_u64, 0_u64);
        loop {
            ctx.check()?;
            let count = match file.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(given, error)),
            };
            let bytes = chunk.get(..count).unwrap_or_default();
            let had_enough = self.has_enough();
            self.take(bytes);
            if had_enough {
                past += count as u64;
                if past > COUNT_BYTES {
                    return Ok(false);
                }
            }
            chunks += 1;
            if chunks.is_multiple_of(PROGRESS_EVERY) {
                #[expect(clippy::cast_precision_loss, reason = "a count for people")]
                ctx.progress(self.newlines as f64, None, "reading");
            }
        }
    }

    fn has_enough(&self) -> bool {
        self.overfull || self.newlines >= self.start_line.saturating_add(self.max_lines).saturating_sub(1)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.binary |= bytes.contains(&0);
        self.chars += bytes.iter().filter(|byte| (**byte & 0b1100_0000) != 0b1000_0000).count() as u64;
        self.ends_within_line = bytes.last().is_some_and(|byte| *byte != b'\n');
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let number = self.newlines + 1;
            if number >= self.start_line && number - self.start_line < self.max_lines && !self.overfull {
                let room = self.max_bytes - self.wanted.len();
                self.wanted.extend_from_slice(line.get(..room.min(line.len())).unwrap_or_default());
                self.overfull = line.len() > room;
            }
            self.newlines += u64::from(line.ends_with(b"\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::testing::{Tree, structured, texts};
    use footbridge_shared::ErrorCode;
    use footbridge_shared::content::{ContentHash, MAX_WHOLE_BYTES};
    use serde_json::json;

    #[test]
    fn a_short_file_comes_whole_with_its_counts() {
        let tree = Tree::new(&[("a.txt", "één\ntwo\n"), ("empty", "")]);
        let output = tree.run("file_read", &json!({"path": "a.txt"})).unwrap();
        assert_eq!(texts(&output), ["één\ntwo\n"]);
        let expected = json!({"path": "a.txt", "content": "één\ntwo\n", "truncated": false, "startLine": 1, "endLine": 2,
            "totalLines": 2, "totalChars": 8,
            "hash": ContentHash::of("één\ntwo\n".as_bytes())});
        assert_eq!(structured(&output), expected);

        let empty = tree.run("file_read", &json!({"path": "empty"})).unwrap();
        assert_eq!(texts(&empty), ["", "[the file is empty]"]);
        assert_eq!(structured(&empty)["truncated"], false);
    }

    #[test]
    fn lines_are_counted_the_same_wherever_the_cut_falls() {
        let all: String = (1..=50).map(|n| format!("line {n}\n")).collect::<String>() + "last";
        let tree = Tree::new(&[("a.txt", &all)]);
        // (startLine, maxLines, maxChars) → (first and last words, endLine, truncated, lineCut)
        for (start, lines, chars, content, end, truncated, cut) in [
            (1, 2, 100, "line 1\nline 2\n", 2, true, false),
            (50, 9, 100, "line 50\nlast", 51, false, false),
            (51, 1, 100, "last", 51, false, false),
            (52, 1, 100, "", 51, false, false),
            (1, 9, 7, "line 1\n", 1, true, false),
            (1, 9, 8, "line 1\nl", 2, true, true),
            (51, 1, 2, "la", 51, true, true),
        ] {
            let arguments = json!({"path": "a.txt", "startLine": start, "maxLines": lines, "maxChars": chars});
            let answer = structured(&tree.run("file_read", &arguments).unwrap());
            let got = (&answer["content"], &answer["endLine"], &answer["truncated"], answer.get("lineCut").is_some());
            assert_eq!(got, (&json!(content), &json!(end), &json!(truncated), cut), "{arguments}");
            assert_eq!(answer["totalLines"], 51, "{arguments}");
        }
    }

    #[test]
    fn what_is_no_text_is_said_to_be_none() {
        let tree = Tree::new(&[("real.txt", "a \u{fffd} b")]);
        std::fs::write(tree.path("latin.txt"), b"caf\xe9 na\xefve\n").unwrap();
        std::fs::write(tree.path("image.bin"), b"\x89PNG\0\0\xff").unwrap();
        let read = |path: &str| structured(&tree.run("file_read", &json!({"path": path})).unwrap());
        assert_eq!(read("latin.txt")["content"], "caf\u{fffd} na\u{fffd}ve\n");
        assert_eq!(read("latin.txt")["lossy"], true);
        assert_eq!(read("image.bin")["binary"], true);
        assert!(read("real.txt").get("lossy").is_none(), "the character itself stands in the file");
    }

    #[test]
    fn a_whole_file_comes_exactly_or_not_at_all() {
        let text = "\u{feff}one\r\n\0two".repeat(3000);
        let tree = Tree::new(&[("a.txt", &text), ("large", &"x".repeat(MAX_WHOLE_BYTES + 1))]);
        std::fs::write(tree.path("latin"), b"caf\xe9").unwrap();
        let output = tree.run("file_read", &json!({"path": "a.txt", "whole": true})).unwrap();
        let expected = json!({"path": "a.txt", "content": text, "bytes": text.len(), "truncated": false,
            "hash": ContentHash::of(text.as_bytes())});
        assert_eq!(structured(&output), expected);
        for (arguments, code) in [
            (json!({"path": "latin", "whole": true}), ErrorCode::NotAFile),
            (json!({"path": "large", "whole": true}), ErrorCode::ResultTooLarge),
            (json!({"path": "a.txt", "whole": true, "maxLines": 1}), ErrorCode::InvalidArguments),
        ] {
            assert_eq!(tree.run("file_read", &arguments).unwrap_err().code, code, "{arguments}");
        }
    }

    #[test]
    fn a_large_file_is_not_loaded_and_the_answer_fits_a_frame() {
        let tree = Tree::new(&[]);
        let line = "\u{1}\u{1f600}\"x\n".repeat(1000);
        let file = std::fs::File::create(tree.path("big")).unwrap();
        let mut writer = std::io::BufWriter::new(file);
        for _ in 0..2500 {
            std::io::Write::write_all(&mut writer, line.as_bytes()).unwrap();
        }
        std::io::Write::flush(&mut writer).unwrap();

        let output = tree.run("file_read", &json!({"path": "big", "maxChars": 24_000})).unwrap();
        assert!(output.wire_bytes() < 60 * 1024, "{}", output.wire_bytes());
        let answer = structured(&output);
        assert_eq!((&answer["truncated"], answer.get("totalLines")), (&json!(true), None), "{}", answer["endLine"]);

        let late = tree.run("file_read", &json!({"path": "big", "startLine": 2_499_999, "maxLines": 2})).unwrap();
        assert_eq!(structured(&late)["totalLines"], 2_500_000);
        assert_eq!(structured(&late)["endLine"], 2_500_000);
    }

    #[test]
    fn failures_tell_missing_denied_and_wrong_kind_apart() {
        let tree = Tree::new(&[("dir/a", "")]);
        for (path, code) in [
            ("missing", ErrorCode::NotFound),
            ("dir", ErrorCode::NotAFile),
            ("../x", ErrorCode::PathDenied),
            ("/etc/passwd", ErrorCode::PathDenied),
        ] {
            assert_eq!(tree.run("file_read", &json!({"path": path})).unwrap_err().code, code, "{path}");
        }
        for bad in [json!({}), json!({"path": ""}), json!({"path": "a", "startLine": 0}), json!({"path": "a", "x": 1})]
        {
            assert_eq!(tree.run("file_read", &bad).unwrap_err().code, ErrorCode::InvalidArguments, "{bad}");
        }
    }
}
