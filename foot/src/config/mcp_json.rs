//! `mcp.json`: servers as other programs write them down. It is read where the owner names it, and never looked for.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::expand::expanded;
use super::own_hub::{self, Way};
use super::servers::Named;
use super::settings::Environment;
use super::{ConfigError, HubUrl};
use crate::failure::shown;
use crate::servers::{LeftOut, ServerSettings, ServerText, Transport};

/// The keys that servers stand under: what most programs write, and what VS Code does.
const KEYS: [&str; 2] = ["mcpServers", "servers"];

/// One server. Keys of other programs stand beside these.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, Value>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    headers: BTreeMap<String, String>,
    r#type: Option<String>,
    transport: Option<String>,
    disabled: bool,
    #[serde(flatten)]
    others: BTreeMap<String, serde::de::IgnoredAny>,
}

/// What the file says.
#[derive(Debug)]
pub(super) struct Others {
    pub(super) servers: Vec<ServerSettings>,
    /// Those that are not reached.
    pub(super) left_out: Vec<LeftOut>,
}

/// Reads the file.
///
/// # Errors
/// [`ConfigError`]: it cannot be read, or is no such file. A server in it that makes no sense is left out.
pub(super) fn read(path: &Path, environment: &Environment, hub: Option<&HubUrl>) -> Result<Others, ConfigError> {
    parse(&super::file::text(path)?, environment, hub)
        .map_err(|reason| ConfigError::Syntax { path: path.to_owned(), reason })
}

fn parse(text: &str, environment: &Environment, hub: Option<&HubUrl>) -> Result<Others, String> {
    let mut file: BTreeMap<String, Value> =
        serde_json::from_str(&super::jsonc::plain(text)).map_err(|error| error.to_string())?;
    let Some(Value::Object(entries)) = KEYS.iter().find_map(|key| file.remove(*key)) else {
        return Err(format!("there is no object `{}` in it", KEYS.join("`, or `")));
    };
    let home = environment.home();
    let (mut named, mut left_out) = (Named::new(home.as_deref()), Vec::new());
    for (name, entry) in entries {
        let take = || {
            let entry: Entry = serde_json::from_value(entry).map_err(|error| unquoted(&error.to_string()))?;
            if entry.disabled {
                return Ok(());
            }
            let text = entry.into_text(&name, environment)?;
            if hub.is_some_and(|hub| Way::from(&text).leads_to(hub)) {
                return Err(own_hub::WHY.to_owned());
            }
            named.add(&name, text)
        };
        if let Err(why) = take() {
            left_out.push(LeftOut { name: shown(&name), why });
        }
    }
    Ok(Others { servers: named.into_servers(), left_out })
}

/// Without a value that the reader quotes: it may be a secret.
fn unquoted(error: &str) -> String {
    match (error.split_once('"'), error.rsplit_once('"')) {
        (Some((before, _)), Some((_, after))) => format!("{before}…{after}"),
        _ => error.to_owned(),
    }
}

impl Entry {
    fn into_text(self, name: &str, environment: &Environment) -> Result<ServerText, String> {
        if !self.others.is_empty() {
            let keys: Vec<&String> = self.others.keys().collect();
            tracing::debug!(server = name, ?keys, "keys of a server that mean nothing to this foot");
        }
        let transport = match self.r#type.or(self.transport).as_deref().map(str::to_ascii_lowercase).as_deref() {
            None => None,
            Some("stdio" | "local") => Some(Transport::Stdio),
            Some("http" | "streamable-http" | "streamablehttp" | "streamable_http") => Some(Transport::Http),
            Some("sse") => Some(Transport::Sse),
            Some(other) => return Err(format!("`type`: `{}` is none of stdio, http, sse", shown(other))),
        };
        let env = self.env.into_iter().map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
            _ => Err(format!("`env`: the value of `{}` is no text", shown(&name))),
        });
        let text = ServerText {
            command: self.command,
            args: self.args,
            env: env.collect::<Result<_, String>>()?,
            cwd: self.cwd,
            url: self.url,
            headers: self.headers,
            transport,
            ..ServerText::default()
        };
        expanded(text, environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Target;

    fn parse(text: &str) -> Result<Vec<ServerSettings>, String> {
        whole(text).map(|others| others.servers)
    }

    fn whole(text: &str) -> Result<Others, String> {
        let hub = "http://localhost:7070".parse().unwrap();
        super::parse(text, &Environment::of(&[("TOKEN", "s3cret"), ("HOME", "/home/ada")]), Some(&hub))
    }

    #[test]
    fn the_hub_itself_is_left_out_even_where_its_entry_makes_no_sense_to_a_foot() {
        let others = whole(
            r#"{"mcpServers": {
                "Footbridge": {"command": "footbridge", "args": ["mcp-stdio"], "env": {"FOOTBRIDGE_PROJECT": "web"}},
                "tools": {"url": "http://127.0.0.1:7070/mcp/local/web"},
                "git": {"command": "git-mcp"}
            }}"#,
        );
        let others = others.unwrap();
        assert_eq!(others.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["git"]);
        let left_out: Vec<_> = others.left_out.iter().map(|left| (left.name.as_str(), left.why.as_str())).collect();
        assert_eq!(left_out, [("Footbridge", own_hub::WHY), ("tools", own_hub::WHY)]);
    }

    #[test]
    fn servers_of_other_programs_are_read_with_their_variables() {
        let text = r#"{"inputs": [], "mcpServers": {
            "@scope/Files": {"command": "npx", "args": ["-y", "x@${VERSION:-1}"], "env": {"A": "${TOKEN}", "N": 1}, "icon": "f"},
            "remote": {"type": "streamableHttp", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
            "old": {"type": "sse", "url": "https://example.org/sse"},
            "off": {"command": "x", "disabled": true}
        }}"#;
        let servers = parse(text).unwrap();
        let said: Vec<_> = servers.iter().map(|server| (server.name.as_str(), server.transport())).collect();
        assert_eq!(said, [("old", "sse"), ("remote", "http"), ("scope_files", "stdio")]);
        let Target::Program { args, env, .. } = &servers[2].target else { panic!("a program") };
        assert_eq!((args[1].as_str(), env["A"].as_str(), env["N"].as_str()), ("x@1", "s3cret", "1"));
        let Target::Http { headers, .. } = &servers[1].target else { panic!("an address") };
        assert_eq!(headers["authorization"], "Bearer s3cret");
    }

    #[test]
    fn what_makes_no_sense_costs_itself_and_says_why() {
        for (entry, part) in [
            (r#""a": {"command": "${NONE}"}"#, "`command`: the variable NONE is not set"),
            (r#""a": {}"#, "give `command`"),
            (r#""a": 1"#, "invalid type"),
            (r#""a": {"command": ["x"]}"#, "invalid type"),
            (r#""a": {"command": "x", "env": "s3cret"}"#, "string …, expected a map"),
            (r#""a": {"command": "x", "type": "pipe"}"#, "`pipe`"),
            (r#""a": {"command": "x", "env": {"FOOTBRIDGE_X": "1"}}"#, "`FOOTBRIDGE_X` is set by the foot alone"),
            (r#""Good": {"command": "x"}"#, "it would be called `good`, and so would `"),
            (r#""漢": {"command": "x"}"#, "no letter"),
            (r#""a": {"command": "x", "env": {"A": []}}"#, "`A`"),
        ] {
            let others = whole(&format!(r#"{{"mcpServers": {{"good": {{"command": "x"}}, {entry}}}}}"#)).unwrap();
            assert_eq!(
                others.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(),
                ["good"],
                "{entry}"
            );
            let [left] = others.left_out.as_slice() else { panic!("{entry}: {:?}", others.left_out) };
            assert!(left.why.contains(part), "{entry}: {}", left.why);
        }
    }

    #[test]
    fn a_file_that_is_another_is_refused() {
        for (text, part) in [("{}", "mcpServers"), ("{", "line 1"), (r#"{"mcpServers": []}"#, "mcpServers")] {
            let error = parse(text).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn files_of_editors_are_read_with_comments_and_their_own_key() {
        let others = whole(
            r#"{
                // What VS Code asks for.
                "inputs": [{"type": "promptString", "id": "key", "password": true,}],
                "servers": {
                    "docs": {"type": "http", "url": "https://example.org/mcp", /* "headers": {} */},
                    "older": {"type": "sse", "url": "https://example.org/sse"},
                    "surfer": {"serverUrl": "https://example.org/mcp"},
                    "asks": {"type": "stdio", "command": "x", "env": {"KEY": "${input:key}"}},
                },
            }"#,
        );
        let others = others.unwrap();
        let said: Vec<_> = others.servers.iter().map(|server| (server.name.as_str(), server.transport())).collect();
        assert_eq!(said, [("docs", "http"), ("older", "sse"), ("surfer", "http")]);
        let [left] = others.left_out.as_slice() else { panic!("{:?}", others.left_out) };
        assert_eq!(left.name, "asks");
        assert!(left.why.contains("`env`: `${input:key}`: inputs are asked by that client"), "{}", left.why);
    }
}
