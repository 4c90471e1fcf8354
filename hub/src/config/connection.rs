//! Which hub the CLI talks to, and as whom: flags, then the environment, then the hub of the current folder.
//!
//! A token of the state folder goes to the hub it belongs to and to no other: with another address from a flag or the
//! environment, a token must come from there too.

use std::path::{Path, PathBuf};

use super::environment::{Environment, PROJECT, TENANT, TOKEN, URL};
use super::error::ConfigError;
use super::secret::Secret;
use super::state::{HubFile, StateFolder, read_token};

/// What the command line says of the connection.
#[derive(Debug, Clone, Default)]
pub struct ConnectionFlags {
    /// The hub's address.
    pub url: Option<String>,
    /// A file that holds the token.
    pub token_file: Option<PathBuf>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The project.
    pub project: Option<String>,
}

/// Which hub, and as whom. What is missing is missed only by a command that needs it.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The hub's address, as it was written.
    pub url: Option<String>,
    /// The token.
    pub token: Option<Secret>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The hub of the current folder, where the address comes from it.
    pub hub: Option<HubFile>,
}

/// Finds out which hub is meant; `folder` is the current one, canonical.
///
/// # Errors
/// A token file that cannot be read, or a variable that is no text.
pub fn resolve(
    flags: ConnectionFlags,
    environment: &Environment,
    state: Option<&StateFolder>,
    folder: &Path,
) -> Result<Connection, ConfigError> {
    let text = |flag: Option<String>, name| match flag {
        Some(value) => Ok(Some(value)),
        None => environment.text(name).map(|value| value.map(str::to_owned)),
    };
    let url = text(flags.url, URL)?;
    let tenant = text(flags.tenant, TENANT)?;
    let project = text(flags.project, PROJECT)?;
    let hub = state.and_then(|state| state.nearest(folder)).filter(|hub| match &url {
        None => true,
        Some(url) => url.trim_end_matches('/') == hub.url,
    });
    let token = match (flags.token_file, environment.text(TOKEN)?, &hub) {
        (Some(file), ..) => Some(read_token(&file)?),
        (None, Some(token), _) => Some(Secret::new(token)),
        (None, None, Some(hub)) => Some(read_token(&hub.token_file)?),
        (None, None, None) => None,
    };
    let of_hub = |value: fn(&HubFile) -> &String| hub.as_ref().map(|hub| value(hub).clone());
    Ok(Connection {
        url: url.or_else(|| of_hub(|hub| &hub.url)),
        token,
        tenant: tenant.or_else(|| of_hub(|hub| &hub.tenant)),
        project: project.or_else(|| of_hub(|hub| &hub.project)),
        hub,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::state::{HubLock, write_token};

    const FOLDER: &str = "/srv/site";

    /// A state folder in which the hub of [`FOLDER`] runs.
    fn running_hub(dir: &Path) -> (StateFolder, HubLock) {
        let state = StateFolder::find(&Environment::of([("XDG_STATE_HOME", dir.as_os_str())])).unwrap();
        let folder = state.hub_folder(Path::new(FOLDER));
        let lock = folder.lock().unwrap();
        let token_file = folder.path().join("token");
        write_token(&token_file, &Secret::new("of-the-folder")).unwrap();
        let hub = HubFile {
            url: "http://127.0.0.1:7800".to_owned(),
            tenant: "local".to_owned(),
            project: "main".to_owned(),
            token_file,
            subject: "ana".to_owned(),
            pid: 1,
            folder: FOLDER.into(),
        };
        folder.write_hub(&hub).unwrap();
        (state, lock)
    }

    fn shown(flags: ConnectionFlags, environment: &[(&str, &str)], state: &StateFolder) -> String {
        let environment = Environment::of(environment.iter().copied());
        let c = resolve(flags, &environment, Some(state), Path::new(FOLDER)).unwrap();
        let or_none = |value: Option<String>| value.unwrap_or("-".to_owned());
        let token = or_none(c.token.map(|token| token.reveal().to_owned()));
        format!("{} {token} {} {}", or_none(c.url), or_none(c.tenant), or_none(c.project))
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_hub_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (state, _lock) = running_hub(dir.path());
        let none = ConnectionFlags::default;
        assert_eq!(shown(none(), &[], &state), "http://127.0.0.1:7800 of-the-folder local main");
        assert_eq!(
            shown(none(), &[("FOOTBRIDGE_PROJECT", "beta"), ("FOOTBRIDGE_TOKEN", "t2")], &state),
            "http://127.0.0.1:7800 t2 local beta"
        );
        let token_file = dir.path().join("t3");
        write_token(&token_file, &Secret::new("t3")).unwrap();
        let flags = ConnectionFlags {
            project: Some("gamma".to_owned()),
            token_file: Some(token_file),
            ..ConnectionFlags::default()
        };
        assert_eq!(
            shown(flags, &[("FOOTBRIDGE_PROJECT", "beta"), ("FOOTBRIDGE_TOKEN", "t2")], &state),
            "http://127.0.0.1:7800 t3 local gamma"
        );
    }

    #[test]
    fn the_token_of_the_folder_goes_to_its_own_hub_only() {
        let dir = tempfile::tempdir().unwrap();
        let (state, _lock) = running_hub(dir.path());
        let to = |url: &str| ConnectionFlags { url: Some(url.to_owned()), ..ConnectionFlags::default() };
        assert_eq!(shown(to("https://elsewhere.example"), &[], &state), "https://elsewhere.example - - -");
        assert_eq!(
            shown(ConnectionFlags::default(), &[("FOOTBRIDGE_URL", "http://127.0.0.1:9")], &state),
            "http://127.0.0.1:9 - - -"
        );
        assert_eq!(shown(to("http://127.0.0.1:7800/"), &[], &state), "http://127.0.0.1:7800/ of-the-folder local main");
    }
}
