//! Many callers, several feet: nothing lost, nothing crossed, nothing left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use integration_tests::api::Api;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::{Options, TestHub};
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use crate::TestResult;

const FEET: usize = 4;
const CALLERS: usize = 64;
const CALLS: usize = 20_000;

/// Heartbeat of a hub that notices soon, milliseconds: long enough for a busy machine to answer in.
const HEARTBEAT_MS: u64 = 1_000;
/// How long calls wait for a foot that is gone, milliseconds.
const GRACE_MS: u64 = 3_000;
/// A foot is gone after so many silent heartbeats, and jitter makes each up to so many percent longer.
const SILENT_HEARTBEATS: u64 = 2;
const HEARTBEAT_PERCENT: u64 = 150;
/// What a busy machine may add.
const SLACK_MS: u64 = 10_000;
/// A call that waits for nobody takes less.
const PROMPT: Duration = Duration::from_secs(1);

/// Open files of a process.
#[cfg(target_os = "linux")]
fn descriptors(pid: u32) -> TestResult<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_on_four_feet_lose_and_cross_nothing() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let mut feet = Vec::new();
    for index in 0..FEET {
        feet.push(TestFoot::start(&hub, "ann", &format!("foot{index}"), folder.path(), &["--echo"]).await?);
    }
    let token = hub.token("ann", &["engine", "viewer"]).await?;
    let api = Api::new(&hub.url, Some(&token))?;
    api.call("foot0__echo", json!({"text": "warm"})).await?;
    #[cfg(target_os = "linux")]
    let before = descriptors(hub.process.pid())?;

    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (api, next) = (api.clone(), next.clone());
        callers.spawn(async move {
            let mut answered = 0;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= CALLS {
                    return TestResult::<usize>::Ok(answered);
                }
                let text = format!("call {number}");
                let result = api.call(&format!("foot{}__echo", number % FEET), json!({ "text": text })).await?;
                if result["arguments"]["text"] != text {
                    return Err(format!("`{text}` was answered with {result}").into());
                }
                answered += 1;
            }
        });
    }
    let mut answered = 0;
    while let Some(done) = callers.join_next().await {
        answered += done??;
    }
    assert_eq!(answered, CALLS);

    // Nothing runs any more, and once the callers have gone the hub holds no more files than before they came.
    drop(api);
    let root = hub.api()?;
    eventually("calls and files are let go of", || async {
        #[cfg(target_os = "linux")]
        if descriptors(hub.process.pid()).map_err(|error| error.to_string())? > before + 2 {
            // Two more are the connection of this very question, and the one it was asked on before.
            return Ok(None);
        }
        Ok((root.running_calls().await? == 0).then_some(()))
    })
    .await?;
    Ok(())
}

/// A foot that stops, with its socket open, is noticed by its silence; its calls fail with an outcome, the others never wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_foot_is_noticed_and_harms_nobody_else() -> TestResult {
    let env = vec![
        ("FOOTBRIDGE_FEET_HEARTBEAT_MS".to_owned(), HEARTBEAT_MS.to_string()),
        ("FOOTBRIDGE_FEET_RESUME_GRACE_MS".to_owned(), GRACE_MS.to_string()),
    ];
    let hub = TestHub::start_with(Options { env, ..Options::default() }).await?;
    let folder = tempfile::tempdir()?;
    let stopped = TestFoot::start(&hub, "ann", "stopped", folder.path(), &["--echo"]).await?;
    let _lively = TestFoot::start(&hub, "ann", "lively", folder.path(), &["--echo"]).await?;
    let token = hub.token("ann", &["engine", "viewer"]).await?;
    let api = Api::new(&hub.url, Some(&token))?;

    stopped.process.signal(Signal::STOP)?;
    let waiting = {
        let api = api.clone();
        async move {
            let begun = Instant::now();
            let answer = api.invoke("stopped__echo", json!({"text": "into the void"})).await?;
            TestResult::Ok((answer.json(), begun.elapsed()))
        }
    };
    let others = {
        let api = api.clone();
        async move {
            let mut times = Vec::new();
            for number in 0..200 {
                let begun = Instant::now();
                api.call("lively__echo", json!({"text": number.to_string()})).await?;
                times.push(begun.elapsed());
            }
            TestResult::<Vec<Duration>>::Ok(times)
        }
    };
    let (failed, times) = tokio::join!(waiting, others);
    let ((failed, took), times) = (failed?, times?);
    assert_eq!((&failed["code"], &failed["outcome"]), (&json!("foot_gone"), &json!("unknown")), "{failed}");
    let noticed = Duration::from_millis(SILENT_HEARTBEATS * HEARTBEAT_MS * HEARTBEAT_PERCENT / 100 + GRACE_MS);
    assert!(took < noticed + Duration::from_millis(SLACK_MS), "the call of the stopped foot failed after {took:?}");
    let prompt = times.iter().filter(|took| **took < PROMPT).count();
    assert!(prompt * 100 >= times.len() * 95, "calls of another foot waited for the stopped one: {times:?}");
    let listed = api.get("tools?prefix=stopped__").await?.json();
    assert_eq!(listed["tools"], json!([]), "the tools of a foot that is gone are not listed");

    stopped.process.signal(Signal::CONT)?;
    eventually("the foot comes back", || async { Ok(api.call("stopped__echo", json!({"text": "back"})).await.ok()) })
        .await?;
    Ok(())
}
