//! Scripts end within their limits, native work included, and starve nobody.

use std::time::Duration;

use integration_tests::api::Api;
#[cfg(target_os = "linux")]
use integration_tests::eventually::eventually;
use integration_tests::hub::TestHub;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::TestResult;

/// What a run may take beyond its deadline.
const BEYOND_MS: u64 = 200;
/// Runs of each timed script: the machine may be busy with something else, so the quickest one counts.
const RUNS: usize = 3;
/// No run at all may take longer beyond its deadline than this, however busy the machine is.
const FAR_BEYOND_MS: u64 = 5_000;

async fn run(api: &Api, code: &str, timeout_ms: u64) -> TestResult<Value> {
    Ok(api.invoke("execute_javascript", json!({"code": code, "timeoutMs": timeout_ms})).await?.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_limit_holds() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let timeout = 300;
    for endless in [
        "for (;;) {}",
        "try { for (;;) {} } catch (e) { for (;;) {} }",
        "try { for (;;) {} } finally { for (;;) {} }",
        "const go = async () => { for (;;) { try { await 0; for (;;) {} } catch (e) {} } };\ngo().catch(() => go()).then(() => go());\n\"started\";",
        "(async () => { for (;;) await 0 })(); 1",
        "'a'.repeat(4e6).indexOf('a'.repeat(2e6)+'b')",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "const f = () => { try { return f() } catch (e) { for (;;) {} } }; f()",
        "({ toJSON() { for (;;) {} } })",
        "({ get value() { for (;;) {} } })",
        "new Proxy({}, { ownKeys() { for (;;) {} } })",
        "await new Promise((resolve) => { const spin = () => Promise.resolve().then(spin); spin() })",
    ] {
        let mut quickest = u64::MAX;
        for _ in 0..RUNS {
            let reply = run(&api, endless, timeout).await?;
            let took = reply["durationMs"].as_u64().ok_or_else(|| format!("{endless}: {reply}"))?;
            let code = reply["code"].as_str().unwrap_or_default();
            assert!(["deadline_exceeded", "script_limit"].contains(&code), "{endless}: {reply}");
            assert!(took <= timeout + FAR_BEYOND_MS, "{endless} took {took} ms");
            quickest = quickest.min(took);
        }
        assert!(quickest <= timeout + BEYOND_MS, "{endless} took {quickest} ms at best");
    }
    for (greedy, what) in [
        ("const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)", "memory"),
        ("const f = () => f() + 1; f()", "stack"),
        ("new Array(1e9).fill(0).length", "memory"),
    ] {
        let reply = run(&api, greedy, 10_000).await?;
        assert_eq!((&reply["isError"], &reply["code"]), (&json!(true), &json!("script_limit")), "{what}: {reply}");
    }
    let thrown = run(&api, "1;\nthrow new TypeError('no such thing')", 5_000).await?;
    assert_eq!(thrown["code"], "script_error");
    let place = &thrown["structured"];
    assert_eq!(
        (&place["error"], &place["message"], &place["line"]),
        (&json!("TypeError"), &json!("no such thing"), &json!(2))
    );
    let big = api.invoke("execute_javascript", json!({"code": "2n ** 70n"})).await?.text;
    assert!(big.contains("\"value\":1180591620717411303424,"), "all digits survive: {big}");
    assert_eq!(run(&api, "1 + 1", 5_000).await?["structured"]["value"], 2, "and the next script runs");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_endless_scripts_leave_the_hub_responsive() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let spin = "type: scripted\ndescription: Never ends.\nparameters:\n  timeoutMs: 200\n  inputs: []\n  source: |\n    \
                const go = async () => { for (;;) { try { await 0; for (;;) {} } catch (e) {} } };\n    \
                go().catch(() => go()).then(() => go());\n    \"started\";\n";
    api.put("server-tools/spin", spin).await?.ok()?;
    let mut spinning = JoinSet::new();
    for _ in 0..50 {
        let api = api.clone();
        spinning.spawn(async move { api.invoke("spin", json!({})).await });
    }
    for _ in 0..20 {
        api.call("whoami", json!({})).await?;
    }
    while let Some(answer) = spinning.join_next().await {
        let answer = answer??;
        assert_eq!(answer.code(), "deadline_exceeded", "{}", answer.text);
    }
    assert_eq!(run(&api, "1 + 1", 5_000).await?["structured"]["value"], 2);
    Ok(())
}

/// The script workers of a hub.
#[cfg(target_os = "linux")]
fn workers(hub: &TestHub) -> TestResult<Vec<Pid>> {
    let pid = hub.process.pid();
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let children = std::fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let command = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if command.contains("script-worker") {
                found.push(Pid::from_raw(child.parse()?).ok_or("no pid")?);
            }
        }
    }
    Ok(found)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_from_outside_costs_one_call() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    run(&api, "1", 5_000).await?;
    let victim = {
        let api = api.clone();
        async move { api.invoke("execute_javascript", json!({"code": "for (;;) {}", "timeoutMs": 30_000})).await }
    };
    let killer = async {
        let busy = busy_worker(&hub).await?;
        kill_process(busy, Signal::KILL)?;
        TestResult::<()>::Ok(())
    };
    let (lost, killed) = tokio::join!(victim, killer);
    killed?;
    let lost = lost?.json();
    assert_eq!((&lost["code"], &lost["outcome"]), (&json!("script_worker_lost"), &json!("unknown")), "{lost}");
    for _ in 0..20 {
        assert_eq!(run(&api, "1 + 1", 5_000).await?["structured"]["value"], 2, "the next calls are unharmed");
    }
    Ok(())
}

/// The words of a process's `stat` after its name; none for one that is gone.
#[cfg(target_os = "linux")]
fn stat(pid: Pid) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after_name.split_whitespace().map(str::to_owned).collect()
}

/// Processor time that a process has used, in ticks of the kernel; 0 for one that is gone.
#[cfg(target_os = "linux")]
fn processor_ticks(pid: Pid) -> u64 {
    stat(pid).get(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Whether a process has ended. One whose parent died may stay as a zombie for as long as nobody asks how it ended.
#[cfg(target_os = "linux")]
fn has_ended(pid: Pid) -> bool {
    stat(pid).first().is_none_or(|state| state == "Z" || state == "X")
}

/// The worker that burns a processor is the one that runs the script.
#[cfg(target_os = "linux")]
async fn busy_worker(hub: &TestHub) -> TestResult<Pid> {
    eventually("a busy worker", || async { Ok(workers(hub)?.into_iter().find(|pid| processor_ticks(*pid) > 20)) }).await
}

/// A worker that hears nothing, deep in native work, ends with a hub that is killed.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_takes_its_workers_along() -> TestResult {
    let mut hub = TestHub::start().await?;
    let api = hub.api()?;
    let deaf = json!({"code": "'a'.repeat(4e6).indexOf('a'.repeat(2e6)+'b')", "timeoutMs": 30_000});
    let mut running = JoinSet::new();
    running.spawn(async move { api.invoke("execute_javascript", deaf).await });
    let worker = busy_worker(&hub).await?;
    hub.process.kill()?;
    eventually("its worker is gone", || async { Ok(has_ended(worker).then_some(())) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_scripts_that_call_tools_do_not_starve() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let inner = "type: scripted\ndescription: Doubles.\nparameters:\n  timeoutMs: 30000\n  inputs: [{ name: n, type: number }]\n  source: n * 2\n";
    api.put("server-tools/double", inner).await?.ok()?;
    let outer = "type: scripted\ndescription: Doubles thrice.\nparameters:\n  timeoutMs: 30000\n  inputs: [{ name: n, type: number }]\n  source: |\n    \
                 let m = n;\n    for (let i = 0; i < 3; i++) m = vance.tools.call('double', { n: m }).value;\n    vance.tools.call('whoami', {});\n    m\n";
    api.put("server-tools/eightfold", outer).await?.ok()?;
    let mut callers = JoinSet::new();
    for n in 0..200 {
        let api = api.clone();
        callers.spawn(async move { (n, api.call("eightfold", json!({ "n": n })).await) });
    }
    while let Some(done) = callers.join_next().await {
        let (n, result) = done?;
        assert_eq!(result?["value"], json!(n * 8));
    }
    tokio::time::timeout(Duration::from_secs(30), run(&api, "1", 5_000)).await??;
    Ok(())
}

/// Each call of a tool by a tool is one level, whatever it passes through: eight succeed, the ninth is refused.
#[tokio::test]
async fn tools_call_tools_eight_levels_deep() -> TestResult {
    let hub = TestHub::start().await?;
    let api = hub.api()?;
    let deep = "type: scripted\ndescription: Calls itself.\nparameters:\n  timeoutMs: 30000\n  inputs: []\n  source: |\n    \
                let out; try { const [n, why] = vance.tools.call('deep', {}).value; out = [n + 1, why] } catch (e) { out = [0, e.code] } out\n";
    api.put("server-tools/deep", deep).await?.ok()?;
    assert_eq!(api.call("deep", json!({})).await?["value"], json!([8, "depth_exceeded"]));
    Ok(())
}
