//! What is wrong with a document, and where.

use std::fmt;

use footbridge_shared::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::node::{KeyPath, Node, Position};
use crate::domain::document::Layer;

/// Longest piece of a document that a message quotes, in characters.
const MAX_QUOTE_CHARS: usize = 60;

/// Most problems of one document that are told. Nobody mends more at once, and a document may have as many as it has
/// values.
pub const MAX_PROBLEMS: usize = 20;

/// The first problems by place; of what is beyond [`MAX_PROBLEMS`], only how many there are.
pub fn first_problems(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| problem.at);
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    let at = problems.last().map(|last| last.at).filter(|_| more > 0);
    problems.extend(at.map(|at| Problem::new(at, KeyPath::root(), format!("and at least {more} more problems"))));
    problems
}

/// What stands for the unknown keys of a map beyond the first [`MAX_PROBLEMS`].
pub(super) fn more_keys(unknown: usize, node: &Node, path: &KeyPath) -> Option<Problem> {
    let more = unknown.checked_sub(MAX_PROBLEMS).filter(|more| *more > 0)?;
    Some(Problem::new(node.at, path.clone(), format!("{more} more keys here are unknown")))
}

/// A piece of a document as a message may show it: escaped and cut.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTE_CHARS).flat_map(escaped).collect();
    if text.chars().nth(MAX_QUOTE_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Controls and invisible characters by their number, everything else as it is.
fn escaped(c: char) -> impl Iterator<Item = char> {
    let hidden = c.is_control() || footbridge_shared::text::is_hidden(c);
    let number = hidden.then(|| c.escape_default()).into_iter().flatten();
    number.chain((!hidden).then_some(c))
}

/// One thing that is wrong within a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Position,
    /// At which key.
    pub key: KeyPath,
    /// What. Safe to show.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Stable code.
    pub code: ErrorCode,
}

impl Problem {
    /// A document that does not follow its schema.
    pub fn new(at: Position, key: KeyPath, message: impl Into<String>) -> Self {
        Self { at, key, message: message.into(), hint: None, code: ErrorCode::InvalidDocument }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Replaces the code.
    #[must_use]
    pub fn code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    /// Says which document this is about.
    pub fn in_document(self, document: &impl fmt::Display, layer: Option<Layer>) -> DocumentError {
        DocumentError {
            document: document.to_string(),
            layer,
            line: self.at.line,
            column: self.at.column,
            key: self.key.text().map(str::to_owned),
            message: self.message,
            hint: self.hint,
            code: self.code,
        }
    }
}

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentError {
    /// The document's path.
    pub document: String,
    /// The layer it lies in, or would lie in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Key path, for instance `parameters.headers.X-Mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is wrong. Safe to show.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Stable code, mostly `invalid_document`.
    #[schema(value_type = String)]
    pub code: ErrorCode,
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.document)?;
        if let Some(layer) = self.layer {
            write!(f, " ({layer})")?;
        }
        write!(f, ", line {}, column {}", self.line, self.column)?;
        if let Some(key) = &self.key {
            write!(f, ", `{key}`")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for DocumentError {}
