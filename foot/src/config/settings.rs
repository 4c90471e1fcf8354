//! Settings before they are checked, and the layers they come from: file, environment, command line.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::ConfigError;
use crate::exec::{Checked, KernelSandbox};
use crate::permissions::{Mode, Rules};
use crate::servers::ServerSettings;

/// What one layer says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) hub: Option<String>,
    /// From the environment alone: arguments can be seen by every user of the machine.
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) tenant: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) roots: Option<Vec<PathBuf>>,
    pub(crate) share: Option<String>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) deny: Option<Vec<PathBuf>>,
    pub(crate) write: Option<Mode>,
    pub(crate) exec: Option<Mode>,
    /// From the settings file alone: rules take more room than a command line has.
    pub(crate) rules: Option<Arc<Rules>>,
    /// Whether commands run under the kernel's sandbox or not at all.
    pub(crate) kernel_sandbox: Option<KernelSandbox>,
    pub(crate) sandbox_read: Option<Vec<PathBuf>>,
    pub(crate) sandbox_write: Option<Vec<PathBuf>>,
    /// From the settings file alone, as the rules.
    pub(crate) commands: Option<Vec<Checked>>,
    /// As the commands.
    pub(crate) servers: Option<Vec<ServerSettings>>,
    /// A file of other programs with more of them.
    pub(crate) mcp_json: Option<PathBuf>,
    /// Whether the owner may be asked through an MCP client of theirs.
    pub(crate) ask_client: Option<bool>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// `foot.yaml`.
    File(PathBuf),
    /// A variable.
    Environment,
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment => f.write_str("environment"),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// The environment of the process, or of a test.
pub(crate) struct Environment {
    variable: Lookup,
    /// Where the system says that the user's home is.
    account_home: Option<PathBuf>,
}

type Lookup = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

impl Environment {
    /// The real one.
    pub(crate) fn of_process() -> Self {
        Self { variable: Box::new(|name| std::env::var_os(name)), account_home: super::account::home() }
    }

    #[cfg(test)]
    pub(crate) fn of(variables: &[(&str, &str)]) -> Self {
        let variables: std::collections::HashMap<String, OsString> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        Self { variable: Box::new(move |name| variables.get(name).cloned()), account_home: None }
    }

    #[cfg(test)]
    pub(crate) fn with_account_home(self, home: &str) -> Self {
        Self { account_home: Some(home.into()), ..self }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        self.get(name).map(|value| value.into_string().map_err(|_| ConfigError::NoText(name))).transpose()
    }

    /// Where programs are looked for.
    pub(crate) fn search_path(&self) -> Option<OsString> {
        self.get("PATH")
    }

    /// A folder that a variable names, or one in the home folder.
    pub(crate) fn folder(&self, name: &str, in_home: &str) -> Option<PathBuf> {
        let set = self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        set.or_else(|| Some(self.home()?.join(in_home)))
    }

    /// The home folder: what `HOME` says, else what the system does.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.homes().into_iter().next()
    }

    /// Both, that of `HOME` first: it may be another one, and neither holds anything for others.
    pub(crate) fn homes(&self) -> Vec<PathBuf> {
        let set = self.get("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let mut homes: Vec<PathBuf> = set.into_iter().chain(self.account_home.clone()).collect();
        homes.dedup();
        homes
    }
}

/// The variables that hold settings.
pub(super) fn from_environment(environment: &Environment) -> Result<Settings, ConfigError> {
    Ok(Settings {
        hub: environment.text("FOOTBRIDGE_URL")?,
        token: environment.text("FOOTBRIDGE_TOKEN")?,
        tenant: environment.text("FOOTBRIDGE_TENANT")?,
        project: environment.text("FOOTBRIDGE_PROJECT")?,
        ..Settings::default()
    })
}
