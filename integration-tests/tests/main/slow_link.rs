//! A foot behind a slow link: what is large is in nobody's way.

use std::time::{Duration, Instant};

use integration_tests::bench::say;
use integration_tests::foot::TestFoot;
use integration_tests::hub::{Options, TestHub};
use integration_tests::leftovers;
use integration_tests::proxy::{FaultProxy, Link, Plan};
use serde_json::json;
use tokio::task::JoinSet;

use crate::TestResult;

/// Speed of the link, bits a second, and its latency each way.
const LINK: Link = Link::slow(2_000_000, Duration::from_millis(20));
/// Two that are missed end a connection: a heartbeat that waits for a large result would be seen.
const HEARTBEAT_MS: u64 = 1_000;
/// A large result: the link needs more than twenty seconds for it.
const RESULT_BYTES: usize = 5 * 1024 * 1024;
/// Large arguments: more than three seconds, and as much for their echo.
const ARGUMENTS_BYTES: usize = 800 * 1024;
/// What a small call may take beside those. The aim is a second beyond the round trip; this is for a busy machine.
const SMALL_LIMIT: Duration = Duration::from_secs(3);
/// Bytes of a small call, each way.
const SMALL_BYTES: usize = 1024;

#[tokio::test(flavor = "multi_thread")]
async fn small_calls_and_heartbeats_pass_what_is_large() -> TestResult {
    let env = vec![("FOOTBRIDGE_FEET_HEARTBEAT_MS".to_owned(), HEARTBEAT_MS.to_string())];
    let hub = TestHub::start_with(Options { env, ..Options::default() }).await?;
    let folder = tempfile::tempdir()?;
    let proxy = FaultProxy::start_on(&hub.url, Plan::calm(), LINK).await?;
    let foot = TestFoot::start_via(&hub, proxy.url(), "ann", "dev", folder.path(), &["--echo"]).await?;
    let api = hub.api()?.with_token(&hub.token("ann", &["engine", "viewer"]).await?);

    let mut large = JoinSet::new();
    let begun = Instant::now();
    for (tool, arguments, bytes) in [
        ("dev__echo_bytes", json!({"bytes": RESULT_BYTES}), RESULT_BYTES),
        ("dev__echo_text", json!({"text": "x".repeat(ARGUMENTS_BYTES)}), ARGUMENTS_BYTES),
    ] {
        let api = api.clone();
        large.spawn(async move {
            let answer = api.invoke(tool, arguments).await?.ok()?.json();
            let text = answer["content"][0]["text"].as_str().ok_or_else(|| format!("no text: {answer}"))?;
            assert!(text.len() == bytes && text.bytes().all(|byte| byte == b'x'), "{} of {bytes} bytes", text.len());
            TestResult::Ok(())
        });
    }
    let mut times = Vec::new();
    while !large.is_empty() {
        let text = format!("{:0SMALL_BYTES$}", times.len());
        let asked = Instant::now();
        let answer = api.invoke("dev__echo_text", json!({ "text": text })).await?.ok()?.json();
        times.push(asked.elapsed());
        assert_eq!(answer["content"][0]["text"], text);
        while let Some(done) = large.try_join_next() {
            done??;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    times.sort();
    let (count, took) = (times.len(), begun.elapsed());
    let (p50, p99, max) = (times[count / 2], times[count * 99 / 100], times[count - 1]);
    say(&format!("{count} small calls beside large ones in {took:?}: p50 {p50:?}, p99 {p99:?}, max {max:?}"));
    let ideal = Duration::from_secs_f64((RESULT_BYTES + ARGUMENTS_BYTES) as f64 * 8.0 / 2e6);
    assert!(took > ideal, "the link was not slow: {took:?}");
    assert!(max < SMALL_LIMIT, "a small call took {max:?}");
    assert_eq!(foot.welcomes(), 1, "no heartbeat is missed: {}", foot.process.output());
    assert_eq!(proxy.counts().connections(), 1, "{}", proxy.counts());
    leftovers::end(hub, vec![foot], folder.path())
}
