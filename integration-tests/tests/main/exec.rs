//! Commands on a foot, from the HTTP API to the process and back, on the real binaries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use integration_tests::api::Api;
use integration_tests::binaries;
use integration_tests::eventually::{PATIENCE, eventually};
use integration_tests::foot::{TestFoot, write_private};
use integration_tests::hub::TestHub;
use integration_tests::process::Process;
use reqwest::Method;
use serde_json::{Value, json};

use crate::TestResult;

/// How soon nothing of a command may be left.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A shell with a sleep, a child that heeds no SIGTERM, and one that left the session and has lost its parent.
const FAMILY: &str = "\
    sleep 1000 & \
    sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & \
    (setsid sh -c 'sleep 1000 & wait' &) ; \
    wait";
/// The processes of it.
const FAMILY_SIZE: usize = 6;

/// A hub with a foot that runs any command, and a client that may call it.
struct Scene {
    hub: TestHub,
    foot: TestFoot,
    api: Api,
    root: tempfile::TempDir,
}

impl Scene {
    async fn start(more: &[&str]) -> TestResult<Self> {
        let hub = TestHub::start().await?;
        let root = tempfile::tempdir()?;
        let flags = [&["--allow-exec", "--allow-write"], more].concat();
        let foot = TestFoot::start(&hub, "ada", "laptop", root.path(), &flags).await?;
        let api = hub.api()?.with_token(&hub.token("ada", &["engine", "viewer"]).await?);
        Ok(Self { hub, foot, api, root })
    }

    /// Starts a call whose processes carry a mark, and waits until all of them run.
    async fn family(&self, mark: &str, limits: Value) -> TestResult<reqwest::Response> {
        let mut body = json!({"arguments": {"command": FAMILY, "env": {"MARK": mark}}});
        for (key, value) in limits.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        let request = self.api.scoped(Method::POST, "tools/exec_run/invoke").header("accept", "text/event-stream");
        let response = request.json(&body).send().await?;
        until_marked(mark, FAMILY_SIZE, PATIENCE).await?;
        Ok(response)
    }
}

/// The processes that carry a mark in their environment.
fn marked(mark: &str) -> TestResult<Vec<u32>> {
    let carries = |pid: u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == format!("MARK={mark}").as_bytes())
    };
    let pids = std::fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter(|pid| carries(*pid)).collect())
}

async fn until_marked(mark: &str, count: usize, patience: Duration) -> TestResult {
    let end = Instant::now() + patience;
    loop {
        let found = marked(mark)?;
        if found.len() == count {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(format!("{count} processes of {mark} expected, these are there: {found:?}").into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The folders of temporary files that a foot's commands left.
fn temporary(foot: &Path) -> TestResult<Vec<PathBuf>> {
    let entries = std::fs::read_dir(foot)?.flatten().map(|entry| entry.path());
    Ok(entries.filter(|path| path.to_string_lossy().contains("footbridge-")).collect())
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_behind() -> TestResult {
    let scene = Scene::start(&[]).await?;
    let response = scene.family("exec-cancel", json!({})).await?;
    let id = response.headers().get("footbridge-call").and_then(|value| value.to_str().ok()).ok_or("no id")?.to_owned();
    let path = format!("calls/{id}");
    let (deleted, gone) = tokio::join!(scene.api.delete(&path), until_marked("exec-cancel", 0, GONE_WITHIN));
    gone?;
    assert_eq!(deleted?.ok()?.json()["result"]["code"], "cancelled");

    // Whoever goes away takes an unkeyed call along.
    drop(scene.family("exec-cancel", json!({})).await?);
    until_marked("exec-cancel", 0, GONE_WITHIN).await
}

#[tokio::test]
async fn a_foot_that_is_killed_takes_its_commands_along() -> TestResult {
    let mut scene = Scene::start(&[]).await?;
    let _response = scene.family("exec-killed", json!({})).await?;
    let more = json!({"command": FAMILY, "env": {"MARK": "exec-killed"}, "waitMs": 0});
    let started = scene.api.call("exec_run", more).await?;
    assert_eq!(started["status"], "running");
    until_marked("exec-killed", 2 * FAMILY_SIZE, PATIENCE).await?;
    scene.foot.process.kill()?;
    until_marked("exec-killed", 0, GONE_WITHIN).await
}

#[tokio::test]
async fn the_deadline_is_kept_while_the_hub_is_away() -> TestResult {
    let mut scene = Scene::start(&[]).await?;
    let _response = scene.family("exec-away", json!({"maxTimeoutMs": 5_000})).await?;
    scene.hub.process.kill()?;
    assert_eq!(marked("exec-away")?.len(), FAMILY_SIZE, "work goes on without the hub");
    until_marked("exec-away", 0, Duration::from_secs(5) + GONE_WITHIN).await
}

#[tokio::test]
async fn output_comes_while_the_command_runs() -> TestResult {
    let scene = Scene::start(&[]).await?;
    let go = scene.root.path().join("go");
    let body =
        json!({"arguments": {"command": "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done >&2; exit 7"}});
    let request = scene.api.scoped(Method::POST, "tools/exec_run/invoke").header("accept", "text/event-stream");
    let mut stream = request.json(&body).send().await?.bytes_stream();
    let mut text = String::new();
    while !text.contains("begun") {
        text.push_str(std::str::from_utf8(&stream.next().await.ok_or("the stream ended")??)?);
    }
    assert!(!text.contains("event: result"), "{text}");
    std::fs::write(go, "")?;
    while let Some(bytes) = stream.next().await {
        text.push_str(std::str::from_utf8(&bytes?)?);
    }
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, ["output", "output", "result"], "{text}");
    assert!(text.contains("\"exitCode\":7") && text.contains("\"isError\":true"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_command_goes_on_between_calls() -> TestResult {
    let scene = Scene::start(&[]).await?;
    let started = scene.api.call("exec_run", json!({"argv": ["cat"], "stdin": "one\n", "waitMs": 0})).await?;
    let id = &started["id"];
    scene.api.call("exec_input", json!({"id": id, "data": "two\n", "close": true})).await?;
    eventually("the command ends", || async {
        let state = scene.api.call("exec_status", json!({ "id": id })).await?;
        Ok((state["status"] == "completed").then_some(()))
    })
    .await?;
    let tail = scene.api.call("exec_tail", json!({"id": id, "lines": 5})).await?;
    assert_eq!(tail["stdout"], "one\ntwo\n");
    Ok(())
}

/// The other program that is a foot: `footbridge`, and one whose file is gone since it started, as after an upgrade.
#[tokio::test]
async fn commands_run_in_either_program_also_after_its_file_is_gone() -> TestResult {
    let scene = Scene::start(&[]).await?;
    let folder = tempfile::tempdir()?;
    let (program, root) = (folder.path().join("footbridge"), folder.path().join("root"));
    std::fs::copy(binaries::footbridge()?, &program)?;
    std::fs::create_dir_all(&root)?;
    write_private(&folder.path().join("token"), &scene.hub.token("bob", &["foot", "viewer"]).await?)?;
    let mut command = Command::new(&program);
    command.args(["__foot", "run", "--hub", &scene.hub.url, "--project", "main", "--allow-exec", "--name", "other"]);
    command.current_dir(&root).arg("--state").arg(folder.path().join("state"));
    command.arg("--token-file").arg(folder.path().join("token")).env("TMPDIR", folder.path());
    let _foot = Process::spawn(&mut command)?;
    let api = scene.hub.api()?.with_token(&scene.hub.token("bob", &["engine", "viewer"]).await?);
    eventually("the foot offers commands", || async {
        let answer = api.invoke("exec_run", json!({"argv": ["true"]})).await?;
        Ok(answer.status.is_success().then_some(()).filter(|()| answer.json()["isError"] == false))
    })
    .await?;
    std::fs::remove_file(&program)?;
    std::fs::write(&program, "another program by now")?;
    let done = api.call("exec_run", json!({"command": "echo $0 ran; ls $TMPDIR"})).await?;
    assert_eq!(done["stdout"], "sh ran\n", "{done}");
    let denied = api.invoke("exec_run", json!({"command": "echo x > file"})).await?;
    assert_eq!(denied.json()["isError"], true, "without --allow-write the root is only read: {}", denied.text);
    assert_eq!(temporary(folder.path())?, Vec::<PathBuf>::new());
    Ok(())
}

#[tokio::test]
async fn a_root_around_secrets_offers_no_commands_and_says_why() -> TestResult {
    let hub = TestHub::start().await?;
    let root = tempfile::tempdir()?;
    std::fs::create_dir(root.path().join("private"))?;
    let deny = root.path().join("private").to_string_lossy().into_owned();
    let flags = ["--allow-exec", "--deny", &deny];
    let foot = TestFoot::start(&hub, "ada", "laptop", root.path(), &flags).await?;
    let api = hub.api()?.with_token(&hub.token("ada", &["engine", "viewer"]).await?);
    assert_eq!(api.invoke("exec_run", json!({"argv": ["true"]})).await?.code(), "unknown_tool");
    let log = foot.process.output();
    assert!(log.contains("private") && log.contains("--no-kernel-sandbox"), "{log}");
    drop(foot);

    let flags = ["--allow-exec", "--no-kernel-sandbox", "--deny", &deny];
    let foot = TestFoot::start(&hub, "ada", "desktop", root.path(), &flags).await?;
    let done = api.call("exec_run", json!({"argv": ["ls"]})).await?;
    assert_eq!(done["stdout"], "private\n");
    assert!(foot.process.output().contains("unconfined"), "{}", foot.process.output());
    Ok(())
}
