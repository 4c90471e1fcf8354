//! What commands, and local MCP servers, inherit of the foot's environment: what they need to work as at a terminal, and nothing
//! that opens doors.
//!
//! A list of what goes through, not of what does not: tokens, and the sockets of agents and daemons, have any name.

use std::ffi::{OsStr, OsString};

/// Variables that go through to all.
const NAMES: [&str; 9] = ["HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "PATH"];
/// Beginnings of names that do.
const PREFIX: &str = "LC_";

/// Variables that go through to local MCP servers besides, in capitals and not: what `uvx`, `npx` and the like need to work as
/// in the owner's shell. They say whom to trust, which way leads out, where packages come from, and where folders are.
///
/// The owner names these programs, and unless `confine` says otherwise they run with the account, as under any other client.
/// Still no token goes through, and no socket of an agent: what a server needs of those stands in its `env`. An address with
/// credentials in it does not go through either.
const OF_SERVERS: [&str; 67] = [
    // Certificates.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "NPM_CONFIG_CAFILE",
    "NPM_CONFIG_STRICT_SSL",
    // Proxies.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "NODE_USE_ENV_PROXY",
    "NPM_CONFIG_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_NOPROXY",
    // Where packages come from, and how.
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX_STRATEGY",
    "UV_FIND_LINKS",
    "UV_INSECURE_HOST",
    "UV_OFFLINE",
    "UV_CONFIG_FILE",
    "UV_LINK_MODE",
    "UV_PYTHON",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_PREFERENCE",
    "UV_PYTHON_INSTALL_MIRROR",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_CONFIG_FILE",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_GLOBALCONFIG",
    // Folders.
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "UV_TOOL_BIN_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NVM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "JAVA_HOME",
];

/// Those variables of this process that go through to commands.
pub(crate) fn inherited() -> Vec<(OsString, OsString)> {
    of(std::env::vars_os())
}

/// Those that go through to local MCP servers.
pub(crate) fn inherited_by_servers() -> Vec<(OsString, OsString)> {
    of_servers(std::env::vars_os())
}

fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    variables.filter(|(name, _)| goes_through(name)).collect()
}

fn of_servers(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let goes = |(name, value): &(OsString, OsString)| {
        if goes_through(name) {
            return true;
        }
        let listed = name.to_str().is_some_and(|name| OF_SERVERS.contains(&name.to_ascii_uppercase().as_str()));
        let secret = listed && has_credentials(&value.to_string_lossy());
        if secret {
            let name = name.display();
            tracing::info!(%name, "a variable with credentials does not go through to local MCP servers; `env` of one can set it");
        }
        listed && !secret
    };
    variables.filter(goes).collect()
}

/// Whether an address among these says who asks.
fn has_credentials(value: &str) -> bool {
    value.split([' ', ',']).any(|word| {
        let address = word.split_once("://").map_or(word, |(_, address)| address);
        // A path is none; what follows the host may hold any character.
        address.split('/').next().is_some_and(|host| host.contains('@'))
    })
}

fn goes_through(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| NAMES.contains(&name) || name.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_goes_through_but_what_is_listed() {
        let names = ["HOME", "LC_ALL", "SSH_AUTH_SOCK", "DOCKER_HOST", "FOOTBRIDGE_TOKEN", "AWS_PROFILE", "LD_PRELOAD"];
        let variables = names.iter().map(|name| (OsString::from(name), OsString::from("x")));
        let through: Vec<OsString> = of(variables).into_iter().map(|(name, _)| name).collect();
        assert_eq!(through, ["HOME", "LC_ALL"]);
    }

    #[test]
    fn servers_get_what_leads_to_packages_and_no_credentials() {
        let variables = [
            ("HOME", "/home/a@b"),
            ("SSL_CERT_FILE", "/home/a@b/ca.pem"),
            ("https_proxy", "http://proxy:3128"),
            ("HTTP_PROXY", "http://me:s3cret@proxy:3128"),
            ("ALL_PROXY", "me:s3cret@proxy:3128"),
            ("npm_config_registry", "https://npm.example/@scope/"),
            ("UV_INDEX", "https://a.example/simple own=https://me:s3cret@b.example/simple"),
            ("UV_PUBLISH_TOKEN", "s3cret"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("LD_PRELOAD", "x.so"),
        ];
        let through = of_servers(variables.iter().map(|(name, value)| (name.into(), value.into())));
        let names: Vec<&OsStr> = through.iter().map(|(name, _)| name.as_os_str()).collect();
        assert_eq!(names, ["HOME", "SSL_CERT_FILE", "https_proxy", "npm_config_registry"]);
    }
}
