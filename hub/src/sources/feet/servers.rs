//! The local MCP servers of a foot: what each says of itself, kept under its name for as long as the foot has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use footbridge_mcp::{Fields, Version};
use footbridge_shared::id::EntryName;
use footbridge_shared::limits::{MAX_DESCRIPTION_CHARS, MAX_SERVER_BYTES, MAX_SERVERS_PER_FOOT};
use footbridge_shared::message::{Raw, ServerInfo};
use footbridge_shared::text::clean_and_cut;
use parking_lot::RwLock;
use serde_json::value::RawValue;

use super::foot::{Foot, State};
use super::lists::Lists;
use crate::domain::feet::FootServerSummary;
use crate::domain::mcp::McpDescription;
use crate::domain::mcp_notes::McpNotes;
use crate::domain::tool::RESERVED_NAMES;

/// Texts in a `serverInfo` that people read.
const INFO_TEXTS: [&str; 5] = ["name", "title", "version", "description", "websiteUrl"];
/// Longest of them, in characters.
const MAX_INFO_TEXT_CHARS: usize = 1024;

/// A server that may be shown.
#[derive(Debug)]
pub(super) struct CheckedServer {
    name: EntryName,
    description: McpDescription,
    digest: [u8; 32],
}

/// One local server.
#[derive(Debug)]
pub(super) struct LocalServer {
    pub(super) name: EntryName,
    said: RwLock<Said>,
    pub(super) lists: Lists,
    pub(super) notes: McpNotes,
}

#[derive(Debug)]
struct Said {
    description: Arc<McpDescription>,
    /// BLAKE3 of what it was made from.
    digest: [u8; 32],
}

/// The servers of one foot by name.
pub(super) type ServerSet = BTreeMap<EntryName, Arc<LocalServer>>;

impl LocalServer {
    fn new(CheckedServer { name, description, digest }: CheckedServer) -> Self {
        let said = RwLock::new(Said { description: Arc::new(description), digest });
        Self { name, said, lists: Lists::default(), notes: McpNotes::default() }
    }

    /// What it says of itself.
    pub(super) fn description(&self) -> Arc<McpDescription> {
        self.said.read().description.clone()
    }

    /// What a list of feet says of it.
    pub(super) fn summary(&self) -> FootServerSummary {
        FootServerSummary { name: self.name.clone(), protocol: self.description().version.to_string() }
    }

    /// Takes what it says now. Whether that is anything else.
    fn says(&self, CheckedServer { description, digest, .. }: CheckedServer) -> bool {
        let mut said = self.said.write();
        let changed = said.digest != digest;
        if changed {
            *said = Said { description: Arc::new(description), digest };
        }
        changed
    }
}

/// Checks the servers that a foot names: what is wrong is left out, with a line in the log for the first. `built_ins` are
/// names of the hub's own tools.
pub(super) fn check(foot: &str, servers: Vec<ServerInfo>, built_ins: &BTreeSet<String>) -> Vec<CheckedServer> {
    let mut checked: Vec<CheckedServer> = Vec::new();
    let (mut left_out, mut first) = (0_usize, None);
    for info in servers {
        let shown = clean_and_cut(&info.name, 64);
        let taken = |name: &EntryName| checked.iter().any(|other| other.name == *name);
        let fits = checked.len() < MAX_SERVERS_PER_FOOT;
        match check_one(info, built_ins) {
            Ok(server) if fits && !taken(&server.name) => checked.push(server),
            odd => {
                left_out += 1;
                let why = odd.err().unwrap_or_else(|| format!("named twice, or beyond {MAX_SERVERS_PER_FOOT}"));
                first.get_or_insert((shown, why));
            }
        }
    }
    if let Some((server, reason)) = first {
        tracing::info!(%foot, server, reason, left_out, "MCP servers of a foot were left out");
    }
    checked
}

fn check_one(info: ServerInfo, built_ins: &BTreeSet<String>) -> Result<CheckedServer, String> {
    let ServerInfo { name, capabilities, instructions, protocol, info } = info;
    let name = EntryName::parse(&name).map_err(|error| error.to_string())?;
    if RESERVED_NAMES.contains(&name.as_str()) || built_ins.contains(name.as_str()) {
        return Err("the name belongs to a tool of the hub".to_owned());
    }
    let texts = [Some(capabilities.get()), info.as_ref().map(|info| info.get()), instructions.as_deref()];
    let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
    if bytes > MAX_SERVER_BYTES {
        return Err(format!("it says {bytes} bytes of itself, the limit is {MAX_SERVER_BYTES}"));
    }
    let mut hasher = blake3::Hasher::new();
    for text in texts.into_iter().chain([protocol.as_deref()]) {
        hasher.update(&[u8::from(text.is_some())]);
        hasher.update(blake3::hash(text.unwrap_or_default().as_bytes()).as_bytes());
    }
    if Fields::of(&capabilities).is_none() {
        return Err("its capabilities are no object".to_owned());
    }
    let info = match info {
        Some(info) => cleaned_info(&info).ok_or("its `serverInfo` is no object")?,
        None => named(&name),
    };
    let description = McpDescription {
        // A foot that does not say it has servers with sessions.
        version: protocol.as_deref().and_then(Version::parse).unwrap_or(Version::LATEST_WITH_SESSION),
        info,
        capabilities,
        instructions: instructions.map(|text| clean_and_cut(&text, MAX_DESCRIPTION_CHARS)),
    };
    Ok(CheckedServer { name, description, digest: *hasher.finalize().as_bytes() })
}

/// The `serverInfo` of a server of which only the name is known.
fn named(name: &EntryName) -> Raw {
    let mut fields = Fields::new();
    fields.set_value("name", name.as_str());
    fields.set_value("version", "");
    fields.to_raw()
}

/// A `serverInfo` whose texts hold nothing hidden; the rest stays as it came. `None`: it is no object.
fn cleaned_info(info: &RawValue) -> Option<Raw> {
    let mut fields = Fields::of(info)?;
    for text in INFO_TEXTS {
        if let Some(said) = fields.read::<String>(text) {
            let cleaned = clean_and_cut(&said, MAX_INFO_TEXT_CHARS);
            if cleaned != said {
                fields.set_value(text, &cleaned);
            }
        }
    }
    Some(fields.to_raw())
}

impl State {
    /// Makes these the servers of the foot; those that it had go on under their names. Whether anything changed.
    pub(super) fn set_servers(&mut self, servers: Vec<CheckedServer>) -> bool {
        let mut changed = self.servers.len() != servers.len();
        let mut now = ServerSet::new();
        for server in servers {
            let server = match self.servers.get(&server.name) {
                Some(known) => {
                    changed |= known.says(server);
                    known.clone()
                }
                None => {
                    changed = true;
                    Arc::new(LocalServer::new(server))
                }
            };
            now.insert(server.name.clone(), server);
        }
        self.servers = Arc::new(now);
        changed
    }
}

impl Foot {
    /// Its servers, as the connection of this epoch knows them.
    pub(super) fn servers(&self, epoch: u64) -> Arc<ServerSet> {
        let state = self.state.lock();
        if state.epoch == epoch { state.servers.clone() } else { Arc::default() }
    }

    /// The foot named its servers anew. Whether anything changed.
    pub(super) fn serves(&self, epoch: u64, servers: Vec<CheckedServer>) -> bool {
        let mut state = self.state.lock();
        state.epoch == epoch && state.set_servers(servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn checked(servers: Value) -> Vec<CheckedServer> {
        check("dev", serde_json::from_value(servers).unwrap(), &BTreeSet::from(["whoami".to_owned()]))
    }

    #[test]
    fn what_is_wrong_with_a_server_leaves_out_that_one() {
        let good = |name: &str| json!({"name": name, "capabilities": {}});
        let mut servers = vec![
            good("git"),
            good("git"),
            good("Git"),
            good("a__b"),
            good(""),
            good("whoami"),
            good("tool_list"),
            json!({"name": "list", "capabilities": []}),
            json!({"name": "text", "capabilities": {}, "info": "x"}),
            json!({"name": "large", "capabilities": {}, "instructions": "x".repeat(MAX_SERVER_BYTES)}),
            good("db"),
        ];
        let names =
            |servers: &[CheckedServer]| servers.iter().map(|server| server.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&checked(json!(servers))), ["git", "db"]);
        servers.extend((0..100).map(|number| good(&format!("s{number}"))));
        assert_eq!(checked(json!(servers)).len(), MAX_SERVERS_PER_FOOT);
    }

    #[test]
    fn texts_are_cleaned_and_the_rest_is_as_it_came() {
        let info = r#"{"name":"G\u202eit","version":"1","x":{"n":1.10}}"#;
        let server = json!({"name": "git", "capabilities": {"prompts": {}}, "instructions": "Ask\u{200b}.", "protocol": "x",
            "info": serde_json::from_str::<Box<RawValue>>(info).unwrap()});
        let text = server.to_string().replace(&server["info"].to_string(), info);
        let mut servers = check("dev", vec![serde_json::from_str(&text).unwrap()], &BTreeSet::new());
        let description = servers.remove(0).description;
        assert_eq!(description.info.get(), r#"{"name":"Git","version":"1","x":{"n":1.10}}"#);
        assert_eq!(description.instructions.as_deref(), Some("Ask."));
        assert_eq!(description.version, Version::LATEST_WITH_SESSION);
        let bare = checked(json!([{"name": "git", "capabilities": {}}])).remove(0).description;
        assert_eq!(bare.info.get(), r#"{"name":"git","version":""}"#);
    }
}
