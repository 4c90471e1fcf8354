//! The environment of the process, read once, and only what concerns Footbridge.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::error::ConfigError;
use super::key::Key;
use super::layers::{Layer, from_environment};

/// What all variables of Footbridge start with.
const PREFIX: &str = "FOOTBRIDGE_";
/// The configuration file.
pub(super) const CONFIG: &str = "FOOTBRIDGE_CONFIG";
/// Where the CLI finds the hub.
pub(super) const URL: &str = "FOOTBRIDGE_URL";
/// The CLI's token.
pub(super) const TOKEN: &str = "FOOTBRIDGE_TOKEN";
/// The tenant that the CLI works in.
pub(super) const TENANT: &str = "FOOTBRIDGE_TENANT";
/// The project that the CLI works in.
pub(super) const PROJECT: &str = "FOOTBRIDGE_PROJECT";

/// The variable that holds the CLI's token: child processes that need none must not inherit it.
pub const TOKEN_VARIABLE: &str = TOKEN;

const OTHERS: [&str; 4] = ["HOME", "XDG_STATE_HOME", "USER", "LOGNAME"];
/// What programs inherit that the hub starts for documents: what they need to find their way, and no secret. What begins
/// with `LC_` is of these too.
const INHERITED: [&str; 15] = [
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Whom they trust.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];
/// By which way they reach the network: inherited too, in capitals or not, unless the address holds credentials.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
/// Edits between an unknown variable and a known one that make it look like a slip.
const SLIP: usize = 2;

/// Variables and their values. Holds secrets, so it cannot be printed.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self::of(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))))
    }

    /// The given variables. An empty value is one that is not set.
    pub fn of<N: Into<String>, V: Into<OsString>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let ours = |name: &str| name.starts_with(PREFIX) || OTHERS.contains(&name) || is_inherited(name);
        Self(variables.filter(|(name, value)| ours(name) && !value.is_empty()).collect())
    }

    /// What programs inherit that are not the hub's own.
    pub(super) fn inherited(&self) -> Vec<(OsString, OsString)> {
        let inherited =
            self.0.iter().filter(|(name, value)| is_inherited(name) && !(is_proxy(name) && holds_login(value)));
        inherited.map(|(name, value)| (name.into(), value.clone())).collect()
    }

    /// A value that may be no UTF-8: a path.
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// A value that must be text.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&str>, ConfigError> {
        self.get(name).map(|value| value.to_str().ok_or(ConfigError::NotUtf8 { name })).transpose()
    }

    /// The login name of who runs this; a hint, not a proof.
    pub fn user(&self) -> Option<&str> {
        ["USER", "LOGNAME"].into_iter().find_map(|name| self.get(name)?.to_str())
    }

    /// Variables that look like slips of known ones.
    pub(super) fn near_misses(&self) -> Vec<String> {
        let known: Vec<&str> =
            Key::ALL.into_iter().map(|key| key.spec().variable).chain([CONFIG, URL, TOKEN, TENANT, PROJECT]).collect();
        let unknown = self.0.keys().filter(|name| name.starts_with(PREFIX) && !known.contains(&name.as_str()));
        unknown
            .filter_map(|name| {
                let meant = known.iter().find(|known| strsim::osa_distance(name, known) <= SLIP)?;
                Some(format!("the environment variable {name} is not read; did you mean {meant}?"))
            })
            .collect()
    }
}

fn is_inherited(name: &str) -> bool {
    name.starts_with("LC_") || INHERITED.contains(&name) || is_proxy(name)
}

fn is_proxy(name: &str) -> bool {
    PROXIES.iter().any(|proxy| name == *proxy || name == proxy.to_ascii_lowercase())
}

/// Whether there is a user, and perhaps a password, in an address.
fn holds_login(address: &OsStr) -> bool {
    address.as_encoded_bytes().contains(&b'@')
}

/// What the environment says of the hub's settings.
pub(super) fn settings(environment: &Environment) -> Layer {
    let said = |key: Key| Some(from_environment(key, environment.get(key.spec().variable)?.to_owned()));
    Key::ALL.into_iter().filter_map(said).collect()
}
