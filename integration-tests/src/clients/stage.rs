//! A hub that may start MCP servers, feet with servers of their own, and both ways for a client to reach a server.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::raw::Target;
use crate::Result;
use crate::api::Api;
use crate::eventually::eventually;
use crate::fake_mcp::FakeMcp;
use crate::foot::TestFoot;
use crate::hub::{Options, TestHub};

/// Where a server is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the hub.
    Hub,
    /// To a foot.
    Foot,
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hub, Self::Foot];
}

/// The hub.
pub struct McpStage {
    /// It.
    pub hub: TestHub,
    /// Its administrator.
    pub api: Api,
}

/// The subject that owns the feet, and calls.
pub const OWNER: &str = "ada";

impl McpStage {
    /// Starts it.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start() -> Result<Self> {
        Self::start_with(Options::default()).await
    }

    /// Starts a special one.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_with(mut options: Options) -> Result<Self> {
        options.env.push(("FOOTBRIDGE_MCP_COMMANDS".to_owned(), "*".to_owned()));
        let hub = TestHub::start_with(options).await?;
        Ok(Self { api: hub.api()?, hub })
    }

    /// Writes the document of a server, and waits for nothing.
    ///
    /// # Errors
    /// When the hub refuses it.
    pub async fn put(&self, name: &str, fake: &FakeMcp, more: Value) -> Result<()> {
        self.api.put(&format!("server-tools/{name}"), &fake.document(more)?).await?.ok()?;
        Ok(())
    }

    /// Attaches a server to the hub, and waits until it is listed.
    ///
    /// # Errors
    /// When it is not.
    pub async fn attach(&self, name: &str, fake: &FakeMcp, more: Value) -> Result<()> {
        self.put(name, fake, more).await?;
        self.until_state(name, "ready").await
    }

    /// How a pack is.
    ///
    /// # Errors
    /// When the hub does not say.
    pub async fn pack(&self, name: &str) -> Result<Value> {
        Ok(self.api.get(&format!("packs/{name}")).await?.ok()?.json())
    }

    /// Waits until a pack is in this state.
    ///
    /// # Errors
    /// When it is not in time; shows how it is.
    pub async fn until_state(&self, name: &str, state: &str) -> Result<()> {
        eventually(&format!("{name} is {state}"), || async {
            let pack = self.pack(name).await?;
            if pack["state"] == state { Ok(Some(())) } else { Err(pack.to_string().into()) }
        })
        .await
    }

    /// The hub's endpoint for a subject that may call.
    ///
    /// # Errors
    /// When there is no token.
    pub async fn target(&self, subject: &str) -> Result<Target> {
        self.target_of(subject, "").await
    }

    /// The same with a query.
    ///
    /// # Errors
    /// When there is no token.
    pub async fn target_of(&self, subject: &str, query: &str) -> Result<Target> {
        let token = self.hub.token(subject, &["engine", "viewer"]).await?;
        Target::new(&format!("{}/mcp/local/main{query}", self.hub.url), Some(&token))
    }

    /// Starts a foot of [`OWNER`] with these servers, by name.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn foot(&self, name: &str, servers: &Value) -> Result<FootStage> {
        self.foot_via(&self.hub.url, OWNER, name, &json!({ "servers": servers })).await
    }

    /// The same, for everybody in the project.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn shared_foot(&self, name: &str, servers: &Value) -> Result<FootStage> {
        self.foot_via(&self.hub.url, OWNER, name, &json!({ "servers": servers, "share": "project" })).await
    }

    /// Starts a foot with whole settings, by a way of its own, for somebody.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn foot_via(&self, url: &str, subject: &str, name: &str, settings_of: &Value) -> Result<FootStage> {
        let (root, settings) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let file = settings.path().join("foot.yaml");
        std::fs::write(&file, settings_of.to_string())?;
        let file = file.to_string_lossy().into_owned();
        let foot = TestFoot::start_via(&self.hub, url, subject, name, root.path(), &["--config", &file]).await?;
        Ok(FootStage { foot, root, settings })
    }

    /// Offers a server as the pack `name`, and waits until [`OWNER`] sees its tools.
    ///
    /// # Errors
    /// When it is not listed.
    pub async fn offer(&self, way: Way, name: &str, fake: &FakeMcp, more: Value) -> Result<Option<FootStage>> {
        match way {
            Way::Hub => self.attach(name, fake, more).await.map(|()| None),
            Way::Foot => {
                let foot = self.foot("laptop", &json!({ name: on_foot(fake, more)? })).await?;
                self.until_listed(OWNER, &format!("{name}__")).await?;
                Ok(Some(foot))
            }
        }
    }

    /// Waits until a subject sees a tool whose name begins so.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn until_listed(&self, subject: &str, prefix: &str) -> Result<()> {
        let api = self.api.with_token(&self.hub.token(subject, &["viewer"]).await?);
        eventually(&format!("{subject} sees {prefix}"), || async {
            let tools = api.get(&format!("tools?prefix={prefix}")).await?.ok()?.json();
            Ok(tools["tools"].as_array().is_some_and(|tools| !tools.is_empty()).then_some(()))
        })
        .await
    }
}

/// What `foot.yaml` says of a server.
///
/// # Errors
/// When it is not built.
pub fn on_foot(fake: &FakeMcp, more: Value) -> Result<Value> {
    let mut server = fake.parameters(more)?;
    if server.get("command").is_some() {
        // It writes its log where the foot serves nothing.
        server["confine"] = json!(false);
    }
    Ok(server)
}

/// A foot with servers.
pub struct FootStage {
    /// It.
    pub foot: TestFoot,
    /// What it serves.
    pub root: TempDir,
    settings: TempDir,
}

impl FootStage {
    /// Gives it other servers while it runs.
    ///
    /// # Errors
    /// When the settings cannot be written.
    pub fn change(&self, servers: &Value) -> Result<()> {
        let draft = self.settings.path().join("draft");
        std::fs::write(&draft, json!({ "servers": servers }).to_string())?;
        Ok(std::fs::rename(draft, self.settings_file())?)
    }

    fn settings_file(&self) -> PathBuf {
        self.settings.path().join("foot.yaml")
    }

    /// The folders that processes of it name.
    pub fn folders(&self) -> [&Path; 2] {
        [self.root.path(), self.foot.state()]
    }
}
