use std::sync::atomic::Ordering;

use async_trait::async_trait;
use footbridge_mcp::{Raw, RpcError, Version};
use footbridge_shared::id::{CallId, Subject};
use footbridge_shared::{ErrorCode, Outcome};
use globset::GlobSet;
use serde_json::value::to_raw_value;
use serde_json::{Value as Json, json};
use tokio::sync::{broadcast, mpsc};

use self::fake::{Fake, FakeDial};
use super::config::{GivenArguments, Offered, Program, SessionMode};
use super::redact::Redactor;
use super::*;
use crate::clock::SystemClock;
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallClock, CallContext, CallEvent, Caller, EventSink};
use crate::domain::failure::Failure;
use crate::domain::mcp::{McpAudience, McpClient, McpNote};
use crate::domain::output::ToolOutput;
use crate::domain::tool::{NoTools, Tool};
use crate::sources::configured::status::{PackState, PackStatus};

mod ending;
mod fake;
mod following;
mod keeping;
mod questions;
mod sessions;
mod telling;

/// A hub with one server.
struct Lab {
    hub: Arc<McpServersOfHub>,
    fake: Arc<Fake>,
    heard: mpsc::UnboundedReceiver<(usize, String, Json)>,
    changes: SurfaceChanges,
    lifecycle: Lifecycle,
}

impl Lab {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(set: impl FnOnce(&mut Fake)) -> Self {
        let (lifecycle, changes) = (Lifecycle::new(), SurfaceChanges::default());
        let (mut fake, heard) = Fake::new(&lifecycle);
        set(&mut fake);
        let settings = ChildSettings {
            launcher: footbridge_launcher::Launcher::of_this_program(),
            allowed: AllowedPrograms::Any,
            variables: Vec::new(),
            environment: Vec::new(),
        };
        let hub = McpServersOfHub::new(settings, Arc::new(SystemClock), changes.clone(), &lifecycle);
        Self { hub, fake: Arc::new(fake), heard, changes, lifecycle }
    }

    fn attach(&self, mode: SessionMode) -> Arc<Attachment> {
        self.attach_as("main", Layer::Project, mode)
    }

    fn attach_as(&self, project: &str, layer: Layer, session: SessionMode) -> Arc<Attachment> {
        self.attach_with(project, layer, session, |_| {})
    }

    fn attach_with(
        &self,
        project: &str,
        layer: Layer,
        session: SessionMode,
        set: impl FnOnce(&mut ServerConfig),
    ) -> Arc<Attachment> {
        let scope = Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse(project).unwrap());
        let key = DocumentKey::new(&scope, layer, &EntryName::parse("lab").unwrap());
        let program = Program { command: "fake".to_owned(), args: Vec::new(), cwd: None, env: Vec::new() };
        let mut config = ServerConfig {
            target: Target::Stdio(program),
            call_timeout: None,
            init_timeout: Duration::from_secs(10),
            session,
            arguments: GivenArguments::default(),
            offered: Offered { include: None, exclude: GlobSet::empty() },
            concurrency: None,
            redactor: Redactor::default(),
            digest: [0; 32],
        };
        set(&mut config);
        let fake = self.fake.clone();
        self.hub.attach_with(key, config, |_, _, _| Box::new(FakeDial(fake)))
    }

    /// The next thing of that method which the server hears, and on which connection.
    async fn hears(&mut self, method: &str) -> (usize, Json) {
        loop {
            let (connection, heard, params) = self.heard.recv().await.unwrap();
            if heard == method {
                return (connection, params);
            }
        }
    }

    async fn end(self) {
        self.lifecycle.shut_down(Duration::ZERO).await;
        assert_eq!(self.lifecycle.running(), 0, "tasks are left");
    }
}

/// Waits until the status of a server is such, looking whenever an attempt to list it has ended.
async fn when(server: &Arc<Server>, is_so: impl Fn(&PackStatus) -> bool) -> PackStatus {
    let mut attempts = server.attempts();
    loop {
        let status = server.status();
        if is_so(&status) {
            return status;
        }
        attempts.changed().await.unwrap();
    }
}

async fn ready(attachment: &Attachment) {
    when(attachment.server(), |status| status.state == PackState::Ready).await;
}

fn tool(attachment: &Attachment, name: &str) -> Arc<Tool> {
    attachment.server().listed().tool(name).unwrap().clone()
}

async fn call(attachment: &Attachment, name: &str, arguments: Json, ctx: &CallContext) -> Result<ToolOutput, Failure> {
    let tool = tool(attachment, name);
    tool.handler.invoke(Arguments::new(to_raw_value(&arguments).unwrap()), ctx).await
}

fn structured(output: &ToolOutput) -> Json {
    serde_json::from_str(output.structured.as_ref().unwrap().get()).unwrap()
}

/// An MCP client that answers with its name.
struct Client {
    name: &'static str,
    version: Version,
    capabilities: Raw,
    session: Option<&'static str>,
    told: mpsc::UnboundedSender<String>,
}

#[async_trait]
impl McpClient for Client {
    fn version(&self) -> Version {
        self.version
    }
    fn capabilities(&self) -> &Raw {
        &self.capabilities
    }
    fn session(&self) -> Option<&str> {
        self.session
    }
    async fn request(&self, method: &str, params: Raw) -> Result<Raw, RpcError> {
        let _ = self.told.send(format!("{method} {}", params.get()));
        Ok(to_raw_value(&json!({"action": "accept", "content": {"name": self.name}})).unwrap())
    }
    fn notify(&self, method: &str, params: Raw) {
        let _ = self.told.send(format!("{method} {}", params.get()));
    }
}

/// An MCP client without sessions that can answer nothing.
struct Incapable;

#[async_trait]
impl McpClient for Incapable {
    fn version(&self) -> Version {
        Version::V2026_07_28
    }
    fn capabilities(&self) -> &Raw {
        static NONE: std::sync::LazyLock<Raw> = std::sync::LazyLock::new(|| to_raw_value(&json!({})).unwrap());
        &NONE
    }
    fn session(&self) -> Option<&str> {
        None
    }
    async fn request(&self, method: &str, _: Raw) -> Result<Raw, RpcError> {
        crate::domain::mcp::declined(method)
    }
    fn notify(&self, _: &str, _: Raw) {}
}

/// A call by a subject that came from an MCP client, and what the client is told.
fn by(
    name: &'static str,
    version: Version,
    session: Option<&'static str>,
) -> (CallContext, mpsc::UnboundedReceiver<String>) {
    let (told, hears) = mpsc::unbounded_channel();
    let capabilities = to_raw_value(&json!({"elicitation": {}, "name": name})).unwrap();
    let mut ctx = plain(name);
    ctx.client = Some(Arc::new(Client { name, version, capabilities, session, told }));
    (ctx, hears)
}

/// A call by a subject that came from elsewhere.
fn plain(subject: &str) -> CallContext {
    plain_told(subject, None)
}

fn plain_told(subject: &str, events: Option<Arc<dyn EventSink>>) -> CallContext {
    let scope = Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse("main").unwrap());
    CallContext::new(
        CallId::parse("call").unwrap(),
        Arc::new(scope),
        Arc::new(Caller::direct(Subject::parse(subject).unwrap())),
        CallClock::start(Duration::from_secs(60), Duration::from_secs(600)),
        Arc::new(NoTools),
        events,
    )
}

struct Events(mpsc::UnboundedSender<CallEvent>);

impl EventSink for Events {
    fn event(&self, event: CallEvent) {
        let _ = self.0.send(event);
    }
}
