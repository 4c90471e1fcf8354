//! How the end of a script looks to whoever called it.

use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use serde::Serialize;

use super::frame::{Cause, Thrown};
use crate::domain::output::ToolOutput;

/// What the engine says to a `return` outside of a function.
const TOP_LEVEL_RETURN: &str = "return not in a function";

/// `{value, durationMs}`.
pub(super) fn succeeded(value: Raw, duration_ms: u64) -> ToolOutput {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Success {
        value: Raw,
        duration_ms: u64,
    }
    ToolOutput::json(&Success { value, duration_ms })
}

/// `{error, message, line?, column?, durationMs}`, and the same in a sentence as text.
pub(super) fn threw(script: &str, thrown: &Thrown, duration_ms: u64) -> ToolOutput {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Failed<'a> {
        error: &'a str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<u32>,
        duration_ms: u64,
    }
    let code = match thrown.cause {
        Cause::Exception => ErrorCode::ScriptError,
        Cause::Limit => ErrorCode::ScriptLimit,
        Cause::ResultSize => ErrorCode::ResultTooLarge,
    };
    let Thrown { class, message, line, column, .. } = thrown;
    let hint = (class == "SyntaxError" && message == TOP_LEVEL_RETURN)
        .then(|| "the value of the last expression is the result; write it without `return`".to_owned());
    let place = match (line, column) {
        (Some(line), Some(column)) => format!(" ({script}:{line}:{column})"),
        _ => String::new(),
    };
    let failed = Failed { error: class, message, line: *line, column: *column, duration_ms };
    ToolOutput::error(code, &format!("{class}: {message}{place}"), hint).with_structured(&failed)
}
