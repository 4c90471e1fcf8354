//! Commands as real processes, in launchers that are this test program.

mod confined;
mod jobs;
mod running;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::SystemClock;
use crate::permissions::{Defaults, Mode};
use crate::policy::Floor;
use crate::tools::{Arguments, Registered, ToolSet, context, exec_tools, raw};

/// What makes this test program a launcher: the harness takes the name of a test, and that one runs it.
const LAUNCHER_TEST: &str = "exec::tests::is_a_launcher_when_a_test_starts_it_as_one";
/// As long as nothing should take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon nothing of a command may be left.
const GONE_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn is_a_launcher_when_a_test_starts_it_as_one() {
    // A launcher's standard input is a socket; that of a test run is none.
    let stdin = rustix::fs::fstat(std::io::stdin()).unwrap();
    if rustix::fs::FileType::from_raw_mode(stdin.st_mode) == rustix::fs::FileType::Socket {
        let _ = footbridge_launcher::main();
        std::process::exit(0);
    }
}

/// A root folder, and the tools that run commands in it.
struct Machine {
    dir: tempfile::TempDir,
    tools: ToolSet,
}

/// What is special about a machine.
struct Special {
    sandbox: KernelSandbox,
    write: Mode,
    exec: Mode,
    commands: &'static str,
    max_jobs: usize,
    extra_write: Vec<PathBuf>,
}

impl Default for Special {
    fn default() -> Self {
        Self {
            sandbox: KernelSandbox::Required,
            write: Mode::Allow,
            exec: Mode::Allow,
            commands: "[]",
            max_jobs: 4,
            extra_write: Vec::new(),
        }
    }
}

impl Machine {
    fn new() -> Self {
        Self::with(Special::default())
    }

    fn with(special: Special) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let policy = Policy::new(&[root], Floor::new(Some(Path::new("/home/nobody")))).unwrap();
        let permissions = Permissions::new(Arc::new(policy), Defaults { write: special.write, exec: special.exec });
        let test = vec!["--exact".into(), LAUNCHER_TEST.into(), "--nocapture".into()];
        let launcher = footbridge_launcher::Launcher::of(std::env::current_exe().unwrap(), test);
        let jobs = Jobs::new(launcher, Arc::new(SystemClock), special.max_jobs);
        let settings = ExecSettings {
            sandbox: special.sandbox,
            extra_write: special.extra_write,
            max_jobs: special.max_jobs,
            commands: check_commands(serde_saphyr::from_str(special.commands).unwrap()).unwrap(),
            ..ExecSettings::default()
        };
        let variables = vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/home/nobody".into())];
        let executor = Executor::new(jobs, &permissions, settings, variables).unwrap();
        let (tools, left_out) = ToolSet::new(exec_tools(&executor), &permissions);
        assert_eq!(left_out, []);
        Self { dir, tools }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// Calls a tool as `subject`, as a call would, until it is cancelled.
    async fn call_as(
        &self,
        subject: &str,
        tool: &str,
        arguments: &Value,
        cancel: &CancellationToken,
    ) -> Result<Value, Failure> {
        let registered: Arc<Registered> = self.tools.get(tool).unwrap();
        let arguments = Arguments::new(raw(arguments));
        registered.schema.check(&arguments)?;
        let (mut ctx, _signs) = context::cancelled_by(cancel.clone());
        ctx.caller.subject = footbridge_shared::id::Subject::parse(subject).unwrap();
        let plan = registered.tool.plan(arguments, &ctx).await?;
        let output = plan.run(ctx).await?;
        let mut structured: Value = serde_json::from_str(output.structured.as_ref().unwrap().get()).unwrap();
        structured["isError"] = output.is_error.into();
        Ok(structured)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        self.call_as("ada", tool, &arguments, &CancellationToken::new()).await
    }

    async fn run(&self, arguments: Value) -> Value {
        self.call("exec_run", arguments).await.unwrap()
    }

    /// Runs a script to its end.
    async fn shell(&self, script: &str) -> Value {
        self.run(serde_json::json!({ "command": script })).await
    }
}

/// The processes that carry a mark in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let carries = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == format!("MARK={mark}").as_bytes())
    };
    pids.filter(carries).collect()
}

/// Waits until as many processes carry a mark.
async fn until_marked(mark: &str, count: usize, patience: Duration) {
    let end = Instant::now() + patience;
    loop {
        let found = marked(mark);
        if found.len() == count {
            return;
        }
        assert!(Instant::now() < end, "{count} processes expected, these are there: {found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a command is no longer running.
async fn until_ended(machine: &Machine, id: &Value) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let state = machine.call("exec_status", serde_json::json!({ "id": id })).await.unwrap();
        if state["status"] != "running" {
            return state;
        }
        assert!(Instant::now() < end, "{state}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
