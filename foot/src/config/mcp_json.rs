//! `mcp.json`: servers as other programs write them down. It is read where the owner names it, and never looked for.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::own_hub::{self, Way};
use super::servers::Named;
use super::settings::Environment;
use super::{ConfigError, HubUrl};
use crate::failure::shown;
use crate::servers::{LeftOut, ServerSettings, ServerText, Transport};

/// The key of the servers.
const KEY: &str = "mcpServers";

/// One server. Keys of other programs stand beside these.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, Value>,
    cwd: Option<String>,
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
    let mut file: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(Value::Object(entries)) = file.remove(KEY) else {
        return Err(format!("there is no object `{KEY}` in it"));
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
        let fill = |key: &str, text: &str| expand(text, environment).map_err(|why| format!("`{key}`: {why}"));
        let one = |key: &str, text: Option<String>| text.map(|text| fill(key, &text)).transpose();
        let env = self.env.into_iter().map(|(name, value)| match value {
            Value::String(text) => Ok((name, fill("env", &text)?)),
            Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
            _ => Err(format!("`env`: the value of `{}` is no text", shown(&name))),
        });
        let headers = self.headers.into_iter().map(|(name, value)| Ok((name, fill("headers", &value)?)));
        Ok(ServerText {
            command: one("command", self.command)?,
            args: self.args.iter().map(|arg| fill("args", arg)).collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, String>>()?,
            cwd: one("cwd", self.cwd)?,
            url: one("url", self.url)?,
            headers: headers.collect::<Result<_, String>>()?,
            transport,
            ..ServerText::default()
        })
    }
}

/// Puts variables of the foot's own environment in the places `${NAME}`, `${env:NAME}` and `${NAME:-otherwise}`.
///
/// # Errors
/// Which one is not set.
fn expand(text: &str, environment: &Environment) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((place, behind)) = after.split_once('}') else { break };
        let (name, otherwise) = place.split_once(":-").map_or((place, None), |(name, text)| (name, Some(text)));
        let name = name.strip_prefix("env:").unwrap_or(name);
        let set = environment.get(name).map(std::ffi::OsString::into_string).transpose();
        let set = set.map_err(|_| format!("the variable {} holds no text", shown(name)))?;
        let value = set.or_else(|| otherwise.map(str::to_owned));
        let value = value.ok_or_else(|| format!("the variable {} is not set", shown(name)))?;
        out.push_str(before);
        out.push_str(&value);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
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
    fn a_place_that_does_not_end_is_none() {
        let environment = Environment::of(&[("A", "1")]);
        assert_eq!(expand("$A ${A} ${A", &environment).unwrap(), "$A 1 ${A");
    }
}
