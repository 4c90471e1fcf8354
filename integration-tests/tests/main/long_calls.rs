//! Calls that take their time, on a real foot: they are stopped where they run, kept alive by signs of life, stand in
//! nobody's way, and have a known fate when the foot is cut off.

use std::time::{Duration, Instant};

use integration_tests::api::{Api, send};
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::{Options, TestHub};
use integration_tests::leftovers;
use integration_tests::proxy::{FaultProxy, Plan};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::TestResult;

/// A cancel reaches the foot, stops the work and frees its place within this; half of it is for a busy machine.
const PROMPT: Duration = Duration::from_secs(2);
const HEARTBEAT_MS: u64 = 500;
const GRACE_MS: u64 = 2_000;
/// Longer than any test waits for.
const ENDLESS_MS: u64 = 120_000;

/// A hub that notices soon, a client, and a folder.
async fn stage() -> TestResult<(TestHub, Api, TempDir)> {
    let env = vec![
        ("FOOTBRIDGE_FEET_HEARTBEAT_MS".to_owned(), HEARTBEAT_MS.to_string()),
        ("FOOTBRIDGE_FEET_RESUME_GRACE_MS".to_owned(), GRACE_MS.to_string()),
    ];
    let hub = TestHub::start_with(Options { env, ..Options::default() }).await?;
    let api = hub.api()?.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
    Ok((hub, api, tempfile::tempdir()?))
}

/// Starts a call that takes `ms`, and waits until it runs.
async fn begin(api: &Api, ms: u64) -> TestResult<(String, JoinSet<TestResult<Value>>)> {
    let request = api.scoped(Method::POST, "tools/dev__echo_wait/invoke").header("accept", "text/event-stream");
    let response = request.json(&json!({"arguments": {"ms": ms, "progressMs": 50}})).send().await?;
    let id = response.headers().get("footbridge-call").and_then(|id| id.to_str().ok()).ok_or("no id")?.to_owned();
    let mut call = JoinSet::new();
    let (runs, mut running) = tokio::sync::watch::channel(false);
    call.spawn(async move {
        let mut response = response;
        let mut text = String::new();
        while let Some(bytes) = response.chunk().await? {
            text.push_str(std::str::from_utf8(&bytes)?);
            runs.send_replace(text.contains("event: progress"));
        }
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).ok_or("no end")?;
        Ok(serde_json::from_str(last)?)
    });
    running.wait_for(|runs| *runs).await?;
    Ok((id, call))
}

async fn end(mut call: JoinSet<TestResult<Value>>) -> TestResult<Value> {
    call.join_next().await.ok_or("no call")??
}

/// H14: the work ends, not only the wait for it. The foot has one place: the next call gets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_where_it_runs_and_frees_its_place() -> TestResult {
    let (hub, api, folder) = stage().await?;
    let more = ["--echo", "--max-concurrent", "1"];
    let foot = TestFoot::start(&hub, "ann", "dev", folder.path(), &more).await?;
    for by in ["DELETE", "a closed stream", "the hard limit"] {
        let begun;
        match by {
            "DELETE" => {
                let (id, call) = begin(&api, ENDLESS_MS).await?;
                begun = Instant::now();
                api.delete(&format!("calls/{id}")).await?.ok()?;
                let answer = end(call).await?;
                assert_eq!((&answer["code"], &answer["outcome"]), (&json!("cancelled"), &json!("unknown")), "{answer}");
            }
            "a closed stream" => {
                let (_, call) = begin(&api, ENDLESS_MS).await?;
                begun = Instant::now();
                drop(call);
            }
            _ => {
                let body = json!({"arguments": {"ms": ENDLESS_MS, "progressMs": 50}, "maxTimeoutMs": 300});
                let answer = send(api.scoped(Method::POST, "tools/dev__echo_wait/invoke").json(&body)).await?;
                assert_eq!(answer.code(), "deadline_exceeded", "{}", answer.text);
                begun = Instant::now();
            }
        }
        api.call("dev__echo", json!({})).await?;
        assert!(begun.elapsed() < PROMPT, "{by}: the place was free after {:?}", begun.elapsed());
    }
    assert_eq!(foot.welcomes(), 1, "{}", foot.process.output());
    leftovers::end(hub, vec![foot], folder.path())
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_carry_a_call_past_its_idle_limit_and_never_past_its_hard_one() -> TestResult {
    let (hub, api, folder) = stage().await?;
    let foot = TestFoot::start(&hub, "ann", "dev", folder.path(), &["--echo"]).await?;
    let wait = async |arguments: Value, idle_ms: u64, hard_ms: u64| {
        let body = json!({"arguments": arguments, "timeoutMs": idle_ms, "maxTimeoutMs": hard_ms});
        let answer = send(api.scoped(Method::POST, "tools/dev__echo_wait/invoke").json(&body)).await?;
        TestResult::Ok((answer.code(), answer.json()["durationMs"].as_u64().unwrap_or_default()))
    };
    let (code, took) = wait(json!({"ms": 2_500, "progressMs": 100}), 1_000, 60_000).await?;
    assert!(code.is_empty() && took >= 2_500, "{code} after {took} ms");
    let (code, took) = wait(json!({"ms": ENDLESS_MS}), 1_000, 60_000).await?;
    assert!(code == "deadline_exceeded" && (1_000..30_000).contains(&took), "{code} after {took} ms");
    let (code, took) = wait(json!({"ms": ENDLESS_MS, "progressMs": 100}), 1_000, 2_000).await?;
    assert!(code == "deadline_exceeded" && (2_000..30_000).contains(&took), "{code} after {took} ms");
    leftovers::end(hub, vec![foot], folder.path())
}

/// H18: neither the heartbeat nor other calls wait for a call, with and without signs of life.
#[tokio::test(flavor = "multi_thread")]
async fn long_calls_starve_nobody() -> TestResult {
    let (hub, api, folder) = stage().await?;
    let foot = TestFoot::start(&hub, "ann", "dev", folder.path(), &["--echo"]).await?;
    let mut long = JoinSet::new();
    for progress in [json!({}), json!({"progressMs": 1})] {
        let mut arguments = json!({"ms": HEARTBEAT_MS * 8});
        if let (Some(all), Some(more)) = (arguments.as_object_mut(), progress.as_object()) {
            all.extend(more.clone());
        }
        let api = api.clone();
        long.spawn(async move { api.call("dev__echo_wait", arguments).await });
    }
    let mut quick = 0;
    while !long.is_empty() {
        let begun = Instant::now();
        api.call("dev__echo", json!({})).await?;
        assert!(begun.elapsed() < PROMPT, "a quick call took {:?}", begun.elapsed());
        quick += 1;
        while let Some(done) = long.try_join_next() {
            done??;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(quick > 10, "{quick} quick calls beside the long ones");
    assert_eq!(foot.welcomes(), 1, "the connection lasts: {}", foot.process.output());
    leftovers::end(hub, vec![foot], folder.path())
}

/// H17 on real processes: the foot is cut off and resumes; it is killed and comes back; it is killed and does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_a_foot_that_goes_away_has_a_known_fate() -> TestResult {
    let (hub, api, folder) = stage().await?;
    let proxy = FaultProxy::start(&hub.url, Plan::calm()).await?;
    let mut foot = TestFoot::start_via(&hub, proxy.url(), "ann", "dev", folder.path(), &["--echo"]).await?;

    let runs = api.call("dev__echo", json!({})).await?["run"].as_u64().ok_or("no count")?;
    let (_, call) = begin(&api, 1_500).await?;
    proxy.cut_all();
    let answer = end(call).await?;
    assert_eq!((&answer["isError"], &answer["structured"]["run"]), (&json!(false), &json!(runs + 1)), "{answer}");
    foot.connected().await?;
    let next = api.call("dev__echo", json!({})).await?["run"].as_u64();
    assert_eq!(next, Some(runs + 2), "it ran once");

    let (_, call) = begin(&api, ENDLESS_MS).await?;
    foot.kill_and_restart()?;
    let answer = end(call).await?;
    assert_eq!((&answer["code"], &answer["outcome"]), (&json!("foot_restarted"), &json!("unknown")), "{answer}");

    foot.connected().await?;
    let (_, call) = begin(&api, ENDLESS_MS).await?;
    let begun = Instant::now();
    foot.process.kill()?;
    let answer = end(call).await?;
    assert_eq!((&answer["code"], &answer["outcome"]), (&json!("foot_gone"), &json!("unknown")), "{answer}");
    assert!(begun.elapsed() >= Duration::from_millis(GRACE_MS), "it could still have come back");
    assert!(begun.elapsed() < Duration::from_millis(GRACE_MS) + PROMPT * 4, "{:?}", begun.elapsed());
    eventually("nothing is pending", || async { Ok((api.running_calls().await? == 0).then_some(())) }).await?;
    leftovers::end(hub, Vec::new(), folder.path())
}
