//! What commands inherit of the foot's environment: what they need to work as at a terminal, and nothing that opens doors.
//!
//! A list of what goes through, not of what does not: tokens, and the sockets of agents and daemons, have any name.

use std::ffi::{OsStr, OsString};

/// Variables that go through.
const NAMES: [&str; 9] = ["HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "PATH"];
/// Beginnings of names that do.
const PREFIX: &str = "LC_";

/// Those variables of this process.
pub(crate) fn inherited() -> Vec<(OsString, OsString)> {
    of(std::env::vars_os())
}

fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    variables.filter(|(name, _)| goes_through(name)).collect()
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
}
