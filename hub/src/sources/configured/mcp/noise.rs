//! What programs say beside the protocol, for the log: cut, cleaned, and not too much of it.

use std::collections::VecDeque;
use std::time::Duration;

use footbridge_shared::id::EntryName;
use footbridge_shared::text::clean_and_cut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;

use super::redact::Redactor;

/// Longest line that is shown, in characters.
const MAX_LINE_CHARS: usize = 500;
/// Longest line that is read, in bytes; what is beyond is dropped.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// Lines of one server that are logged in one [`WINDOW`].
const LINES_A_WINDOW: u32 = 20;
/// See [`LINES_A_WINDOW`].
const WINDOW: Duration = Duration::from_secs(10);
/// Last lines that are kept for whoever asks why a program ended.
const LAST_LINES: usize = 8;
/// Most of them that is shown, in characters: the end counts.
const MAX_LAST_CHARS: usize = 1_000;
/// Read at a time, in bytes.
const CHUNK_BYTES: usize = 4 * 1024;

/// Logs the lines of one server.
pub(super) struct Noise {
    server: EntryName,
    redactor: Redactor,
    state: Mutex<State>,
}

struct State {
    since: Instant,
    logged: u32,
    dropped: u64,
    last: VecDeque<String>,
}

impl Noise {
    pub(super) fn new(server: EntryName, redactor: Redactor) -> Self {
        let state = State { since: Instant::now(), logged: 0, dropped: 0, last: VecDeque::new() };
        Self { server, redactor, state: Mutex::new(state) }
    }

    /// Takes a line of `stream`.
    pub(super) fn line(&self, stream: &'static str, line: &str) {
        let line = clean_and_cut(&self.redactor.text(line), MAX_LINE_CHARS);
        if line.trim().is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if state.since.elapsed() >= WINDOW {
            if state.dropped > 0 {
                tracing::info!(pack = %self.server, lines = state.dropped, "an MCP server wrote more than is logged");
            }
            (state.since, state.logged, state.dropped) = (Instant::now(), 0, 0);
        }
        if state.logged < LINES_A_WINDOW {
            state.logged += 1;
            tracing::info!(pack = %self.server, stream, line, "an MCP server wrote");
        } else {
            state.dropped += 1;
        }
        if state.last.len() == LAST_LINES {
            state.last.pop_front();
        }
        state.last.push_back(line);
    }

    /// The last lines, for whoever asks why a program ended: bounded, the newest at the end.
    pub(super) fn last(&self) -> String {
        let state = self.state.lock();
        let (mut lines, mut chars) = (Vec::new(), 0);
        for line in state.last.iter().rev() {
            chars += line.chars().count();
            if chars > MAX_LAST_CHARS {
                break;
            }
            lines.push(line.trim());
        }
        lines.reverse();
        lines.join(" | ")
    }

    /// A program begins: what the one before it wrote explains nothing of it.
    pub(super) fn begin(&self) {
        self.state.lock().last.clear();
    }

    /// Reads lines to the end of a stream.
    pub(super) async fn read(&self, stream: &'static str, mut reader: impl AsyncRead + Unpin) {
        let (mut chunk, mut line) = (vec![0; CHUNK_BYTES], Vec::new());
        loop {
            let read = match reader.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            let mut pieces = chunk[..read].split(|byte| *byte == b'\n');
            extend(&mut line, pieces.next().unwrap_or_default());
            for piece in pieces {
                self.line(stream, &String::from_utf8_lossy(&line));
                line.clear();
                extend(&mut line, piece);
            }
        }
        self.line(stream, &String::from_utf8_lossy(&line));
    }
}

fn extend(line: &mut Vec<u8>, piece: &[u8]) {
    let room = MAX_LINE_BYTES.saturating_sub(line.len());
    line.extend_from_slice(&piece[..piece.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_cleaned_and_counted() {
        let noise = Noise::new(EntryName::parse("noisy").unwrap(), Redactor::new(["S3CR3T-demo".to_owned()]));
        let text = format!("{}\nkey S3CR3T-demo\u{1b}[2J\n", "x".repeat(3 * MAX_LINE_BYTES));
        noise.read("stderr", text.as_bytes()).await;
        assert_eq!(noise.last(), format!("{} | key ***[2J", "x".repeat(MAX_LINE_CHARS)));
        for _ in 0..LINES_A_WINDOW {
            noise.line("stdout", "again");
        }
        assert_eq!(noise.last(), ["again"; LAST_LINES].join(" | "));
        noise.line("stderr", &"y".repeat(MAX_LINE_CHARS));
        noise.line("stderr", &"z".repeat(MAX_LINE_CHARS));
        assert_eq!(noise.last(), format!("{} | {}", "y".repeat(MAX_LINE_CHARS), "z".repeat(MAX_LINE_CHARS)));
        noise.begin();
        assert_eq!(noise.last(), "");
        let state = noise.state.lock();
        assert_eq!((state.logged, state.dropped), (LINES_A_WINDOW, 4));
    }
}
