//! The layers of settings on top of each other: command line, environment, file.

use std::path::{Path, PathBuf};

use footbridge_shared::limits::MAX_SERVERS_PER_FOOT;

use super::own::Own;
use super::{ConfigError, Environment, HubUrl, Origin, Permitted, Served, Settings, Token, TokenError, TokenSource};
use super::{file, settings};
use crate::exec::ExecSettings;
use crate::permissions::{Defaults, Mode};
use crate::servers::{LeftOut, ServerSettings};

/// Settings, strongest first.
pub(super) struct Layers {
    layers: Vec<(Origin, Settings)>,
    /// The settings file among them.
    pub(super) file: Option<PathBuf>,
    /// Which layer each setting came from that was taken out.
    pub(super) origins: Vec<(&'static str, Origin)>,
}

impl Layers {
    /// Reads all of them. `file` is a settings file that must exist; else the user's is read, if it does.
    pub(super) fn read(
        flags: Settings,
        file: Option<&Path>,
        environment: &Environment,
        here: &Path,
    ) -> Result<Self, ConfigError> {
        let mut layers = vec![(Origin::Flag, flags), (Origin::Environment, settings::from_environment(environment)?)];
        let users = Own::new(environment).settings.filter(|path| path.exists());
        let file = file.map(|path| here.join(path)).or(users);
        if let Some(path) = &file {
            layers.push((Origin::File(path.clone()), file::read(path, environment)?));
        }
        Ok(Self { layers, file, origins: Vec::new() })
    }

    /// Takes out what says which files are served.
    pub(super) fn served(&mut self, environment: &Environment, here: &Path) -> Result<Served, ConfigError> {
        let own = Own::new(environment);
        let token = self.pick("token", |layer| {
            let file = layer.token_file.take().map(|path| Ok(TokenSource::File(here.join(path))));
            file.or_else(|| layer.token.take().map(|text| parse_token(&text)))
        });
        let roots = self.pick("roots", |layer| layer.roots.take()).unwrap_or_else(|| vec![here.to_owned()]);
        let state = self.pick("state", |layer| layer.state.take()).map(|path| here.join(path));
        let state = state.or_else(|| own.state.clone());
        let (permitted, exec) = (self.permitted(environment), self.exec(here, &environment.homes()));
        let mcp_json = self.pick("mcpJson", |layer| layer.mcp_json.take()).map(|path| here.join(path));
        let hub = self.pick("hub", |layer| layer.hub.take());
        let (servers, left_out) = self.servers(mcp_json.as_deref(), environment, hub.as_deref())?;
        // No layer can take back what another one keeps to itself.
        let deny = self.all(|layer| layer.deny.take()).into_iter().flatten().map(|path| here.join(path));
        Ok(Served {
            hub,
            roots: roots.into_iter().map(|root| here.join(root)).collect(),
            homes: environment.homes(),
            // They hold secrets, and say what is permitted and what is started.
            deny: deny.chain(own.folders()).chain(self.file.clone()).chain(mcp_json.clone()).collect(),
            state,
            token: token.transpose()?,
            permitted,
            exec,
            servers,
            left_out,
            ca: self.pick("ca", |layer| layer.ca.take()).map(|path| here.join(path)),
            mcp_json,
        })
    }

    /// Takes out the local MCP servers: those of the settings go before those of other programs.
    fn servers(
        &mut self,
        mcp_json: Option<&Path>,
        environment: &Environment,
        hub: Option<&str>,
    ) -> Result<(Vec<ServerSettings>, Vec<LeftOut>), ConfigError> {
        // An address that is none is told where a hub is needed.
        let hub: Option<HubUrl> = hub.and_then(|hub| hub.parse().ok());
        let mut servers = self.pick("servers", |layer| layer.servers.take()).unwrap_or_default();
        let mut left_out = Vec::new();
        if let Some(path) = mcp_json {
            let others = super::mcp_json::read(path, environment, hub.as_ref())?;
            left_out = others.left_out;
            for other in others.servers {
                if servers.iter().all(|server| server.name != other.name) {
                    servers.push(other);
                }
            }
        }
        servers.retain(|server| !server.disabled);
        if let Some(hub) = &hub {
            super::own_hub::leave_out(hub, &mut servers, &mut left_out);
        }
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        if servers.len() > MAX_SERVERS_PER_FOOT {
            return Err(ConfigError::TooManyServers(servers.len()));
        }
        Ok((servers, left_out))
    }

    /// Takes out what says what callers may do.
    fn permitted(&mut self, environment: &Environment) -> Permitted {
        let mut mode = |key, get: fn(&mut Settings) -> Option<Mode>| self.pick(key, get).unwrap_or_default();
        let write = mode("write", |layer| layer.write.take());
        let exec = mode("exec", |layer| layer.exec.take());
        Permitted {
            defaults: Defaults { write, exec },
            rules: self.pick("permissions", |layer| layer.rules.take()).unwrap_or_default(),
            search_path: environment.search_path(),
            ask_client: self.pick("askClient", |layer| layer.ask_client.take()).unwrap_or_default(),
        }
    }

    /// Takes out what says how commands are run.
    fn exec(&mut self, here: &Path, homes: &[PathBuf]) -> ExecSettings {
        let sandbox = self.pick("kernelSandbox", |layer| layer.kernel_sandbox.take()).unwrap_or_default();
        let commands = self.pick("commands", |layer| layer.commands.take()).unwrap_or_default();
        let mut folders = |get: fn(&mut Settings) -> Option<Vec<PathBuf>>| -> Vec<PathBuf> {
            self.all(get).into_iter().flatten().map(|path| here.join(path)).collect()
        };
        ExecSettings {
            sandbox,
            extra_read: folders(|layer| layer.sandbox_read.take()).into_iter().chain(git_settings(homes)).collect(),
            extra_write: folders(|layer| layer.sandbox_write.take()),
            commands,
            ..ExecSettings::default()
        }
    }

    /// The strongest layer that says anything.
    pub(super) fn pick<T>(&mut self, key: &'static str, get: impl Fn(&mut Settings) -> Option<T>) -> Option<T> {
        let (origin, value) = self.layers.iter_mut().find_map(|(origin, layer)| Some((origin.clone(), get(layer)?)))?;
        self.origins.push((key, origin));
        Some(value)
    }

    /// What all layers say.
    fn all<T>(&mut self, get: impl Fn(&mut Settings) -> Option<T>) -> Vec<T> {
        self.layers.iter_mut().filter_map(|(_, layer)| get(layer)).collect()
    }
}

/// Git's settings of a user. Git gives up, whatever it is to do, on settings that are there and cannot be read. Its
/// credentials lie elsewhere, and stay out of reach.
const GIT_SETTINGS: [&str; 4] = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Those that there are.
fn git_settings(homes: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let all = homes.iter().flat_map(|home| GIT_SETTINGS.map(|path| home.join(path)));
    all.filter(|path| path.is_file())
}

fn parse_token(text: &str) -> Result<TokenSource, ConfigError> {
    let token = Token::parse(text).ok_or_else(|| TokenError::Malformed("FOOTBRIDGE_TOKEN".to_owned()))?;
    Ok(TokenSource::Value(token))
}
