//! The worker processes: locked in, replaceable, and gone at the end.
#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use footbridge_hub::domain::script::ScriptRunner as _;
use footbridge_hub::script::worker;
use footbridge_shared::{ErrorCode, Outcome};
use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use crate::stage::{NATIVE, PARTY, PLENTY, PROGRAM, Stage, TestResult, eventually, request, shell};

fn kill(pid: u32) -> TestResult {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process id")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

fn status(pid: u32, key: &str) -> TestResult<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    Ok(line.ok_or("no such line")?.trim().to_owned())
}

#[tokio::test]
async fn a_worker_is_locked_in() -> TestResult {
    let stage = Stage::new(1).await?;
    let [pid] = stage.workers()[..] else { return Err("one worker".into()) };
    assert_eq!(status(pid, "Seccomp")?, "2", "a filter");
    assert_eq!(status(pid, "NoNewPrivs")?, "1");
    assert_eq!(status(pid, "Threads")?, "1");
    assert_eq!(std::fs::read(format!("/proc/{pid}/environ"))?, b"TZ=UTC0\0");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd"))?.to_str(), Some("/"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_from_outside_costs_the_call_it_ran_and_no_other() -> TestResult {
    let stage = Stage::new(2).await?;
    let [victim] = stage.workers()[..] else { return Err("one worker".into()) };
    // The warm worker takes this one.
    let call = stage.call(PLENTY)?;
    let struck = stage.pool.run(request("vance.tools.call('hang'); 1", PLENTY), &call);
    let others = async {
        stage.tools.hanging.cancelled().await;
        kill(victim)?;
        assert_eq!(stage.value("2").await?, json!(2));
        TestResult::Ok(())
    };
    let (struck, others) = tokio::join!(struck, others);
    others?;
    let failure = struck.err().ok_or("it ended")?;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ScriptWorkerLost, Outcome::Unknown));
    assert!(stage.tools.cancelled.is_cancelled(), "what it had started ended with it");
    assert_eq!(stage.value("3").await?, json!(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_killed_from_outside_costs_nothing() -> TestResult {
    let stage = Stage::new(1).await?;
    for round in 0..5 {
        assert_eq!(stage.value(&round.to_string()).await?, json!(round));
        let [idle] = stage.workers()[..] else { return Err("one worker".into()) };
        kill(idle)?;
        eventually("it is gone", || stage.pool.processes() == 0).await?;
    }
    Ok(())
}

/// As the kernel does when memory is short: all at once, more of them than a call has attempts.
#[tokio::test(flavor = "multi_thread")]
async fn idle_workers_killed_all_at_once_cost_nothing() -> TestResult {
    let stage = Stage::new(PARTY).await?;
    for value in join_all((0..PARTY).map(|_| stage.value("vance.tools.call('meet')"))).await {
        assert_eq!(value?, json!(PARTY), "all were there at once");
    }
    let idle = stage.workers();
    assert_eq!(idle.len(), PARTY);
    idle.into_iter().try_for_each(kill)?;
    eventually("they are gone", || stage.pool.processes() == 0).await?;
    for round in 0..PARTY {
        assert_eq!(stage.value(&round.to_string()).await?, json!(round));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_burst_the_pool_shrinks_to_one_warm_worker() -> TestResult {
    let stage = Stage::configured(|config| config.idle = Duration::from_millis(100)).await?;
    for value in join_all((0..PARTY).map(|_| stage.value("vance.tools.call('meet')"))).await {
        assert_eq!(value?, json!(PARTY), "all were there at once");
    }
    eventually("one is left", || stage.pool.processes() == 1).await?;
    let [kept] = stage.workers()[..] else { return Err("one worker".into()) };
    assert_eq!(stage.value("1").await?, json!(1));
    assert_eq!(stage.workers(), [kept], "it is kept, and used");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_is_left_after_a_shutdown() -> TestResult {
    let stage = Stage::new(4).await?;
    let call = stage.call(PLENTY)?;
    let running = stage.pool.run(request(NATIVE, PLENTY), &call);
    let shutdown = async {
        stage.value("1").await?;
        eventually("two workers", || stage.workers().len() == 2).await?;
        stage.pool.shutdown().await;
        assert_eq!(stage.workers(), [0_u32; 0]);
        TestResult::Ok(())
    };
    let (running, shutdown) = tokio::join!(biased; running, shutdown);
    shutdown?;
    assert_eq!(running.err().ok_or("it ended")?.code, ErrorCode::Draining);
    let late = stage.pool.run(request("1", PLENTY), &stage.call(PLENTY)?).await.err().ok_or("it ran")?;
    assert_eq!((late.code, late.outcome), (ErrorCode::Draining, Outcome::NotRun));
    assert_eq!(stage.lifecycle.shut_down(PLENTY).await, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lifecycle_lets_scripts_of_running_calls_end_and_ends_the_rest() -> TestResult {
    let stage = Arc::new(Stage::new(2).await?);
    let (of_work, endless) = (stage.clone(), stage.call(PLENTY)?);
    let (tell, told) = tokio::sync::oneshot::channel();
    stage.lifecycle.spawn_work(async move {
        of_work.lifecycle.soft().cancelled().await;
        let value = of_work.value("vance.tools.call('pause') + 1").await.map_err(|error| error.to_string());
        let _ = tell.send(value);
    });
    let endless = stage.pool.run(request(NATIVE, PLENTY), &endless);
    let stop = async {
        eventually("it runs", || stage.pool.processes() == 1).await?;
        assert_eq!(stage.lifecycle.shut_down(PLENTY).await, 0);
        assert_eq!(stage.workers(), [0_u32; 0]);
        TestResult::Ok(())
    };
    let (endless, stop) = tokio::join!(biased; endless, stop);
    stop?;
    assert_eq!(told.await?, Ok(json!(2)), "what the hub waits for may still run scripts");
    assert_eq!(endless.err().ok_or("it ended")?.code, ErrorCode::Draining);
    Ok(())
}

#[tokio::test]
async fn a_worker_is_replaced_after_a_while() -> TestResult {
    let stage = Stage::new(1).await?;
    let first = stage.workers();
    for _ in 0..2_000 {
        stage.value("1").await?;
        if stage.workers() != first {
            return Ok(());
        }
    }
    Err("the same process ran two thousand scripts".into())
}

/// A worker that the test talks to without a pool.
struct Bare {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Bare {
    fn start(arguments: &[&str]) -> TestResult<Self> {
        let mut child = Command::new(PROGRAM)
            .arg(worker::ARGUMENT)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
        Ok(Self { child, input, output })
    }

    fn hear(&mut self) -> TestResult<Value> {
        let mut length = [0; 4];
        self.output.read_exact(&mut length)?;
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        self.output.read_exact(&mut frame)?;
        Ok(serde_json::from_slice(&frame)?)
    }

    fn run(&mut self, source: &str) -> TestResult {
        let run = json!({"source": source, "inputs": [], "params": {}, "context": {}});
        let frame = json!({"run": [{"nanos": u64::MAX}, run]}).to_string();
        self.input.write_all(&u32::try_from(frame.len())?.to_le_bytes())?;
        Ok(self.input.write_all(frame.as_bytes())?)
    }

    /// Closes its pipe, as a hub does that goes away, and waits for it to end.
    fn leave(mut self) -> TestResult {
        drop(self.input);
        if self.child.wait()?.success() { Ok(()) } else { Err("it failed".into()) }
    }
}

#[test]
fn a_worker_ends_when_its_hub_goes_away() -> TestResult {
    let mut worker = Bare::start(&[])?;
    assert_eq!(worker.hear()?, json!({"ready": "full"}));
    // In the middle of a question, too: the script waits for an answer that will not come.
    worker.run("vance.tools.call('x')")?;
    assert_eq!(worker.hear()?, json!({"ask": {"call": {"name": "x", "params": {}}}}));
    worker.leave()
}

#[test]
fn a_worker_that_cannot_lock_itself_in_runs_nothing_unless_it_is_allowed_to() -> TestResult {
    // A thread that may not install filters starts workers that may not either.
    let attempt = std::thread::spawn(|| {
        let denied = [(libc::SYS_seccomp, Vec::new())].into();
        let filter = SeccompFilter::new(
            denied,
            SeccompAction::Allow,
            SeccompAction::Errno(1),
            std::env::consts::ARCH.try_into()?,
        )?;
        seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;

        let mut worker = Bare::start(&[])?;
        let said = worker.hear()?;
        assert!(said["refused"].as_str().is_some_and(|reason| reason.starts_with("seccomp: ")), "{said}");
        worker.leave()?;

        let mut worker = Bare::start(&["--allow-unsandboxed"])?;
        assert_eq!(worker.hear()?, json!({"ready": "none"}));
        worker.run("1 + 1")?;
        assert_eq!(worker.hear()?, json!({"done": {"value": 2}}));
        worker.leave()
    });
    attempt.join().map_err(|_| "the thread panicked")?
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_no_worker_fails_the_call_and_says_so_to_the_operator() -> TestResult {
    for (script, code) in [
        ("exit 1", ErrorCode::Internal),
        ("echo hello, is anybody there?", ErrorCode::Internal),
        (r#"printf '\024\000\000\000{"refused":"no way"}'"#, ErrorCode::NotSupported),
    ] {
        let stage = Stage::configured(|config| (config.program, config.args) = shell(script)).await?;
        let failure = stage.pool.run(request("1", PLENTY), &stage.call(PLENTY)?).await.err().ok_or("it ran")?;
        assert_eq!((failure.code, failure.outcome), (code, Outcome::NotRun), "{script}");
        assert!(failure.cause.is_some());
    }
    let stage = Stage::configured(|config| config.program = "/nowhere/footbridge".into()).await?;
    let failure = stage.pool.run(request("1", PLENTY), &stage.call(PLENTY)?).await.err().ok_or("it ran")?;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Internal, Outcome::NotRun));
    Ok(())
}
