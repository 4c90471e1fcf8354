//! The MCP servers of feet: named, checked, seen by those for whom their foot works.

use std::sync::Arc;

use footbridge_mcp::Version;
use footbridge_shared::limits::PART_FRAME_BYTES;
use footbridge_shared::message::{FootToHub, Hello, HubToFoot, Share, ToolsAck};
use footbridge_shared::part::{HEADER_BYTES, Part};
use serde_json::{Value, json};

use super::harness::{Heard, Hub, Identity, TestFoot, subject};
use crate::domain::feet::FootDirectory as _;
use crate::domain::mcp::{ListKind, McpServer};
use crate::domain::tool::Tool;
use crate::sources::feet::Frame;

/// A server that has nothing but tools.
fn server(name: &str) -> Value {
    json!({"name": name, "capabilities": {"tools": {}}, "protocol": "2025-06-18"})
}

/// A tool of a server.
fn tool(server: &str, name: &str) -> Value {
    json!({"name": format!("{server}__{name}"), "originalName": name.to_uppercase(), "description": "",
        "inputSchema": {"type": "object"}, "pack": server})
}

pub(super) fn with_servers(servers: Value) -> impl FnOnce(&mut Hello) {
    move |hello| hello.servers = serde_json::from_value(servers).unwrap()
}

impl Hub {
    /// The servers that somebody sees.
    pub(super) async fn servers(&self, who: &str) -> Vec<Arc<dyn McpServer>> {
        self.registry.servers_below(&self.scope, &subject(who), |_| false)
    }

    async fn server_names(&self, who: &str) -> Vec<String> {
        self.servers(who).await.iter().map(|server| server.name().to_string()).collect()
    }

    /// One of them.
    pub(super) async fn server(&self, who: &str, name: &str) -> Arc<dyn McpServer> {
        self.servers(who).await.into_iter().find(|server| server.name().as_str() == name).unwrap()
    }
}

/// Says a message that may be long, under an id of its own if it is.
pub(super) async fn say_long(foot: &mut TestFoot, id: [u8; 16], text: &str) {
    let parts: Vec<&[u8]> = text.as_bytes().chunks(PART_FRAME_BYTES - HEADER_BYTES).collect();
    for (seq, data) in (0..).zip(&parts) {
        let last = seq as usize + 1 == parts.len();
        foot.say_frame(Frame::Binary(Part { id, seq, last, data }.encode().unwrap().into())).await;
    }
}

/// The answer to a change of tools, after the receipts before it.
async fn tools_ack(foot: &mut TestFoot) -> ToolsAck {
    loop {
        match foot.hear().await {
            Heard::Message(HubToFoot::ToolsAck(ack)) => return ack,
            Heard::Message(HubToFoot::Credit(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn servers_come_with_their_foot_and_go_with_it() {
    let hub = Hub::new().await;
    let mut changes = hub.surfaces.follow();
    let mut foot = hub.foot_as("ada", Identity::new("dev"), with_servers(json!([server("git"), server("Bad")]))).await;
    assert!(changes.has_changed().unwrap());
    assert_eq!(hub.server_names("ada").await, ["git"]);
    assert!(hub.servers("bob").await.is_empty(), "the foot does not work for him");
    let git = hub.server("ada", "git").await;
    let description = git.description().unwrap();
    assert_eq!((description.version, description.info.get()), (Version::V2025_06_18, r#"{"name":"git","version":""}"#));

    foot.change(1, json!([tool("git", "show"), tool("git", "log"), tool("other", "x")]), &[]).await;
    let tools = hub.server("ada", "git").await.tools();
    let tools: Vec<_> = tools.names.iter().map(|(original, public)| (original.as_str(), public.as_str())).collect();
    assert_eq!(tools, [("SHOW", "git__show"), ("LOG", "git__log")], "in the order of the server");
    let feet = hub.registry.feet(&hub.scope, &subject("ada"));
    let listed = &feet[0].details.as_ref().unwrap().servers;
    assert_eq!(serde_json::to_value(listed).unwrap(), json!([{"name": "git", "protocol": "2025-06-18"}]));

    changes.mark_unchanged();
    foot.say_text(&json!({"type": "servers", "servers": [server("git"), server("db")]}).to_string()).await;
    changes.changed().await.unwrap();
    assert_eq!(hub.server_names("ada").await, ["db", "git"]);
    changes.mark_unchanged();
    foot.say_text(&json!({"type": "servers", "servers": [server("git"), server("db")]}).to_string()).await;
    foot.change(2, json!([]), &[]).await;
    assert!(!changes.has_changed().unwrap(), "nothing changed");

    drop(foot);
    changes.changed().await.unwrap();
    assert!(hub.servers("ada").await.is_empty());
    assert!(git.listed(ListKind::Prompts).is_empty(), "who still has it may ask");
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_resumes_keeps_its_servers_and_another_one_does_not() {
    let hub = Hub::new().await;
    let foot = hub.foot_as("ada", Identity::new("dev"), with_servers(json!([server("git")]))).await;
    let (foot, welcome) = foot.resume(&hub, "ada", &[]).await;
    assert!(welcome.resumed);
    assert_eq!(hub.server_names("ada").await, ["git"], "until it names them");
    let _other = hub.foot_as("ada", foot.identity.restarted(), |_| {}).await;
    assert!(hub.servers("ada").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn servers_of_one_name_are_told_apart_and_each_stands_there_once() {
    let hub = Hub::new().await;
    let share = |share| {
        move |hello: &mut Hello| {
            hello.share = share;
            hello.servers = serde_json::from_value(json!([server("git")])).unwrap();
        }
    };
    let mut bobs = hub.foot_as("bob", Identity::new("build-box"), share(Share::Project)).await;
    bobs.change(1, json!([tool("git", "log")]), &[]).await;
    assert_eq!(hub.server_names("ada").await, ["git"]);
    let mut own = hub.foot_as("ada", Identity::new("laptop"), share(Share::Owner)).await;
    own.change(1, json!([tool("git", "log")]), &[]).await;
    assert_eq!(hub.server_names("ada").await, ["build_box_git", "git"], "her own one has the bare name");
    let foreign = hub.server("ada", "build_box_git").await.tools();
    assert_eq!(foreign.names[0].1.as_str(), "build_box__git__log");
    assert_eq!(hub.server("ada", "git").await.tools().names[0].1.as_str(), "git__log");
    assert_eq!(hub.server_names("bob").await, ["git"], "nobody learns of a foot that is not for him");
    let below = |document: &'static str| {
        let servers = hub.registry.servers_below(&hub.scope, &subject("ada"), |name| name.as_str() == document);
        servers.iter().map(|server| server.name().to_string()).collect::<Vec<_>>()
    };
    assert!(below("git").is_empty(), "a document of that name hides both");
    assert_eq!(below("build_box_git"), ["git"]);
    drop(own);
    hub.settles(|counts| counts.connections == 1).await;
    assert_eq!(hub.server_names("ada").await, ["build_box_git"], "her foot holds the name while it may come back");
}

#[tokio::test(start_paused = true)]
async fn a_long_list_of_servers_comes_in_parts() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let talker =
        |number: usize| json!({"name": format!("s{number}"), "capabilities": {}, "instructions": "x".repeat(10_000)});
    let servers: Vec<Value> = (0..20).map(talker).collect();
    let servers = FootToHub::decode(&json!({"type": "servers", "servers": servers}).to_string()).unwrap();
    say_long(&mut foot, [7; 16], &servers.encode()).await;
    // What is said after it is heard after it.
    foot.say_text(r#"{"type":"tools","revision":1}"#).await;
    tools_ack(&mut foot).await;
    assert_eq!(hub.servers("ada").await.len(), 20);
    let server = hub.server("ada", "s7").await;
    assert_eq!(server.description().unwrap().instructions.as_ref().map(String::len), Some(10_000));
}

#[tokio::test(start_paused = true)]
async fn what_an_mcp_tool_holds_more_is_passed_on_and_speaks_for_nothing_else() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let with = |name: &str, extra: Value| json!({"name": name, "description": "", "inputSchema": {"type": "object"}, "extra": extra});
    let extra = json!({"name": "other", "icons": [{"src": "x"}], "inputSchema": {}, "_meta": {"n": 1}});
    let offered = json!([
        with("a", extra),
        with("b", json!([])),
        with("c", json!({"x": "y".repeat(300_000)})),
        with("d", json!({}))
    ]);
    let text = json!({"type": "tools", "revision": 1, "upsert": offered, "remove": []}).to_string();
    let offered = FootToHub::decode(&text).unwrap().encode();
    say_long(&mut foot, [7; 16], &offered).await;
    let ack = tools_ack(&mut foot).await;
    let rejected: Vec<&str> = ack.rejected.iter().map(|rejected| rejected.tool.as_str()).collect();
    assert_eq!(rejected, ["b", "c"]);
    let extra = |tool: Option<Arc<Tool>>| tool.unwrap().spec.extra.as_ref().map(|raw| raw.get().to_owned());
    let shown: Value = serde_json::from_str(&extra(hub.tool("ada", "dev__a").await).unwrap()).unwrap();
    assert_eq!(shown, json!({"icons": [{"src": "x"}], "_meta": {"n": 1}}));
    assert_eq!(extra(hub.tool("ada", "d").await), None);
}
