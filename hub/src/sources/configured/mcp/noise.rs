//! What programs say beside the protocol, for the log: cut, cleaned, and not too much of it.

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
    last: String,
}

impl Noise {
    pub(super) fn new(server: EntryName, redactor: Redactor) -> Self {
        let state = State { since: Instant::now(), logged: 0, dropped: 0, last: String::new() };
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
        state.last = line;
    }

    /// The last line, for whoever asks why a program ended.
    pub(super) fn last(&self) -> String {
        self.state.lock().last.clone()
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
        assert_eq!(noise.last(), "key ***[2J");
        for _ in 0..LINES_A_WINDOW {
            noise.line("stdout", "again");
        }
        let state = noise.state.lock();
        assert_eq!((state.logged, state.dropped), (LINES_A_WINDOW, 2));
    }
}
