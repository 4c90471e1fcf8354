//! What a running call shows: a spinner with its progress, and its partial output.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::api::calls::{OutputEvent, ProgressEvent};
use crate::cli::out::Format;

/// Time between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);
/// Longest progress message that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 120;

/// Shows a call while it runs, all of it on standard error. Cleans up after itself when dropped.
#[derive(Debug)]
pub(super) struct Live {
    /// Hidden unless a person looks at standard error.
    spinner: ProgressBar,
    tool: String,
    /// Programs get the reply alone.
    silent: bool,
    terminal: bool,
}

impl Live {
    pub(super) fn new(tool: &str, format: Format) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let spinner =
            if terminal && format == Format::Text { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            spinner.set_style(style);
        }
        spinner.set_message(tool.to_owned());
        spinner.enable_steady_tick(TICK);
        Self { spinner, tool: tool.to_owned(), silent: format == Format::Json, terminal }
    }

    pub(super) fn progress(&mut self, event: &ProgressEvent) {
        self.spinner.set_message(format!("{}: {}", self.tool, told(event)));
    }

    pub(super) fn output(&mut self, event: &OutputEvent) {
        if self.silent {
            return;
        }
        let skipped = match event.skipped_bytes {
            0 => String::new(),
            count => format!("[… {count} bytes are left out …]\n"),
        };
        let text =
            if self.terminal { footbridge_shared::text::clean(&event.data).0 } else { event.data.as_str().into() };
        self.spinner.suspend(|| {
            let mut stderr = std::io::stderr().lock();
            // Partial output is a courtesy; the result is what counts.
            let _ = stderr.write_all(skipped.as_bytes()).and_then(|()| stderr.write_all(text.as_bytes()));
        });
    }

    pub(super) fn say(&mut self, text: &str) {
        self.spinner.suspend(|| crate::cli::out::remark(text));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}

/// `3 of 10, reading`
fn told(event: &ProgressEvent) -> String {
    let amount = match event.total {
        Some(total) => format!("{} of {total}", event.progress),
        None => event.progress.to_string(),
    };
    let message = event.message.as_deref().map(|message| footbridge_shared::text::clean(message).0.into_owned());
    match message {
        Some(message) if !message.trim().is_empty() => {
            let line: String = message.lines().next().unwrap_or_default().chars().take(MAX_MESSAGE_CHARS).collect();
            format!("{amount}, {line}")
        }
        _ => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_with_what_is_known() {
        let event =
            |total, message: Option<&str>| ProgressEvent { progress: 3.0, total, message: message.map(str::to_owned) };
        assert_eq!(told(&event(None, None)), "3");
        assert_eq!(told(&event(Some(10.0), Some("read\u{1b}ing\nmore"))), "3 of 10, reading");
        assert_eq!(told(&event(Some(10.0), Some(" "))), "3 of 10");
    }
}
