//! The exact text of a whole file, for whoever copies it.

use std::fs::File;
use std::path::Path;

use footbridge_shared::ErrorCode;
use footbridge_shared::content::{ContentHash, MAX_WHOLE_BYTES};
use serde::Serialize;

use crate::failure::Failure;
use crate::policy::Gate;
use crate::tools::ToolOutput;
use crate::tools::digest::whole_text;

#[derive(Serialize)]
struct Whole<'a> {
    path: String,
    content: &'a str,
    bytes: usize,
    hash: ContentHash,
    /// Never: there is all of it, or a failure.
    truncated: bool,
}

/// Reads a text of at most [`MAX_WHOLE_BYTES`].
///
/// # Errors
/// `result_too_large`, `not_a_file` for what is no UTF-8, `tool_failed`.
pub(super) fn read(gate: &Gate, real: &Path, file: &mut File, given: &str) -> Result<ToolOutput, Failure> {
    let text = whole_text(file, MAX_WHOLE_BYTES, ErrorCode::ResultTooLarge, given)?;
    let (bytes, hash) = (text.len(), ContentHash::of(text.as_bytes()));
    let whole = Whole { path: gate.show(real), content: &text, bytes, hash, truncated: false };
    Ok(ToolOutput::text(&text).with_structured(&whole))
}
