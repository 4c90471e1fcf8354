//! One name, and more than one process that wants it: one of them serves, at every moment, and the others know why not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use integration_tests::api::Api;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use integration_tests::leftovers::{end, none_left};
use integration_tests::proxy::{Fault, FaultProxy, Plan};
use integration_tests::watcher::{Seen, Watcher};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::TestResult;

/// Exit code of a foot whose name belongs to another one.
const NAME_TAKEN: i32 = 5;
/// Exit code of a foot that a newer process replaced.
const SUPERSEDED: i32 = 6;
/// How long a newer process may take until it serves, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a foot needs to come back after one cut: its first wait and a busy machine.
const COMES_BACK: Duration = Duration::from_secs(5);
/// How long the new connection is watched after the old one has ended.
const MARGIN: Duration = Duration::from_secs(1);

/// A hub with one owner of feet. Each process of `dev` appends to a file of its own: so it is seen who served a call.
struct Stage {
    hub: TestHub,
    api: Api,
    folder: TempDir,
    calls: usize,
}

impl Stage {
    async fn set() -> TestResult<Self> {
        let hub = TestHub::start().await?;
        let api = hub.api()?.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
        Ok(Self { hub, api, folder: tempfile::tempdir()?, calls: 0 })
    }

    fn lines(&self, process: &str) -> PathBuf {
        self.folder.path().join(process)
    }

    fn watch(&self) -> Watcher {
        Watcher::start(self.api.clone(), "dev", "dev__echo_append")
    }

    async fn launch(&self, process: &str, url: &str, state: Arc<TempDir>) -> TestResult<TestFoot> {
        let lines = self.lines(process).to_string_lossy().into_owned();
        let more = ["--echo-append", lines.as_str()];
        TestFoot::launch(&self.hub, url, "ann", "dev", self.folder.path(), &more, state).await
    }

    /// Calls until `process` has served one. Somebody serves each: a call in flight may be lost with an older process, and
    /// none is turned away.
    async fn served_by(&mut self, process: &str) -> TestResult {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.calls += 1;
            let line = format!("{:06}", self.calls);
            let answer = self.api.invoke("dev__echo_append", json!({ "line": line })).await?;
            assert!(["", "foot_restarted"].contains(&answer.code().as_str()), "call {line}: {}", answer.text);
            if self.served(process)?.contains(&line) {
                return Ok(());
            }
        }
        Err(format!("`{process}` serves nobody").into())
    }

    /// The calls that a process served.
    fn served(&self, process: &str) -> TestResult<Vec<String>> {
        let path = self.lines(process);
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        Ok(text.lines().map(str::to_owned).collect())
    }

    async fn running(&self) -> TestResult {
        eventually("a call runs", || async { Ok((self.api.running_calls().await? > 0).then_some(())) }).await
    }
}

fn assert_unbroken(seen: &Seen) {
    assert!(seen.looks > 10, "nobody looked: {seen:?}");
    assert_eq!((seen.gaps.len(), seen.doubles), (0, 0), "{seen:?}");
}

/// The same key in another place, as with a configuration that was copied.
fn copy_of(state: &Path) -> TestResult<Arc<TempDir>> {
    let copy = tempfile::tempdir()?;
    let status = std::process::Command::new("cp").arg("-a").arg(state.join(".")).arg(copy.path()).status()?;
    if status.success() { Ok(Arc::new(copy)) } else { Err("the state was not copied".into()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_process_takes_over_without_a_gap_and_the_older_one_ends_its_work() -> TestResult {
    let mut stage = Stage::set().await?;
    let mut older = stage.launch("first", &stage.hub.url, Arc::new(tempfile::tempdir()?)).await?;
    older.connected().await?;
    stage.served_by("first").await?;
    let watcher = stage.watch();
    for (process, before, copied) in [("second", "first", false), ("third", "second", true)] {
        let mut long = JoinSet::new();
        let (api, arguments) = (stage.api.clone(), json!({"line": "long", "ms": 120_000}));
        long.spawn(async move { api.invoke("dev__echo_append", arguments).await });
        stage.running().await?;
        let state = if copied { copy_of(older.state())? } else { older.shared_state() };
        let newer = stage.launch(process, &stage.hub.url, state).await?;
        stage.served_by(process).await?;
        let lost = long.join_next().await.ok_or("no call")???.json();
        assert_eq!((&lost["code"], &lost["outcome"]), (&json!("foot_restarted"), &json!("unknown")), "{lost}");

        let status = older.process.wait()?;
        assert_eq!(status.code(), Some(SUPERSEDED), "{}", older.process.output());
        stage.served_by(process).await?;
        let (theirs, ours) = (stage.served(before)?, stage.served(process)?);
        assert!(!theirs.contains(&"long".to_owned()), "the older process went on with its work: {theirs:?}");
        assert!(theirs.last() < ours.first(), "two served at one time: {theirs:?}, {ours:?}");
        if copied {
            none_left(&[older.state()])?;
        }
        older = newer;
    }
    assert_unbroken(&watcher.seen().await?);
    end(stage.hub, vec![older], stage.folder.path())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_never_gets_the_name_and_the_owner_of_it_notices_nothing() -> TestResult {
    let mut stage = Stage::set().await?;
    let first = stage.launch("first", &stage.hub.url, Arc::new(tempfile::tempdir()?)).await?;
    first.connected().await?;
    stage.served_by("first").await?;
    let watcher = stage.watch();
    for _ in 0..3 {
        let mut second = stage.launch("second", &stage.hub.url, Arc::new(tempfile::tempdir()?)).await?;
        stage.served_by("first").await?;
        let status = second.process.wait()?;
        let output = second.process.output();
        assert_eq!(status.code(), Some(NAME_TAKEN), "{output}");
        assert!(output.contains("[name_taken]") && output.contains("--name"), "it says what to do: {output}");
        none_left(&[second.state()])?;
    }
    stage.served_by("first").await?;
    assert_eq!(stage.served("second")?, Vec::<String>::new());
    assert_unbroken(&watcher.seen().await?);
    assert_eq!(first.welcomes(), 1, "{}", first.process.output());
    end(stage.hub, vec![first], stage.folder.path())
}

/// H16: the hub holds the old connection open for long after the new one is up; then comes what was said on it last, and
/// its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_close_of_the_old_connection_is_noticed_by_nobody() -> TestResult {
    let mut stage = Stage::set().await?;
    let proxy = FaultProxy::start(&stage.hub.url, Plan::calm()).await?;
    let mut foot = stage.launch("first", proxy.url(), Arc::new(tempfile::tempdir()?)).await?;
    foot.connected().await?;
    stage.served_by("first").await?;
    let watcher = stage.watch();
    for (round, restarted) in [false, true, false].into_iter().enumerate() {
        let before = foot.welcomes();
        proxy.inject(Fault::Strand);
        if restarted {
            foot.kill_and_restart()?;
        }
        let welcomes = if restarted { 1 } else { before + 1 };
        let back = || async { Ok((foot.welcomes() >= welcomes).then_some(())) };
        eventually("the foot has a new connection", back).await?;
        // Calls before, during and after the end of the old connection.
        let old_ends = Instant::now() + FaultProxy::lasting(Fault::Strand) + MARGIN;
        while Instant::now() < old_ends {
            stage.served_by("first").await?;
        }
        assert_eq!(proxy.counts().of(Fault::Strand), round as u64 + 1, "{}", proxy.counts());
    }
    assert_unbroken(&watcher.seen().await?);
    end(stage.hub, vec![foot], stage.folder.path())
}

/// A foot that is cut off is missing, for a reason that its owner can see, and only until it is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_foot_that_was_cut_off_is_away_and_soon_back() -> TestResult {
    let mut stage = Stage::set().await?;
    let proxy = FaultProxy::start(&stage.hub.url, Plan::calm()).await?;
    let foot = stage.launch("first", proxy.url(), Arc::new(tempfile::tempdir()?)).await?;
    foot.connected().await?;
    stage.served_by("first").await?;
    let watcher = stage.watch();
    proxy.refuse_for(Duration::from_millis(300));
    proxy.cut_all();
    eventually("the foot has a new connection", || async { Ok((foot.welcomes() == 2).then_some(())) }).await?;
    foot.connected().await?;
    stage.served_by("first").await?;
    let seen = watcher.seen().await?;
    assert_eq!((seen.gaps.len(), seen.doubles), (1, 0), "{seen:?}");
    assert!(seen.gaps.iter().all(|gap| gap.state == "away" && gap.lasted < COMES_BACK), "{seen:?}");
    end(stage.hub, vec![foot], stage.folder.path())
}
