//! How client and hub come to know each other: `initialize`, `server/discover`, and what the hub says it can do.

use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::{Fields, Raw, RpcError, Version, codes, meta as names};
use footbridge_shared::ErrorCode;
use footbridge_shared::text::clean_and_cut;
use serde_json::{Value, json};

use super::message::object;
use super::peer::{Peer, View, rpc_error};
use crate::domain::failure::Failure;
use crate::domain::mcp::{McpDescription, McpServer};

/// Versions that are spoken here, oldest first.
pub(super) const VERSIONS: [Version; 4] =
    [Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25, Version::V2026_07_28];

/// Characters of all instructions together.
const MAX_INSTRUCTIONS_CHARS: usize = 16 * 1024;
/// Characters of one server's.
const MAX_SERVER_INSTRUCTIONS_CHARS: usize = 4 * 1024;
/// Characters of a tool's name that is shown as an example.
const MAX_EXAMPLE_CHARS: usize = 128;
/// How long a client waits for a server that has not been heard of yet.
const DESCRIPTION_WAIT: Duration = Duration::from_secs(10);
/// How often it is looked for meanwhile, beside every change.
const DESCRIPTION_LOOK: Duration = Duration::from_millis(250);
/// Extensions whose methods and results are carried as they come.
const CARRIED_EXTENSIONS: [&str; 1] = ["io.modelcontextprotocol/tasks"];

/// The version that a session follows, for what its client wants.
pub(super) fn session_version(wanted: &str) -> Version {
    match Version::parse(wanted) {
        // The first version has another transport; what is closest to it here is the next one.
        Some(Version::V2024_11_05) => Version::V2025_03_26,
        Some(version) if version <= Version::LATEST_WITH_SESSION => version,
        _ => Version::LATEST_WITH_SESSION,
    }
}

/// What the hub, or the one server that the client sees, says of itself.
pub(super) struct Hello {
    info: Raw,
    capabilities: Raw,
    instructions: Option<String>,
}

impl Hello {
    /// For this client.
    ///
    /// # Errors
    /// The server that it wants is not there, or has not been heard of.
    pub(super) async fn of(peer: &Peer) -> Result<Self, RpcError> {
        match &peer.view {
            View::All => {
                let servers = peer.servers().await?;
                let instructions = instructions(&servers);
                Ok(Self { info: own_info(), capabilities: capabilities(), instructions })
            }
            View::Pack(name) => {
                let description = described(peer, &peer.server(name).await?).await?;
                Ok(Self {
                    info: description.info.clone(),
                    capabilities: carried(&description.capabilities, peer.version),
                    instructions: description.instructions.clone(),
                })
            }
        }
    }

    /// The result of `initialize`.
    pub(super) fn initialized(self, version: Version) -> Raw {
        let mut result = Fields::new();
        result.set_value("protocolVersion", version.as_str());
        result.set("capabilities", self.capabilities);
        result.set("serverInfo", self.info);
        if let Some(instructions) = self.instructions {
            result.set_value("instructions", &instructions);
        }
        result.to_raw()
    }

    /// The result of `server/discover`.
    pub(super) fn discovered(self) -> Raw {
        let mut result = Fields::new();
        result.set_value("resultType", "complete");
        result.set_value("supportedVersions", &VERSIONS.map(Version::as_str));
        result.set("capabilities", self.capabilities);
        if let Some(instructions) = self.instructions {
            result.set_value("instructions", &instructions);
        }
        // Servers come and go: it is asked for anew.
        result.set_value("ttlMs", &0);
        result.set_value("cacheScope", "private");
        let mut meta = Fields::new();
        meta.set(names::SERVER_INFO, self.info);
        result.set("_meta", meta.to_raw());
        result.to_raw()
    }
}

/// The hub's own `serverInfo`.
pub(super) fn own_info() -> Raw {
    object([
        ("name", "footbridge".into()),
        ("title", "Footbridge".into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
    ])
}

/// Waits a little for a server that has not been heard of yet: the hub may have just started.
async fn described(peer: &Peer, server: &Arc<dyn McpServer>) -> Result<Arc<McpDescription>, RpcError> {
    let mut changes = peer.state.mcp.changes().follow();
    let look = async {
        loop {
            if let Some(description) = server.description() {
                return description;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(DESCRIPTION_LOOK) => {}
            }
        }
    };
    tokio::time::timeout(DESCRIPTION_WAIT, look).await.map_err(|_| {
        let message = format!("the MCP server `{}` cannot be reached", server.name());
        rpc_error(
            &Failure::not_run(ErrorCode::ServerUnavailable, message)
                .hint("its pack's state says why; try again once it is ready"),
        )
    })
}

/// Whether a server offers something beside tools. One that has not been heard of yet may.
pub(super) fn offers(server: &Arc<dyn McpServer>, capability: &str) -> bool {
    server.description().is_none_or(|description| {
        Fields::of(&description.capabilities).is_some_and(|capabilities| capabilities.get(capability).is_some())
    })
}

/// What the hub offers in the view of everything: whatever an attached server may.
fn capabilities() -> Raw {
    let mut capabilities = Fields::new();
    capabilities.set_value("tools", &json!({"listChanged": true}));
    capabilities.set_value("resources", &json!({"subscribe": true, "listChanged": true}));
    // A session may outlive what is attached now: what a server brings later is told as a change.
    capabilities.set_value("prompts", &json!({"listChanged": true}));
    capabilities.set_value("completions", &json!({}));
    // What calls print is told as log messages to those who ask for it.
    capabilities.set_value("logging", &json!({}));
    capabilities.to_raw()
}

/// The capabilities of one server, but those that are not carried.
fn carried(capabilities: &Raw, version: Version) -> Raw {
    let Some(mut fields) = Fields::of(capabilities) else { return capabilities.clone() };
    fields.take("tasks");
    if let Some(extensions) = fields.take("extensions").as_ref().and_then(|raw| Fields::of(raw)) {
        // Without a session the server hears with each request what the client of that request knows.
        let speaks = |(name, _): &(&str, &Raw)| version == Version::V2026_07_28 && CARRIED_EXTENSIONS.contains(name);
        let kept: Fields = extensions.iter().filter(speaks).map(|(name, raw)| (name, raw.clone())).collect();
        if let Some(kept) = kept.into_raw_unless_empty() {
            fields.set("extensions", kept);
        }
    }
    // Changes are noticed whether or not the server tells.
    for list in ["tools", "resources", "prompts"] {
        if let Some(mut list_fields) = fields.get(list).and_then(|raw| Fields::of(raw)) {
            list_fields.set_value("listChanged", &Value::Bool(true));
            fields.set(list, list_fields.to_raw());
        }
    }
    fields.to_raw()
}

fn instructions(servers: &[Arc<dyn McpServer>]) -> Option<String> {
    let mut all = String::new();
    let mut room = MAX_INSTRUCTIONS_CHARS;
    for server in servers {
        let Some(text) = server.description().and_then(|description| description.instructions.clone()) else {
            continue;
        };
        let text = clean_and_cut(text.trim(), MAX_SERVER_INSTRUCTIONS_CHARS.min(room));
        if text.is_empty() {
            continue;
        }
        room = room.saturating_sub(text.chars().count());
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        let tools = server.tools();
        let names = tools.names.iter().map(|(original, public)| (original.as_str(), public.as_str()));
        all.push_str(&format!("## {}\n{}{text}", server.name(), other_names(names)));
    }
    (!all.is_empty()).then_some(all)
}

/// What a server calls its tools, as far as that is something else here: its own text does not know.
fn other_names<'a>(mut names: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let Some((original, public)) = names.find(|(original, public)| original != public) else { return String::new() };
    let original = clean_and_cut(original, MAX_EXAMPLE_CHARS);
    format!("(The tools that it calls by its own names have longer ones here: its `{original}` is `{public}`.)\n")
}

/// What is not spoken here.
pub(super) fn unsupported(requested: &str) -> RpcError {
    let data = object([
        ("requested", footbridge_shared::text::clean_and_cut(requested, 40).into()),
        ("supported", VERSIONS.map(Version::as_str).to_vec().into()),
    ]);
    RpcError { data: Some(data), ..RpcError::new(codes::UNSUPPORTED_VERSION, "Unsupported protocol version") }
}

/// There is no such method for this client.
pub(super) fn method_not_found(method: &str) -> RpcError {
    let method = clean_and_cut(method, 80);
    RpcError::new(codes::METHOD_NOT_FOUND, format!("Method not found: {method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_follows_the_closest_version() {
        for (wanted, given) in [
            ("2024-11-05", Version::V2025_03_26),
            ("2025-06-18", Version::V2025_06_18),
            ("2026-07-28", Version::V2025_11_25),
            ("1999-01-01", Version::V2025_11_25),
        ] {
            assert_eq!(session_version(wanted), given, "{wanted}");
        }
    }

    #[test]
    fn instructions_say_what_a_servers_own_names_are_here() {
        let said = other_names([("echo", "echo"), ("get-sum", "every__get_sum")].into_iter());
        assert!(said.contains("its `get-sum` is `every__get_sum`") && said.ends_with('\n'), "{said}");
        assert_eq!(other_names([("echo", "echo")].into_iter()), "");
        assert_eq!(other_names(std::iter::empty()), "");
    }

    #[test]
    fn capabilities_are_passed_on_but_what_is_not_carried() {
        let given =
            r#"{"tools":{},"tasks":{"list":{}},"experimental":{"x":{"n":1.10}},"resources":{"subscribe":true}}"#;
        let given_carried = carried(&serde_json::from_str(given).unwrap(), Version::V2025_11_25);
        assert_eq!(
            given_carried.get(),
            r#"{"tools":{"listChanged":true},"experimental":{"x":{"n":1.10}},"resources":{"subscribe":true,"listChanged":true}}"#
        );
        let extended = r#"{"extensions":{"io.modelcontextprotocol/tasks":{"n":1.10},"io.example/x":{}}}"#;
        let extended = serde_json::from_str(extended).unwrap();
        let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{"n":1.10}}}"#;
        assert_eq!(carried(&extended, Version::V2026_07_28).get(), tasks);
        assert_eq!(carried(&extended, Version::V2025_11_25).get(), "{}");
    }
}
