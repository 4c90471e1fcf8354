//! Servers that are the hub itself, written down for other clients.
//!
//! A foot that offered its hub would lend its owner's token to everybody who may call the foot, and the hub's list of tools
//! would hold itself.

use std::collections::BTreeMap;

use super::HubUrl;
use crate::servers::{LeftOut, ServerSettings, ServerText, Target};

/// What is said of a server that is left out for this.
pub(super) const WHY: &str =
    "this is the hub that the foot serves: whoever may call the foot would call the hub as you";

/// Names of the programs that carry a client's messages to a hub.
const PROGRAMS: [&str; 2] = ["footbridge", "foot"];
/// How they are told to do that.
const BRIDGE: &str = "mcp-stdio";
/// How they are told which hub.
const URL_OPTION: &str = "--url";
const URL_VARIABLE: &str = "FOOTBRIDGE_URL";
/// What stands in the path of a hub's endpoints for MCP.
const ENDPOINT: &str = "/mcp";

/// Leaves out servers that lead to this hub.
pub(crate) fn leave_out(hub: &HubUrl, servers: &mut Vec<ServerSettings>, left_out: &mut Vec<LeftOut>) {
    servers.retain(|server| {
        let is_hub = Way::from(&server.target).leads_to(hub);
        if is_hub {
            left_out.push(LeftOut { name: server.name.to_string(), why: WHY.to_owned() });
        }
        !is_hub
    });
}

/// How a server is reached, as far as it can say which one it is.
pub(super) struct Way<'a> {
    url: Option<&'a str>,
    words: Vec<&'a str>,
    env: Option<&'a BTreeMap<String, String>>,
}

impl<'a> From<&'a ServerText> for Way<'a> {
    fn from(text: &'a ServerText) -> Self {
        let words = text.command.iter().chain(&text.args).map(String::as_str).collect();
        Self { url: text.url.as_deref(), words, env: Some(&text.env) }
    }
}

impl<'a> From<&'a Target> for Way<'a> {
    fn from(target: &'a Target) -> Self {
        match target {
            Target::Program { command, args, env, .. } => {
                let words = std::iter::once(command).chain(args).map(String::as_str).collect();
                Self { url: None, words, env: Some(env) }
            }
            Target::Http { url, .. } => Self { url: Some(url.as_str()), words: Vec::new(), env: None },
        }
    }
}

impl Way<'_> {
    /// Whether it leads to this hub.
    pub(super) fn leads_to(&self, hub: &HubUrl) -> bool {
        // A shell's script is one argument.
        let bare = |word| str::trim_matches(word, |mark| "\"';&|()".contains(mark));
        let words: Vec<&str> = self.words.iter().flat_map(|word| word.split_whitespace()).map(bare).collect();
        self.url.is_some_and(|url| hub.is_at(url)) || carries(&words, hub) || self.is_bridge(&words, hub)
    }

    /// The hub's own program. Where nobody says which hub it is for, it finds the one that runs here.
    fn is_bridge(&self, words: &[&str], hub: &HubUrl) -> bool {
        let Some(at) = words.iter().position(|word| PROGRAMS.contains(&program(word))) else { return false };
        if !words.iter().skip(at).any(|word| *word == BRIDGE) {
            return false;
        }
        let option = words.iter().enumerate().find_map(|(index, word)| match word.strip_prefix(URL_OPTION)? {
            "" => words.get(index + 1).copied(),
            joined => joined.strip_prefix('='),
        });
        let said = option.or_else(|| self.env?.get(URL_VARIABLE).map(String::as_str));
        said.is_none_or(|url| hub.is_at(url))
    }
}

/// Whether a program is given the address of the hub's tools, as those are that carry messages for clients without HTTP.
fn carries(words: &[&str], hub: &HubUrl) -> bool {
    let start = |word: &str| ["http://", "https://"].iter().find_map(|scheme| word.to_ascii_lowercase().find(scheme));
    let addresses = words.iter().filter_map(|word| word.get(start(word)?..));
    let mut endpoints = addresses.filter(|url| url.contains(ENDPOINT));
    endpoints.any(|url| hub.is_at(url))
}

/// The name of a program, or of an image that holds it, without its folder and its version.
fn program(word: &str) -> &str {
    let file = word.rsplit('/').next().unwrap_or(word);
    file.split([':', '@']).next().unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(yaml: &str) -> bool {
        let text: ServerText = serde_saphyr::from_str(yaml).unwrap();
        Way::from(&text).leads_to(&"http://localhost:7070".parse().unwrap())
    }

    #[test]
    fn the_hub_is_known_by_its_address_and_by_its_program() {
        for yaml in [
            "url: http://127.0.0.1:7070/mcp/local/web",
            "url: http://LOCALHOST:7070/anything",
            "url: 'http://[::1]:7070/mcp/local/web?pack=x'",
            "{command: footbridge, args: [mcp-stdio]}",
            "{command: /opt/bin/footbridge, args: [mcp-stdio, --project, web], env: {FOOTBRIDGE_TOKEN: t}}",
            "{command: footbridge, args: [mcp-stdio], env: {FOOTBRIDGE_URL: 'http://127.0.0.1:7070'}}",
            "{command: footbridge, args: [--url=http://localhost:7070/, mcp-stdio]}",
            "{command: footbridge, args: [mcp-stdio, --url, http://localhost:7070]}",
            "{command: sh, args: [-c, exec footbridge mcp-stdio]}",
            "{command: sh, args: [-c, 'exec \"$HOME/bin/footbridge\" mcp-stdio;']}",
            "{command: bridge, args: ['--http-url=HTTP://localhost:7070/mcp/local/web']}",
            "{command: docker, args: [run, -i, example.org/x/footbridge:1.2, mcp-stdio]}",
            "{command: npx, args: [-y, mcp-remote, 'http://localhost:7070/mcp/local/web']}",
            "{command: bridge, args: ['--server=http://localhost:7070/mcp/local/web']}",
        ] {
            assert!(leads(yaml), "{yaml}");
        }
    }

    #[test]
    fn what_is_no_hub_and_other_hubs_are_let_be() {
        for yaml in [
            "url: http://localhost:7071/mcp/local/web",
            "url: https://localhost/mcp/local/web",
            "url: http://hub.example.org:7070/mcp/local/web",
            "{command: footbridge, args: [mcp-stdio], env: {FOOTBRIDGE_URL: 'https://other.example.org'}}",
            "{command: footbridge, args: [mcp-stdio, --url, https://other.example.org]}",
            "{command: notes, args: [--origin, http://localhost:7070]}",
            "{command: git-mcp, args: [--repository, /src/footbridge]}",
            "{command: foot}",
        ] {
            assert!(!leads(yaml), "{yaml}");
        }
    }
}
