//! Real servers in real launchers, both of them this test program.

mod calls;
mod connections;
pub(crate) mod fake;
mod follows;
mod life;
mod played;

use std::path::PathBuf;
use std::time::Instant;

use footbridge_shared::id::Subject;
use footbridge_shared::message::{CallerClient, FootToHub};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::SystemClock;
use crate::exec::{ExecSettings, KernelSandbox};
use crate::failure::Failure;
use crate::permissions::{Defaults, Judge, Programs};
use crate::policy::{Floor, Policy};
use crate::tools::context::{self, Sign};
use crate::tools::{Arguments, ToolOutput, raw};

/// What makes this test program a launcher.
const LAUNCHER_TEST: &str = "exec::tests::is_a_launcher_when_a_test_starts_it_as_one";
/// As long as nothing should take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn launcher() -> Launcher {
    let test = vec!["--exact".into(), LAUNCHER_TEST.into(), "--nocapture".into()];
    Launcher::of(std::env::current_exe().unwrap(), test)
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened for too long")
}

/// A foot with servers.
struct Place {
    dir: tempfile::TempDir,
    tools: Arc<ToolSet>,
    servers: Arc<Servers>,
    permissions: Arc<Permissions>,
    orders: Arc<Orders>,
}

/// A fake under a name, with more of its settings.
pub(crate) fn fake(name: &str, kind: &str, more: &str) -> ServerSettings {
    let yaml = format!(
        "command: {}\nargs: [--exact, {}, --nocapture]\nconfine: false\nenv: {{{}: {kind}}}\n{more}",
        std::env::current_exe().unwrap().display(),
        fake::TEST,
        fake::KIND
    );
    let text: ServerText = serde_saphyr::from_str(&yaml).unwrap();
    text.check(EntryName::parse(name).unwrap(), &|path| Ok(path.into())).unwrap()
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let policy = Policy::new(&[root], Floor::default()).unwrap();
        let (rules, programs) = (Arc::default(), Programs::default());
        let judge =
            Judge { policy: Arc::new(policy), defaults: Defaults::default(), rules, programs, ask_client: false };
        let permissions = Permissions::with(judge, Arc::new(crate::permissions::Desk::closed()));
        let tools = Arc::new(ToolSet::new(Vec::new(), &permissions).0);
        let servers = Servers::launched_by(launcher(), (&tools, &permissions), Arc::new(SystemClock));
        let exec = ExecSettings {
            sandbox: KernelSandbox::Required,
            extra_read: vec![std::env::current_exe().unwrap().parent().map(PathBuf::from).unwrap()],
            ..ExecSettings::default()
        };
        let variables = vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/home/nobody".into())];
        let orders = Arc::new(Orders::new(&permissions, exec, variables));
        Self { dir, tools, servers, permissions, orders }
    }

    fn apply(&self, wanted: &[ServerSettings]) {
        self.servers.apply(wanted, &self.orders, &self.permissions);
    }

    /// A foot with these, once they are listed.
    async fn with(wanted: &[ServerSettings]) -> Self {
        let place = Self::new();
        place.apply(wanted);
        for (name, settled) in soon(place.servers.settled()).await {
            assert_eq!(settled, Ok(()), "{name}");
        }
        place
    }

    fn names(&self) -> Vec<String> {
        self.tools.entries().into_iter().map(|entry| entry.name).collect()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, Failure> {
        self.call_for(&Caller::none("ada"), tool, arguments).await.0
    }

    /// Calls a tool; what it told meanwhile.
    async fn call_for(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: Value,
    ) -> (Result<ToolOutput, Failure>, mpsc::Receiver<Sign>) {
        let (mut ctx, signs) = context::cancelled_by(caller.cancel.clone());
        ctx.caller.subject = Subject::parse(caller.subject).unwrap();
        ctx.caller.client = caller.client.clone().map(Box::new);
        let ctx = ctx.over(self.servers.line().clone(), caller.extra.as_ref().map(raw), false);
        let registered = self.tools.get(tool).unwrap();
        let planned = registered.tool.plan(Arguments::new(raw(&arguments)), &ctx).await;
        (soon(planned.unwrap().run(ctx)).await, signs)
    }

    async fn state_for(&self, caller: &Caller) -> Value {
        structured(self.call_for(caller, "s__state", json!({})).await.0)
    }

    /// Answers the next question of a server so.
    async fn answer(&self, answer: Value) -> Value {
        let line = self.servers.line();
        loop {
            soon(line.news()).await;
            for message in line.take() {
                let FootToHub::Upcall(upcall) = message else { continue };
                let result = json!({"call": upcall.call, "id": upcall.id, "result": answer});
                line.answered(serde_json::from_value(result).unwrap());
                return json!({"method": upcall.method,
                    "params": serde_json::from_str::<Value>(upcall.params.get()).unwrap()});
            }
        }
    }

    /// Waits until the tools are as they should be.
    async fn until(&self, done: impl Fn(&[String]) -> bool) {
        let mut changes = self.tools.follow();
        while !done(&self.names()) {
            soon(changes.changed()).await.unwrap();
        }
    }
}

/// Who calls.
#[derive(Clone)]
struct Caller {
    subject: &'static str,
    client: Option<CallerClient>,
    extra: Option<Value>,
    cancel: CancellationToken,
}

impl Caller {
    /// No MCP client.
    fn none(subject: &'static str) -> Self {
        Self { subject, client: None, extra: None, cancel: CancellationToken::new() }
    }

    fn client(subject: &'static str, protocol: &str, session: Option<&str>) -> Self {
        let client = CallerClient {
            protocol: protocol.to_owned(),
            capabilities: raw(&json!({"elicitation": {"form": {}}})),
            session: session.map(str::to_owned),
        };
        Self { client: Some(client), ..Self::none(subject) }
    }
}

fn structured(result: Result<ToolOutput, Failure>) -> Value {
    serde_json::from_str(result.unwrap().structured.unwrap().get()).unwrap()
}

/// Waits until a process is gone.
async fn until_gone(pid: &Value) {
    let end = Instant::now() + PATIENCE;
    while std::fs::metadata(format!("/proc/{pid}")).is_ok() {
        assert!(Instant::now() < end, "{pid} is left");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
