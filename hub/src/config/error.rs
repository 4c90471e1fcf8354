//! What can be wrong with a configuration. All of it is safe to show.

use std::path::PathBuf;

use super::key::Key;
use super::layers::Origin;

/// Why the hub, or the CLI, is not set up.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file breaks its schema.
    #[error("{}, {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        problem: FileProblem,
    },
    /// A value is none for its setting.
    #[error("`{key}` cannot be `{value}` ({origin}): {reason}")]
    Value {
        /// The setting.
        key: Key,
        /// The value, as it was written.
        value: String,
        /// Who wrote it.
        origin: Origin,
        /// What would do.
        reason: String,
    },
    /// A setting has no value.
    #[error("`{key}` is not set: use {}, {} or the configuration file", key.spec().flag.unwrap_or("a flag"), key.spec().variable)]
    Missing {
        /// The setting.
        key: Key,
    },
    /// An environment variable is not UTF-8.
    #[error("the environment variable {name} is not UTF-8")]
    NotUtf8 {
        /// The variable.
        name: &'static str,
    },
    /// The user's home is not known, so neither is the state folder.
    #[error("neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    NoHome,
}

/// One thing that is wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {}{message}{}", name(key), remark(hint.as_deref()))]
pub struct FileProblem {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The key path; empty at the top.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

fn name(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("`{key}`: ") }
}

fn remark(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}
