//! The benchmarks: ratios against a named comparison, measured in one run.

mod callers;
mod durable;
pub mod echo;
mod effort;
mod keyed;
pub mod load;
mod mcp;
mod mcp_callers;
pub mod mcp_echo;
mod payloads;
mod relay;
mod slow_link;
mod stage;
pub mod table;

use std::io::Write as _;

use crate::Result;
use effort::Part;

/// Prints a line; a reader that went away is no error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Measures what the words of a command line ask for, and prints a table each.
///
/// # Errors
/// When the words make no sense, any part does not come up, or any call fails.
pub async fn run(words: impl IntoIterator<Item = String>) -> Result<()> {
    let (parts, effort) = effort::parse(words)?;
    for part in parts {
        match part {
            Part::Relay => relay::run(effort).await?,
            Part::Keyed => keyed::run(effort).await?,
            Part::Payloads => payloads::run(effort).await?,
            Part::Mcp => mcp::run(effort).await?,
            Part::SlowLink => slow_link::run(effort).await?,
        }
    }
    Ok(())
}
