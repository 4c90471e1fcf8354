//! Texts → values of settings. Each reader says what it would have taken.

use std::net::SocketAddr;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::McpCommands;

/// Largest number that counts something (workers, places in a queue): more is a mistake.
const MAX_COUNT: usize = 65_536;
/// Longest time that is configured in milliseconds: a day.
const MAX_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;
/// Longest node name, in bytes: a DNS label.
const MAX_NODE_BYTES: usize = 63;

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| "use an address and a port, for instance 127.0.0.1:7800 or [::]:7800".to_owned())
}

/// A whole number from `min`.
pub(super) fn count_from(min: usize) -> impl Fn(&str) -> Result<usize, String> {
    move |text| match text.parse() {
        Ok(count) if (min..=MAX_COUNT).contains(&count) => Ok(count),
        _ => Err(format!("use a whole number from {min} to {MAX_COUNT}")),
    }
}

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(ms) if (1..=MAX_MILLISECONDS).contains(&ms) => Ok(Duration::from_millis(ms)),
        _ => Err(format!("use a whole number of milliseconds from 1 to {MAX_MILLISECONDS}")),
    }
}

pub(super) fn node(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.len() <= MAX_NODE_BYTES && text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("use 1 to 63 letters, digits and `. _ -`".to_owned())
    }
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; use a level (`info`) or levels by target (`warn,footbridge_hub=debug`)")),
    }
}

/// Programs with commas between them; `*` is any.
pub(super) fn commands(text: &str) -> Result<McpCommands, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    if words == ["*"] {
        return Ok(McpCommands::Any);
    }
    let legal = |word: &&str| word.starts_with('/') || !word.contains(['/', '*']);
    if !words.iter().all(legal) {
        return Err("use names of programs and absolute paths, with commas between them, or `*` for any".to_owned());
    }
    Ok(McpCommands::Listed(words.into_iter().map(str::to_owned).collect()))
}
