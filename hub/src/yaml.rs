//! YAML documents, read strictly: every way in (HTTP, folder, bundled, kits, tools) goes through this one parser.
//!
//! [`parse`] gives a tree whose nodes know where they stand, [`fields::Fields`] reads typed keys from it, and
//! [`schema`] holds a part of it against a JSON Schema. Whatever is wrong becomes a [`Problem`] with line, column and key
//! path; [`DocumentError`] adds the document and its layer.
//!
//! Strict means that nothing is guessed:
//! - a key that stands twice is an error, in JSON too;
//! - a plain scalar is a number, `true`, `false` or `null` only if JSON spells it so (`~` and nothing at all are `null` as
//!   well). `no`, `on`, `True`, `010`, `0x1f`, `1_000` and `.inf` are texts, and a place that wants something else says so;
//! - a number where a text is wanted is an error that asks for quotes: `1.10` never becomes `1.1`;
//! - keys are texts as they stand: `1.10: x` has the key `1.10`;
//! - anchors, aliases, merge keys, tags, directives, a byte order mark and a second document are errors.

mod error;
pub mod fields;
mod node;
mod parse;
pub mod schema;

pub use error::{DocumentError, MAX_PROBLEMS, Problem, first_problems, shown};
pub use node::{Entry, KeyPath, Node, Position, Value};
pub use parse::{MAX_DEPTH, MAX_NODES, parse};

/// The closest of the known words, when one is close enough that it was probably meant.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// How alike two words must be, from 0 (not at all) to 1 (equal).
    const CLOSE: f64 = 0.75;
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= CLOSE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
