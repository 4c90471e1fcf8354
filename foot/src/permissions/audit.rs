//! The owner's book of what was asked of this machine and what became of it: a line of JSON for each decision.
//!
//! It is written by a thread of its own. A full queue costs lines, which are counted, and never holds up a call. Values of
//! environment variables and contents of files are not in it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Action, CommandLine};

/// Lines that may wait to be written.
const QUEUE: usize = 1024;
/// Size at which a file is put aside, in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// Files that were put aside and are kept.
const KEPT_FILES: u32 = 3;
/// Longest text of one word or path, in characters.
const MAX_TEXT_CHARS: usize = 1_000;
/// Words of one command.
const MAX_WORDS: usize = 100;
/// How long the end of the foot waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// One decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AuditLine {
    /// When, in RFC 3339.
    pub(crate) time: String,
    /// The call.
    pub(crate) call: String,
    /// Who called.
    pub(crate) subject: String,
    /// For which of their processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<String>,
    /// The tool.
    pub(crate) tool: String,
    /// `read`, `write`, `delete`, `run`, `server`; nothing for what is only in the foot's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<String>,
    /// The real path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) argv: Option<Vec<String>>,
    /// The script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) script: Option<String>,
    /// Where the command starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// The local MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// Its tool, by its own name, or the method of MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
    /// Names that the caller sets in its environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) env: Vec<String>,
    /// `allow`, `deny`, `ask-yes`, `ask-no`, `expired`, `nobody`, `withdrawn`.
    pub(crate) decision: String,
    /// By which rule, mode or answer.
    pub(crate) by: String,
    /// Lines before this one that could not be written.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AuditLine {
    /// What an action would do, without its secrets.
    pub(crate) fn about(action: &Action) -> Self {
        match action {
            Action::Nothing => Self::default(),
            Action::File { access, path } => Self {
                action: Some(access.as_str().to_owned()),
                path: Some(cut(&path.to_string_lossy())),
                ..Self::default()
            },
            Action::Run(command) => {
                let (argv, script) = match &command.line {
                    CommandLine::Argv(argv) => {
                        let mut words: Vec<String> = argv.iter().take(MAX_WORDS).map(|word| cut(word)).collect();
                        if argv.len() > MAX_WORDS {
                            words.push(format!("… {} more", argv.len() - MAX_WORDS));
                        }
                        (Some(words), None)
                    }
                    CommandLine::Shell(script) => (None, Some(cut(script))),
                };
                Self {
                    action: Some("run".to_owned()),
                    argv,
                    script,
                    cwd: Some(cut(&command.cwd.to_string_lossy())),
                    env: command.env.keys().map(|name| cut(name)).collect(),
                    ..Self::default()
                }
            }
            Action::Server(asked) => Self {
                action: Some("server".to_owned()),
                server: Some(asked.server.clone()),
                asked: Some(cut(&asked.what)),
                ..Self::default()
            },
        }
    }
}

/// A text, or its beginning.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Where lines go.
#[derive(Debug)]
pub(crate) struct Audit {
    lines: Option<SyncSender<AuditLine>>,
    lost: AtomicU64,
    /// Ends when the last line is written.
    written: Option<std::sync::Mutex<Receiver<()>>>,
}

impl Audit {
    /// Nowhere.
    pub(crate) fn none() -> Self {
        Self { lines: None, lost: AtomicU64::new(0), written: None }
    }

    /// To a file, which is made when there is something to write.
    ///
    /// # Errors
    /// The thread that writes does not start.
    pub(crate) fn open(path: PathBuf) -> std::io::Result<Self> {
        let (lines, to_write) = sync_channel(QUEUE);
        let (done, written) = sync_channel(0);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            let _done = done;
            Book::new(path, MAX_FILE_BYTES).write_all(&to_write);
        })?;
        Ok(Self { lines: Some(lines), lost: AtomicU64::new(0), written: Some(std::sync::Mutex::new(written)) })
    }

    /// Writes a line, soon.
    pub(crate) fn write(&self, mut line: AuditLine) {
        let Some(lines) = &self.lines else { return };
        line.lost = self.lost.swap(0, Ordering::Relaxed);
        if let Err(failed) = lines.try_send(line) {
            let (std::sync::mpsc::TrySendError::Full(line) | std::sync::mpsc::TrySendError::Disconnected(line)) =
                failed;
            self.lost.fetch_add(line.lost + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        drop(self.lines.take());
        // A disk that hangs must not keep the foot from ending.
        if let Some(Ok(written)) = self.written.take().map(std::sync::Mutex::into_inner) {
            let _ = written.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

/// The file that is written to.
struct Book {
    path: PathBuf,
    max_bytes: u64,
    file: Option<(File, u64)>,
    /// The last failure was told: the next is not told before something worked.
    told: bool,
    lost: u64,
}

impl Book {
    fn new(path: PathBuf, max_bytes: u64) -> Self {
        Self { path, max_bytes, file: None, told: false, lost: 0 }
    }

    fn write_all(&mut self, lines: &Receiver<AuditLine>) {
        for mut line in lines {
            line.lost += self.lost;
            match self.write(&line) {
                Ok(()) => (self.told, self.lost) = (false, 0),
                Err(error) => {
                    self.file = None;
                    self.lost = line.lost + 1;
                    if !std::mem::replace(&mut self.told, true) {
                        tracing::warn!(path = %self.path.display(), %error, "the audit file cannot be written");
                    }
                }
            }
        }
    }

    fn write(&mut self, line: &AuditLine) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let bytes = text.len() as u64;
        if self.file.as_ref().is_some_and(|(_, size)| size + bytes > self.max_bytes) {
            self.file = None;
            put_aside(&self.path)?;
        }
        let (mut file, size) = match self.file.take() {
            Some(open) => open,
            None => {
                let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
                let size = file.metadata()?.len();
                (file, size)
            }
        };
        // One write a line: whatever else appends to the file, lines stay whole.
        file.write_all(&text)?;
        self.file = Some((file, size + bytes));
        Ok(())
    }
}

/// `audit.jsonl` becomes `audit.jsonl.1`, that `.2`, and so on; the oldest goes.
fn put_aside(path: &Path) -> std::io::Result<()> {
    for nth in (1..KEPT_FILES).rev() {
        let from = aside(path, nth);
        if from.exists() {
            std::fs::rename(from, aside(path, nth + 1))?;
        }
    }
    std::fs::rename(path, aside(path, 1))
}

fn aside(path: &Path, nth: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{nth}"));
    PathBuf::from(name)
}

/// The last lines that fit, oldest first. What is no line is passed over: a write may have been cut short.
///
/// # Errors
/// A file is there and cannot be read.
pub(crate) fn read_back(
    path: &Path,
    last: usize,
    fits: impl Fn(&AuditLine) -> bool,
) -> std::io::Result<Vec<AuditLine>> {
    let mut kept = std::collections::VecDeque::new();
    for path in (1..=KEPT_FILES).rev().map(|nth| aside(path, nth)).chain([path.to_owned()]) {
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        for line in BufReader::new(file).split(b'\n') {
            if let Ok(line) = serde_json::from_slice::<AuditLine>(&line?)
                && fits(&line)
            {
                kept.push_back(line);
                if kept.len() > last {
                    kept.pop_front();
                }
            }
        }
    }
    Ok(kept.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(call: usize) -> AuditLine {
        AuditLine { call: call.to_string(), decision: "allow".to_owned(), ..AuditLine::default() }
    }

    fn calls(lines: &[AuditLine]) -> Vec<&str> {
        lines.iter().map(|line| line.call.as_str()).collect()
    }

    #[test]
    fn lines_are_written_for_the_owner_alone_and_read_back() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("laptop.audit.jsonl");
        let audit = Audit::open(path.clone()).unwrap();
        (0..5).for_each(|call| audit.write(line(call)));
        drop(audit);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(calls(&read_back(&path, 2, |_| true).unwrap()), ["3", "4"]);
        assert_eq!(calls(&read_back(&path, 9, |line| line.call == "1").unwrap()), ["1"]);

        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"call\": \"torn").unwrap();
        assert_eq!(read_back(&path, 9, |_| true).unwrap().len(), 5, "a torn line costs itself");
        assert!(read_back(&dir.path().join("none"), 9, |_| true).unwrap().is_empty());
    }

    #[test]
    fn a_full_file_is_put_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let size = serde_json::to_vec(&line(10)).unwrap().len() as u64 + 1;
        let mut book = Book::new(path.clone(), 2 * size);
        (10..25).for_each(|call| book.write(&line(call)).unwrap());
        let kept = read_back(&path, 99, |_| true).unwrap();
        assert_eq!(
            calls(&kept),
            ["18", "19", "20", "21", "22", "23", "24"],
            "two in each of three files, one in the last"
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
    }

    #[test]
    fn what_does_not_fit_the_queue_is_counted_and_nobody_waits() {
        let (lines, queue) = sync_channel(1);
        let audit = Audit { lines: Some(lines), lost: AtomicU64::new(0), written: None };
        (0..4).for_each(|call| audit.write(line(call)));
        assert_eq!(queue.try_recv().unwrap().call, "0");
        audit.write(line(4));
        assert_eq!(queue.try_recv().unwrap().lost, 3);
    }

    #[test]
    fn a_file_that_cannot_be_written_costs_lines_and_says_how_many() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("later/a.jsonl");
        let (lines, queue) = sync_channel(9);
        let mut book = Book::new(path.clone(), 1_000);
        (0..3).for_each(|call| lines.send(line(call)).unwrap());
        drop(lines);
        book.write_all(&queue);
        std::fs::create_dir(dir.path().join("later")).unwrap();
        let (lines, queue) = sync_channel(9);
        lines.send(line(3)).unwrap();
        drop(lines);
        book.write_all(&queue);
        let lines = read_back(&path, 9, |_| true).unwrap();
        assert_eq!((calls(&lines), lines[0].lost), (vec!["3"], 3));
    }

    #[test]
    fn values_of_the_environment_are_not_written_and_long_texts_are_cut() {
        let command = super::super::Command {
            line: CommandLine::Argv(vec!["x".repeat(5_000); 200]),
            cwd: "/w".into(),
            env: [("TOKEN".to_owned(), "hunter2".to_owned())].into(),
            stdin: None,
            configured: false,
        };
        let json = serde_json::to_string(&AuditLine::about(&Action::Run(command))).unwrap();
        assert!(json.contains("TOKEN") && !json.contains("hunter2") && json.contains("100 more"));
        assert!(json.len() < 110_000);
    }
}
