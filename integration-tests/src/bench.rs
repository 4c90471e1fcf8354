//! The benchmarks: ratios against a named comparison, measured in one run.

pub mod echo;
pub mod load;
pub mod relay;
pub mod table;

use std::io::Write as _;

/// Prints a line; a reader that went away is no error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
