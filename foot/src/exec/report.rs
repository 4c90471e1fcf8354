//! What is told of a command.

use std::time::Duration;

use footbridge_launcher::Ending;
use footbridge_shared::message::Stream;
use serde::Serialize;

use super::job::{Job, Status};
use super::output::Excerpt;
use crate::tools::ToolOutput;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    id: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    duration_ms: u64,
    #[serde(flatten)]
    output: Output,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Output {
    #[serde(rename_all = "camelCase")]
    Excerpts {
        stdout: String,
        stderr: String,
        #[serde(skip_serializing_if = "is_zero")]
        stdout_omitted_bytes: u64,
        #[serde(skip_serializing_if = "is_zero")]
        stderr_omitted_bytes: u64,
    },
    #[serde(rename_all = "camelCase")]
    Counts { stdout_bytes: u64, stderr_bytes: u64 },
    Lines {
        #[serde(skip_serializing_if = "Option::is_none")]
        stdout: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stderr: Option<String>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a command gave: how it ended and beginning and end of what it wrote. A command that went wrong is an error of the
/// tool, with its output.
pub(crate) fn result(job: &Job, now: Duration) -> ToolOutput {
    let (out, err) = (job.excerpt(Stream::Stdout), job.excerpt(Stream::Stderr));
    let text = text(Some(&out.text), Some(&err.text), &state_line(job));
    let output = Output::Excerpts {
        stdout: out.text,
        stderr: err.text,
        stdout_omitted_bytes: out.omitted,
        stderr_omitted_bytes: err.omitted,
    };
    let went_wrong = !matches!(job.status(), Status::Running | Status::Completed);
    ToolOutput { is_error: went_wrong, ..answer(job, now, &text, output) }
}

/// How far a command is, without what it wrote.
pub(crate) fn state(job: &Job, now: Duration) -> ToolOutput {
    let (out, err) = (job.written(Stream::Stdout), job.written(Stream::Stderr));
    let line = format!("{} stdout: {out} bytes, stderr: {err} bytes", state_line(job));
    answer(job, now, &line, Output::Counts { stdout_bytes: out, stderr_bytes: err })
}

/// Which lines are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    /// How many, of each stream.
    pub(crate) count: usize,
    /// Of one alone.
    pub(crate) stream: Option<Stream>,
}

/// The last lines that a command wrote.
pub(crate) fn lines(job: &Job, now: Duration, lines: Lines) -> ToolOutput {
    let last = |stream| {
        let wanted = lines.stream.is_none_or(|only| only == stream);
        wanted.then(|| job.last_lines(stream, lines.count)).map(|Excerpt { text, .. }| text)
    };
    let (stdout, stderr) = (last(Stream::Stdout), last(Stream::Stderr));
    let text = text(stdout.as_deref(), stderr.as_deref(), &state_line(job));
    answer(job, now, &text, Output::Lines { stdout, stderr })
}

fn answer(job: &Job, now: Duration, text: &str, output: Output) -> ToolOutput {
    let (exit_code, signal) = match job.ending() {
        Some(Ending::Code(code)) => (Some(code), None),
        Some(Ending::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let (status, duration_ms) = (job.status(), job.took_ms(now));
    ToolOutput::text(text).with_structured(&Report { id: &job.id, status, exit_code, signal, duration_ms, output })
}

fn state_line(job: &Job) -> String {
    match (job.status(), job.ending()) {
        (Status::Running, _) => format!("[running; its id is {}]", job.id),
        (Status::Killed, _) => "[killed]".to_owned(),
        (Status::TimedOut, _) => "[killed: its time was up]".to_owned(),
        (_, Some(Ending::Code(code))) => format!("[exit code {code}]"),
        (_, Some(Ending::Signal(signal))) => format!("[ended by signal {signal}]"),
        (_, None) => "[ended]".to_owned(),
    }
}

/// Both streams, the second one marked as what it is, and a line on how far the command is.
fn text(stdout: Option<&str>, stderr: Option<&str>, state: &str) -> String {
    let mut text = String::new();
    let mut block = |part: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(part);
    };
    if let Some(stdout) = stdout {
        block(stdout);
    }
    if let Some(stderr) = stderr.filter(|stderr| !stderr.is_empty()) {
        block("[stderr]\n");
        block(stderr);
    }
    block(state);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_models_see_what_came_from_where_and_how_it_ended() {
        assert_eq!(text(Some("a\n"), Some("b"), "[exit code 1]"), "a\n[stderr]\nb\n[exit code 1]");
        assert_eq!(text(Some("a"), Some(""), "[exit code 0]"), "a\n[exit code 0]");
        assert_eq!(text(None, Some("b\n"), "[killed]"), "[stderr]\nb\n[killed]");
    }
}
