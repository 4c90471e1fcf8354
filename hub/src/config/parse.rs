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

/// Names of variables with commas between them, each perhaps with a `*` at its end.
pub(super) fn variables(text: &str) -> Result<Vec<String>, String> {
    let is_legal = |name: &str| {
        let stem = name.strip_suffix('*').unwrap_or(name);
        !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    listed(text)
        .map(|name| {
            if is_legal(name) {
                Ok(name.to_owned())
            } else {
                Err("use names of variables like `GITHUB_TOKEN` or `GITHUB_*`, with commas between them".to_owned())
            }
        })
        .collect()
}

/// A URL of scheme, host and perhaps port; without a slash at the end.
pub(super) fn site(text: &str) -> Result<String, String> {
    let site = text.trim().trim_end_matches('/');
    let rest = site.strip_prefix("https://").or_else(|| site.strip_prefix("http://"));
    match rest {
        Some(rest) if is_host(rest) => Ok(site.to_owned()),
        _ => Err("it must be `https://HOST` or `https://HOST:PORT` (or `http`), without a path".to_owned()),
    }
}

/// Several of these, with commas between them.
pub(super) fn sites(text: &str) -> Result<Vec<String>, String> {
    listed(text).map(site).collect()
}

/// Names of hosts, each perhaps with a port, with commas between them.
pub(super) fn hosts(text: &str) -> Result<Vec<String>, String> {
    listed(text)
        .map(|host| {
            if is_host(host) {
                Ok(host.to_owned())
            } else {
                Err("it must be names like `hub.example` or `hub.example:7800`, with commas between them".to_owned())
            }
        })
        .collect()
}

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Whether a text is a host, perhaps with a port.
fn is_host(text: &str) -> bool {
    let letters = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c));
    let port = text.rsplit_once(':').filter(|_| !text.ends_with(']')).map(|(_, port)| port.parse::<u16>().is_ok());
    letters && !text.is_empty() && port.unwrap_or(true)
}
