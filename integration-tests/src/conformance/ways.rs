//! The ways from the suite to the fixture.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::Harness;
use crate::eventually::eventually;
use crate::foot::TestFoot;
use crate::hub::{Options, TestHub};
use crate::process::Process;
use crate::{Result, binaries};

/// What the fixture is called everywhere.
const PACK: &str = "fixture";
/// Whose calls they are.
const SUBJECT: &str = "ada";
/// A tool of the fixture.
const FIRST_TOOL: &str = "test_simple_text";
/// The version whose requests need no session.
const VERSION: &str = "2026-07-28";

/// How the suite reaches the fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Without anything between them.
    Direct,
    /// Through a hub that reaches the fixture over HTTP.
    Http,
    /// Through a hub that starts the fixture itself.
    Stdio,
    /// Through a hub and a foot that starts the fixture.
    Foot,
}

/// A way that is set up, until it is dropped: from the suite's end to the fixture's.
#[derive(Default)]
pub(super) struct Target {
    /// What the suite is given.
    pub(super) url: String,
    harness: Option<Harness>,
    foot: Option<TestFoot>,
    hub: Option<TestHub>,
    fixture: Option<Process>,
    folder: Option<TempDir>,
}

impl Way {
    /// All.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Http, Self::Stdio, Self::Foot];

    /// What stands above its column.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Direct => "directly",
            Self::Http => "hub, HTTP",
            Self::Stdio => "hub, stdio",
            Self::Foot => "hub and foot",
        }
    }

    /// # Errors
    /// When a part does not come up, or the fixture's tools do not arrive.
    pub(super) async fn set_up(self) -> Result<Target> {
        let mut target = Target::default();
        match self {
            Self::Direct => target.url = target.start_fixture()?,
            Self::Http => {
                let url = target.start_fixture()?;
                target.start_hub(Some(&json!({ "transport": "http", "url": url }))).await?;
            }
            Self::Stdio => {
                let command = binaries::own("mcp-fixture")?;
                target.start_hub(Some(&json!({ "transport": "stdio", "command": command }))).await?;
            }
            Self::Foot => {
                target.start_hub(None).await?;
                target.start_foot().await?;
            }
        }
        target.arrived().await?;
        Ok(target)
    }
}

impl Target {
    /// A fixture on HTTP. Answers its address.
    fn start_fixture(&mut self) -> Result<String> {
        let mut process = Process::spawn(Command::new(binaries::own("mcp-fixture")?).args(["--http", "0"]))?;
        let line = process.line_with("listening on http://")?;
        self.fixture = Some(process);
        Ok(line.split_whitespace().find(|word| word.starts_with("http://")).ok_or("no address")?.to_owned())
    }

    /// A hub, which attaches a server with these parameters, if there are any, and the harness before it.
    async fn start_hub(&mut self, parameters: Option<&Value>) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let mut options = Options::default();
        if let Some(parameters) = parameters {
            let mut parameters = parameters.clone();
            // A session that everybody shares could ask nobody.
            parameters["session"] = json!("subject");
            let document = json!({ "type": "mcp_server", "description": "The fixture.", "parameters": parameters });
            let tools = folder.path().join("documents/local/main/server-tools");
            fs::create_dir_all(&tools)?;
            fs::write(tools.join(format!("{PACK}.yaml")), document.to_string())?;
            options.documents = Some(folder.path().join("documents"));
            if let Some(command) = parameters["command"].as_str() {
                options.env.push(("FOOTBRIDGE_MCP_COMMANDS".to_owned(), command.to_owned()));
            }
        }
        let hub = TestHub::start_with(options).await?;
        let token = hub.token(SUBJECT, &["engine", "viewer"]).await?;
        let harness = Harness::start(&format!("{}/mcp/local/main?pack={PACK}", hub.url), &token).await?;
        self.url = harness.url.clone();
        (self.harness, self.hub, self.folder) = (Some(harness), Some(hub), Some(folder));
        Ok(())
    }

    /// A foot that has the fixture as a server of its own.
    async fn start_foot(&mut self) -> Result<()> {
        let (Some(hub), Some(folder)) = (&self.hub, &self.folder) else { return Err("no hub".into()) };
        let root = folder.path().join("root");
        fs::create_dir(&root)?;
        let config = folder.path().join("foot.yaml");
        let command = binaries::own("mcp-fixture")?;
        fs::write(&config, json!({ "servers": { PACK: { "command": command } } }).to_string())?;
        let config = config.to_str().ok_or("the path of foot.yaml is no text")?;
        self.foot = Some(TestFoot::start(hub, SUBJECT, "desk", &root, &["--config", config]).await?);
        Ok(())
    }

    /// Waits until the fixture's tools can be seen at this end.
    async fn arrived(&self) -> Result<()> {
        // A second installation answers an error, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build()?;
        let look = || async {
            let request = client.post(&self.url).header("accept", "application/json, text/event-stream");
            let request = request.header("mcp-protocol-version", VERSION).header("mcp-method", "tools/list");
            let answer = request.json(&list()).send().await?;
            let status = answer.status();
            let text = answer.text().await?;
            if text.contains(FIRST_TOOL) { Ok(Some(())) } else { Err(format!("{status}: {text}").into()) }
        };
        eventually("the fixture's tools arrive", look).await
    }
}

/// A request for the tools.
fn list() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "conformance", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } })
}
