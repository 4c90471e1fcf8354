//! Why a call gave no result.

use footbridge_shared::id::CallId;
use footbridge_shared::message::{CallFailure, Raw};
use footbridge_shared::{ErrorCode, Outcome};

/// A call that gave no result. Everything here but `cause` goes over the wire and is safe to show.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct Failure {
    /// Stable code.
    pub(crate) code: ErrorCode,
    /// What happened, for people and models.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// Whether the tool ran.
    pub(crate) outcome: Outcome,
    /// When the same call may be sent again, milliseconds from now. Only with [`Outcome::NotRun`].
    pub(crate) retry_after_ms: Option<u64>,
    /// The JSON-RPC error of a local MCP server, as it sent it.
    pub(crate) rpc: Option<Raw>,
    /// For the log alone.
    pub(crate) cause: Option<String>,
}

impl Failure {
    /// A failure with a known outcome.
    pub(crate) fn new(code: ErrorCode, outcome: Outcome, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, outcome, retry_after_ms: None, rpc: None, cause: None }
    }

    /// The tool certainly did not run.
    pub(crate) fn not_run(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code, Outcome::NotRun, message)
    }

    /// The tool ran to its end and there is nothing to show for it.
    pub(crate) fn completed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code, Outcome::Completed, message)
    }

    /// The arguments do not fit; nothing ran.
    pub(crate) fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::not_run(ErrorCode::InvalidArguments, message)
    }

    /// There is no such tool for this caller: the same answer whether it does not exist or is not theirs.
    pub(crate) fn unknown_tool(name: &str) -> Self {
        Self::not_run(ErrorCode::UnknownTool, format!("this foot has no tool `{}` for you", shown(name)))
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub(crate) fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Says that the same call may be sent again after this many milliseconds.
    #[must_use]
    pub(crate) fn retry_after_ms(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// As the terminal message of a call.
    pub(crate) fn into_message(self, call: CallId, origin: String) -> CallFailure {
        CallFailure {
            call,
            origin,
            code: self.code,
            message: self.message,
            hint: self.hint,
            outcome: self.outcome,
            retryable: self.outcome == Outcome::NotRun && self.retry_after_ms.is_some(),
            retry_after_ms: self.retry_after_ms,
            rpc: self.rpc,
        }
    }
}

/// Longest name or path that a message quotes, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Text from elsewhere, fit to be quoted: cut, and without characters that steer a terminal or hide from people.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => escaped(text.get(..end).unwrap_or_default()) + "…",
        None => escaped(text),
    }
}

/// The same in full, for names and paths of an answer: a part of one is of no use to anybody.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if footbridge_shared::text::is_hidden(c) || c == '\n' {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_cannot_steer_a_terminal() {
        assert_eq!(shown("a\u{1b}[2J\u{202e}b\n"), "a\\u{1b}[2J\\u{202e}b\\u{a}");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), MAX_SHOWN_CHARS + 1);
    }

    #[test]
    fn only_what_did_not_run_may_be_sent_again() {
        let message = |failure: Failure| failure.into_message(CallId::parse("c").unwrap(), String::new());
        assert!(message(Failure::not_run(ErrorCode::FootBusy, "busy").retry_after_ms(5)).retryable);
        assert!(!message(Failure::not_run(ErrorCode::InvalidArguments, "no")).retryable);
        assert!(!message(Failure::completed(ErrorCode::NotFound, "no").retry_after_ms(5)).retryable);
    }
}
