//! What a foot is told to be: bundled defaults < `foot.yaml` < environment < command line. The only reader of
//! environment and settings files.

mod account;
mod endpoint;
mod expand;
mod file;
mod inherited;
mod jsonc;
mod layers;
mod mcp_json;
mod own;
mod own_hub;
mod rules;
mod servers;
mod settings;
mod token;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use footbridge_shared::id::{FootName, MAX_NAME_BYTES, NameError, ProjectName, Subject, TenantName};
use footbridge_shared::limits::{DEFAULT_MAX_CONCURRENT, FOOT_QUEUE, MAX_MAX_CONCURRENT, MAX_SERVERS_PER_FOOT};
use footbridge_shared::message::Share;

pub use endpoint::{HubUrl, HubUrlError};
pub(crate) use inherited::{inherited, inherited_by_servers};
pub(crate) use own_hub::leave_out as leave_out_own_hub;
pub(crate) use settings::{Environment, Origin, Settings};
pub(crate) use token::open_to_others;
pub use token::{Token, TokenError, TokenSource};

use crate::exec::ExecSettings;
use crate::permissions::{Defaults, Rules};
use crate::policy::Floor;
use crate::runner::Runner;
use crate::servers::{LeftOut, ServerSettings};
use layers::Layers;
use own::Own;

/// The tenant of `footbridge up`, for whom names none.
const DEFAULT_TENANT: &str = "local";

/// The folder of all feet within a state folder. Below are tenants, projects, and the files of each foot.
pub(crate) const FEET_FOLDER: &str = "feet";

/// Within the user's state folder: the folders of hubs that were started for one folder, and in each the state of their foot.
const HUBS_FOLDER: &str = "hubs";
const FOOT_OF_HUB: &str = "foot";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A setting is missing.
    #[error("no {what}: {how}")]
    Missing {
        /// What.
        what: &'static str,
        /// How to set it.
        how: &'static str,
    },
    /// A name does not follow its rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The hub's address cannot be used.
    #[error(transparent)]
    Hub(#[from] HubUrlError),
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A number is out of its range.
    #[error("maxConcurrent is {0}; use 1 to {MAX_MAX_CONCURRENT}")]
    MaxConcurrent(u32),
    /// More servers than a foot may have.
    #[error("there are {0} MCP servers in the settings, the limit is {MAX_SERVERS_PER_FOOT}")]
    TooManyServers(usize),
    /// A variable holds bytes that are no text.
    #[error("the variable {0} holds no text")]
    NoText(&'static str),
    /// The settings file cannot be read.
    #[error("the settings file `{}` cannot be read: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Every user of the machine may write the settings file, and so say what this foot permits.
    #[error("the settings file `{}` may be written by everybody: run `chmod o-w` on it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The settings file is not understood.
    #[error("the settings file `{}` is not valid: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where known.
        reason: String,
    },
}

/// What a foot is told to be.
#[derive(Debug, Clone)]
pub struct FootConfig {
    /// The hub.
    pub hub: HubUrl,
    /// The token.
    pub token: TokenSource,
    /// The tenant it serves.
    pub tenant: TenantName,
    /// The project it serves.
    pub project: ProjectName,
    /// Its name.
    pub name: FootName,
    /// Whether it takes the place of a process of the same name on this machine. A name that nobody chose may be that of
    /// another folder: then it is better refused.
    pub supersede: bool,
    /// The folders it serves; relative paths in calls start at the first.
    pub roots: Vec<PathBuf>,
    /// For whom it works.
    pub share: Share,
    /// Where its key is kept.
    pub state: PathBuf,
    /// Certificates to trust besides the public authorities, as PEM.
    pub ca: Option<PathBuf>,
    /// Calls it runs at once.
    pub max_concurrent: u32,
    /// Calls it queues beyond those.
    pub max_queued: usize,
    /// Home folders: where links in them lead to keys and credentials, that is not served either.
    pub homes: Vec<PathBuf>,
    /// More that is never served: settings, token, state, and what the user keeps to themselves.
    pub deny: Vec<PathBuf>,
    /// How it runs commands, where that is permitted.
    pub exec: ExecSettings,
    /// Where its tools come from.
    pub runner: Runner,
    /// What it lets callers do.
    pub(crate) permitted: Permitted,
    /// Local MCP servers, by name.
    pub(crate) servers: Vec<ServerSettings>,
    /// Those that are not reached.
    pub(crate) left_out: Vec<LeftOut>,
    /// A file of other programs that says more of them.
    pub(crate) mcp_json: Option<PathBuf>,
}

/// What a foot lets callers do, as the settings say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permitted {
    /// What becomes of what no rule speaks of.
    pub(crate) defaults: Defaults,
    /// The owner's rules.
    pub(crate) rules: Arc<Rules>,
    /// Where programs are looked for.
    pub(crate) search_path: Option<OsString>,
    /// Whether the owner may be asked through an MCP client of theirs.
    pub(crate) ask_client: bool,
}

impl FootConfig {
    /// With the defaults for everything that is not said: the owner's alone, named after the first root.
    ///
    /// # Errors
    /// None as things are: the name made from a folder follows the rule for names.
    pub fn new(
        hub: HubUrl,
        token: TokenSource,
        tenant: TenantName,
        project: ProjectName,
        roots: Vec<PathBuf>,
        state: PathBuf,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            hub,
            token,
            tenant,
            project,
            name: default_name(roots.first().map(PathBuf::as_path))?,
            supersede: true,
            roots,
            share: Share::default(),
            state,
            ca: None,
            max_concurrent: DEFAULT_MAX_CONCURRENT,
            max_queued: FOOT_QUEUE,
            homes: Vec::new(),
            deny: Vec::new(),
            exec: ExecSettings::default(),
            runner: Runner::default(),
            permitted: Permitted::default(),
            servers: Vec::new(),
            left_out: Vec::new(),
            mcp_json: None,
        })
    }

    /// The folder of what this foot keeps.
    pub(crate) fn own_folder(&self) -> PathBuf {
        self.state.join(FEET_FOLDER).join(self.tenant.as_str()).join(self.project.as_str())
    }

    /// A file of what it keeps, by what its name ends with.
    pub(crate) fn own_file(&self, suffix: &str) -> PathBuf {
        self.own_folder().join(format!("{}.{suffix}", self.name))
    }

    /// What this foot never serves.
    pub(crate) fn floor(&self) -> Floor {
        floor(&self.homes, Some(&self.state), Some(&self.token), &self.deny)
    }
}

/// What a foot is told to serve.
#[derive(Debug)]
pub(crate) struct Served {
    hub: Option<String>,
    pub(crate) roots: Vec<PathBuf>,
    homes: Vec<PathBuf>,
    deny: Vec<PathBuf>,
    state: Option<PathBuf>,
    token: Option<TokenSource>,
    pub(crate) permitted: Permitted,
    pub(crate) exec: ExecSettings,
    pub(crate) servers: Vec<ServerSettings>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) ca: Option<PathBuf>,
    mcp_json: Option<PathBuf>,
}

impl Served {
    /// What is never served.
    pub(crate) fn floor(&self) -> Floor {
        floor(&self.homes, self.state.as_deref(), self.token.as_ref(), &self.deny)
    }
}

fn floor(homes: &[PathBuf], state: Option<&Path>, token: Option<&TokenSource>, deny: &[PathBuf]) -> Floor {
    let mut floor = Floor::new(homes.iter().map(PathBuf::as_path));
    if let Some(state) = state {
        floor.add(state, "state of the foot");
    }
    if let Some(TokenSource::File(path)) = token {
        floor.add(path, "token");
    }
    for path in deny {
        floor.add(path, "kept to themselves by the owner or the foot");
    }
    floor
}

/// A configuration, and where its settings come from.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) config: FootConfig,
    /// The settings file, which need not be there; `None` without a place for one.
    pub(crate) file: Option<PathBuf>,
    origins: Vec<(&'static str, Origin)>,
}

impl Resolved {
    /// Where a setting comes from.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.origins.iter().find(|(known, _)| *known == key).map_or(Origin::Default, |(_, origin)| origin.clone())
    }
}

/// Puts the layers on top of each other. `file` is a settings file that must exist; else the user's is read, if it does.
pub(crate) fn resolve(
    flags: Settings,
    file: Option<&Path>,
    environment: &Environment,
    here: &Path,
) -> Result<Resolved, ConfigError> {
    let mut layers = Layers::read(flags, file, environment, here)?;
    let served = layers.served(environment, here)?;

    let missing = |what, how| ConfigError::Missing { what, how };
    let hub = served.hub.ok_or(missing("hub", "give --hub URL or set FOOTBRIDGE_URL"))?.parse()?;
    let token = served.token.ok_or(missing("token", "give --token-file FILE or set FOOTBRIDGE_TOKEN"))?;
    let tenant = layers.pick("tenant", |layer| layer.tenant.take());
    let tenant = TenantName::parse(tenant.as_deref().unwrap_or(DEFAULT_TENANT))?;
    let project = layers.pick("project", |layer| layer.project.take());
    let project = project.ok_or(missing("project", "give --project NAME or set FOOTBRIDGE_PROJECT"))?;
    let project = ProjectName::parse(&project)?;
    let state = served.state.ok_or(missing("state folder", "give --state DIR or set HOME"))?;

    let mut config = FootConfig::new(hub, token, tenant, project, served.roots, state)?;
    match layers.pick("name", |layer| layer.name.take()) {
        Some(name) => config.name = FootName::parse(&name)?,
        None => config.supersede = false,
    }
    if let Some(share) = layers.pick("share", |layer| layer.share.take()) {
        config.share = parse_share(&share)?;
    }
    if let Some(max) = layers.pick("maxConcurrent", |layer| layer.max_concurrent.take()) {
        if !(1..=MAX_MAX_CONCURRENT).contains(&max) {
            return Err(ConfigError::MaxConcurrent(max));
        }
        config.max_concurrent = max;
    }
    config.ca = served.ca;
    config.deny = served.deny;
    config.homes = served.homes;
    config.permitted = served.permitted;
    config.exec = served.exec;
    config.servers = served.servers;
    config.left_out = served.left_out;
    config.mcp_json = served.mcp_json;
    let file = layers.file.clone().or_else(|| Own::new(environment).settings);
    Ok(Resolved { config, file, origins: layers.origins })
}

/// The same layers, for what they serve alone: neither a hub nor a token needs to be there.
pub(crate) fn served(
    flags: Settings,
    file: Option<&Path>,
    environment: &Environment,
    here: &Path,
) -> Result<Served, ConfigError> {
    Layers::read(flags, file, environment, here)?.served(environment, here)
}

/// The folders in which feet keep their keys: the one that is named, else the user's, and those of hubs of one folder in it.
pub(crate) fn state_folders(flags: Settings, environment: &Environment, here: &Path) -> Vec<PathBuf> {
    if let Some(state) = flags.state {
        return vec![here.join(state)];
    }
    let Some(state) = Own::new(environment).state else { return Vec::new() };
    let hubs = std::fs::read_dir(state.join(HUBS_FOLDER)).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = hubs.map(|hub| hub.path().join(FOOT_OF_HUB)).collect();
    folders.sort();
    folders.insert(0, state);
    folders
}

/// Reads `owner`, `project`, or a list of subjects with commas between them.
fn parse_share(text: &str) -> Result<Share, NameError> {
    match text.trim() {
        "owner" => Ok(Share::Owner),
        "project" => Ok(Share::Project),
        subjects => Ok(Share::Subjects(
            subjects.split(',').map(|subject| Subject::parse(subject.trim())).collect::<Result<_, _>>()?,
        )),
    }
}

/// A foot is named after the folder it serves.
fn default_name(root: Option<&Path>) -> Result<FootName, NameError> {
    let real = root.and_then(|root| std::fs::canonicalize(root).ok());
    let folder = real.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().to_lowercase());
    let mut slug = String::new();
    for c in folder.unwrap_or_default().chars() {
        if matches!(c, 'a'..='z' | '0'..='9') {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(MAX_NAME_BYTES - "foot-".len());
    let name = if slug.starts_with(|c: char| c.is_ascii_lowercase()) { slug } else { format!("foot-{slug}") };
    FootName::parse(name.trim_end_matches('-'))
}

/// Settings as a file would say them, without one.
#[cfg(test)]
pub(crate) fn settings_of(yaml: &str, home: &Path) -> Result<Settings, String> {
    file::parse(yaml, Path::new("/foot.yaml"), &Environment::of(&[("HOME", home.to_str().unwrap_or_default())]))
}

#[cfg(test)]
mod tests;
