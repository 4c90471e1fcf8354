//! How the hub is set up: defaults, then a file, then the environment, then flags; the last one that says something wins,
//! and each value remembers who said it.
//!
//! This module alone reads the environment and the files that set things up: those of operators ([`load`]), and those in
//! the user's state folder, by which the CLI finds the hub of a folder ([`state`], [`connection`]).

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub mod connection;
pub mod environment;
mod error;
mod file;
mod key;
mod layers;
mod parse;
pub mod secret;
pub mod state;

pub use environment::Environment;
pub use error::ConfigError;
pub use key::Key;
pub use layers::{Flags, Origin, ShownSetting};

use layers::Layers;

/// Everything the hub wants to know before it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubConfig {
    /// Where it listens. Port 0: one that is free.
    pub listen: SocketAddr,
    /// The folder of its data; made if it is not there.
    pub data: PathBuf,
    /// A folder whose files are documents, `<tenant>/<project>/<path>`.
    pub documents: Option<PathBuf>,
    /// How the hub is reached from outside: scheme, host and perhaps port.
    pub public_url: Option<String>,
    /// Further names by which it is reached, each perhaps with a port.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may speak to it.
    pub allowed_origins: Vec<String>,
    /// The script sandbox.
    pub script: ScriptConfig,
    /// The hub's name, which feet see.
    pub node: String,
    /// What is logged, in the words of tracing's filter: `info`, `warn,footbridge_hub=debug`.
    pub log: String,
    /// How feet are watched.
    pub feet: FeetConfig,
    /// Programs of MCP servers.
    pub mcp: McpConfig,
}

/// What documents may have the hub start, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpConfig {
    /// Which programs; `None`: nobody said.
    pub commands: Option<McpCommands>,
    /// Variables that documents may set for programs that are listed: names, perhaps with a `*` at the end.
    pub variables: Vec<String>,
    /// What they inherit of the hub's environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Which programs documents may have the hub start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpCommands {
    /// Any.
    Any,
    /// These: names that are looked for in `PATH`, or absolute paths.
    Listed(Vec<String>),
}

/// Limits of the script sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptConfig {
    /// Scripts that run at once, at each depth of nesting.
    pub workers: usize,
    /// Of these, those that one tenant may hold at once.
    pub per_tenant: usize,
    /// Scripts that may wait for a worker, at each depth of nesting.
    pub queue: usize,
    /// How long a worker is kept with nothing to do; one is kept for ever.
    pub idle: Duration,
}

/// How feet are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeetConfig {
    /// Time between heartbeats, before jitter.
    pub heartbeat: Duration,
    /// How long callers wait for a dropped foot to come back.
    pub resume_grace: Duration,
}

/// Where settings come from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The configuration file of the flag `--config`; `None`: the one that `FOOTBRIDGE_CONFIG` names, or none.
    pub file: Option<&'a Path>,
    /// The environment.
    pub environment: &'a Environment,
    /// The command line.
    pub flags: &'a Flags,
    /// The data folder where nobody names one; `None`: somebody must.
    pub data: Option<&'a Path>,
    /// The log filter where nobody names one.
    pub log: &'a str,
}

/// A configuration, and where each value came from.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: HubConfig,
    /// Each setting with its origin, in the order of [`Key::ALL`].
    pub settings: Vec<ShownSetting>,
    /// What looks like a mistake and is none for certain.
    pub warnings: Vec<String>,
}

/// Reads all sources.
///
/// # Errors
/// A file that cannot be read or breaks its schema (with line, column and key), and a value that is none for its
/// setting (with its origin).
pub fn load(sources: &Sources<'_>) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::defaults(sources.data, sources.log);
    if let Some(path) = file::path(sources) {
        layers.lay_over(file::read(&path)?);
    }
    layers.lay_over(environment::settings(sources.environment));
    layers.lay_over(sources.flags.settings());
    let config = build(&mut layers, sources.environment)?;
    Ok(Loaded { config, settings: layers.shown(), warnings: sources.environment.near_misses() })
}

fn build(layers: &mut Layers, environment: &Environment) -> Result<HubConfig, ConfigError> {
    let workers = layers.get(Key::ScriptWorkers, parse::count_from(1))?;
    layers.fill(Key::ScriptPerTenant, share_of_a_tenant(workers).to_string());
    Ok(HubConfig {
        listen: layers.get(Key::Listen, parse::address)?,
        data: layers.path(Key::Data)?,
        documents: layers.optional_path(Key::Documents),
        public_url: layers.optional(Key::PublicUrl, parse::site)?,
        allowed_hosts: layers.optional(Key::AllowedHosts, parse::hosts)?.unwrap_or_default(),
        allowed_origins: layers.optional(Key::AllowedOrigins, parse::sites)?.unwrap_or_default(),
        script: ScriptConfig {
            workers,
            per_tenant: layers.get(Key::ScriptPerTenant, parse::count_from(1))?,
            queue: layers.get(Key::ScriptQueue, parse::count_from(0))?,
            idle: layers.get(Key::ScriptIdleMs, parse::milliseconds)?,
        },
        node: layers.get(Key::Node, parse::node)?,
        log: layers.get(Key::Log, parse::log_filter)?,
        feet: FeetConfig {
            heartbeat: layers.get(Key::FeetHeartbeatMs, parse::milliseconds)?,
            resume_grace: layers.get(Key::FeetResumeGraceMs, parse::milliseconds)?,
        },
        mcp: McpConfig {
            commands: layers.optional(Key::McpCommands, parse::commands)?,
            variables: layers.optional(Key::McpVariables, parse::variables)?.unwrap_or_default(),
            environment: environment.inherited(),
        },
    })
}

/// Workers that one tenant gets where nobody says: half of them, so that no tenant keeps another waiting for long.
fn share_of_a_tenant(workers: usize) -> usize {
    workers.div_ceil(2)
}

#[cfg(test)]
mod tests;
