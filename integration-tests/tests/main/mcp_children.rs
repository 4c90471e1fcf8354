//! H15: programs that talk beside the protocol, that would like to know what the hub knows, and that do not want to end.

use std::collections::BTreeMap;
use std::path::Path;

use integration_tests::clients::raw::Client;
use integration_tests::clients::stage::{McpStage, OWNER, Way, on_foot};
use integration_tests::eventually::eventually;
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::log;
use integration_tests::fake_mcp::script::{Script, Step};
use integration_tests::hub::Options;
use integration_tests::leftovers::none_left;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::TestResult;

/// What the hub knows and its servers must not.
const SECRETS: [(&str, &str); 2] = [("HUB_MONGO_URI", "mongodb://root:hunter2@db"), ("HUB_AGENT_TOKEN", "hunter3")];

/// A shell that says something before it becomes the server.
fn noisy(fake: &FakeMcp) -> TestResult<Value> {
    let program = format!("echo 'build ok'; echo 'npm warn something'; exec '{}' \"$@\"", fake.command()?);
    let mut args = vec!["-c".to_owned(), program, "noisy".to_owned()];
    args.extend(fake.args());
    Ok(json!({ "command": "sh", "args": args, "env": { "NOISY_MODE": "1" }, "session": "subject" }))
}

fn secretive() -> Options {
    let env = SECRETS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Options { env, ..Options::default() }
}

#[tokio::test]
async fn noise_goes_to_the_log_and_no_secret_to_the_child() -> TestResult {
    let script = Script { noise_each_message: true, ..Script::default() };
    let fake = FakeMcp::new(&script.doing("env", vec![Step::Environment]).doing("echo", vec![Step::EchoParams]))?;
    let stage = McpStage::start_with(secretive()).await?;
    let document = json!({ "type": "mcp_server", "description": "Chatty", "parameters": noisy(&fake)? });
    stage.api.put("server-tools/noisy", &document.to_string()).await?.ok()?;
    stage.until_state("noisy", "ready").await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    for _ in 0..3 {
        assert!(client.call("noisy__echo", json!({})).await?.result.is_some());
    }
    let result = client.call("noisy__env", json!({})).await?.result_value();
    let env: BTreeMap<String, String> =
        serde_json::from_str(result["content"][0]["text"].as_str().ok_or("no environment")?)?;
    assert_eq!(env.get("NOISY_MODE").map(String::as_str), Some("1"));
    assert!(env.contains_key("PATH") && env.contains_key("HOME"), "{:?}", env.keys());
    for name in env.keys() {
        // The mark of its launcher is no secret: by it what is left of a child is found.
        let is_mark = name == "FOOTBRIDGE_JOB";
        assert!(!name.starts_with("HUB_") && (is_mark || !name.starts_with("FOOTBRIDGE_")), "{name} reached the child");
    }
    for (_, secret) in SECRETS {
        assert!(!env.values().any(|value| value.contains(secret)));
    }
    let said = stage.hub.process.output();
    let line = said.lines().find(|line| line.contains("build ok")).ok_or("the noise is not in the log")?;
    assert!(line.contains("noisy"), "with the name of its pack: {line}");
    // Whatever the hub wrote is a message that means something: nothing answers a line of noise.
    for entry in fake.log()?.iter().filter(|entry| entry.event == log::RECEIVED) {
        let message = entry.json();
        assert!(message["method"].is_string() && message.get("error").is_none(), "{}", entry.text);
    }
    Ok(())
}

#[tokio::test]
async fn a_foots_server_may_talk_too_and_learns_nothing_either() -> TestResult {
    let script = Script { noise_each_message: true, ..Script::default() };
    let fake = FakeMcp::new(&script.doing("env", vec![Step::Environment]))?;
    let stage = McpStage::start().await?;
    let mut server = noisy(&fake)?;
    server["confine"] = json!(false);
    let _foot = stage.foot("laptop", &json!({ "noisy": server })).await?;
    stage.until_listed(OWNER, "noisy__").await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let result = client.call("noisy__env", json!({})).await?.result_value();
    let text = result["content"][0]["text"].as_str().ok_or_else(|| result.to_string())?;
    let env: BTreeMap<String, String> = serde_json::from_str(text)?;
    assert_eq!(env.get("NOISY_MODE").map(String::as_str), Some("1"));
    assert!(env.contains_key("PATH"));
    // The test runner sets a lot of these, and the place of packages is one that is passed on.
    let of_the_run =
        |name: &String| name.starts_with("CARGO_") && !["CARGO_HOME", "CARGO_HTTP_CAINFO"].contains(&name.as_str());
    let foreign = |name: &String| name.starts_with("FOOTBRIDGE_") && name != "FOOTBRIDGE_JOB" || of_the_run(name);
    assert!(!env.keys().any(foreign), "{:?}", env.keys());
    Ok(())
}

/// As hard to end as a server can be.
fn stubborn() -> Script {
    let script = Script { ignores_end: true, ignores_term: true, grandchild: true, ..Script::default() };
    script.doing("hang", vec![Step::Hang])
}

/// Attaches a stubborn server and has a call hang in it.
async fn hanging(
    stage: &McpStage,
    way: Way,
) -> TestResult<(FakeMcp, Option<integration_tests::clients::stage::FootStage>)> {
    let fake = FakeMcp::new(&stubborn())?;
    let foot = stage.offer(way, "stub", &fake, json!({ "session": "subject" })).await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    // The answer begins before the call ends, and early or late: it is a stream, which is left.
    let begun = client.begin("tools/call", json!({ "name": "stub__hang", "arguments": {} }));
    let (begun, called) = tokio::join!(begun, fake.called("hang"));
    drop((begun?, called?));
    Ok((fake, foot))
}

#[cfg(target_os = "linux")]
fn runs(folder: &Path) -> TestResult {
    let here = integration_tests::leftovers::of(&[folder])?;
    // The server, and what it started.
    if here.len() >= 2 { Ok(()) } else { Err(format!("nothing to clean up: {here:?}").into()) }
}

#[cfg(not(target_os = "linux"))]
fn runs(_: &Path) -> TestResult {
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_of_a_server_whose_document_is_removed() -> TestResult {
    let stage = McpStage::start().await?;
    let (fake, _) = hanging(&stage, Way::Hub).await?;
    runs(fake.folder())?;
    stage.api.delete("server-tools/stub").await?.ok()?;
    none_left(&[fake.folder()])
}

#[tokio::test]
async fn nothing_is_left_of_servers_when_the_hub_ends() -> TestResult {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut stage = McpStage::start().await?;
        let (fake, _) = hanging(&stage, Way::Hub).await?;
        runs(fake.folder())?;
        stage.hub.process.signal(signal)?;
        stage.hub.process.wait()?;
        none_left(&[fake.folder()]).map_err(|error| format!("{signal:?}: {error}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_of_a_foots_servers_when_they_are_removed_or_it_ends() -> TestResult {
    for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        let stage = McpStage::start().await?;
        let (fake, foot) = hanging(&stage, Way::Foot).await?;
        let mut foot = foot.ok_or("no foot")?;
        runs(fake.folder())?;
        match signal {
            None => foot.change(&json!({}))?,
            Some(signal) => {
                foot.foot.process.signal(signal)?;
                foot.foot.process.wait()?;
            }
        }
        none_left(&[fake.folder()]).map_err(|error| format!("{signal:?}: {error}"))?;
    }
    Ok(())
}

/// A program that ends at once is started again, but not again and again.
#[tokio::test]
async fn a_server_that_cannot_start_is_tried_again_with_pauses() -> TestResult {
    let folder = tempfile::tempdir()?;
    let starts = folder.path().join("starts");
    let program = format!("echo once >> '{}'; exit 7", starts.display());
    let stage = McpStage::start().await?;
    let document = json!({ "type": "mcp_server", "description": "Broken",
        "parameters": { "command": "sh", "args": ["-c", program] } });
    stage.api.put("server-tools/broken", &document.to_string()).await?.ok()?;
    stage.until_state("broken", "failed").await?;
    let count = || Ok::<_, std::io::Error>(std::fs::read_to_string(&starts)?.lines().count());
    eventually("it is tried again", || async { Ok((count()? >= 2).then_some(())) }).await?;
    let pack = stage.pack("broken").await?;
    assert!(pack["nextTryAt"].is_string(), "{pack}");
    // The third try is a longer pause away: whoever started it in a loop would be far beyond.
    assert!(count()? < 10, "{}", count()?);
    Ok(())
}

#[tokio::test]
async fn servers_come_and_go_with_the_settings_of_a_foot() -> TestResult {
    let (one, two) = (FakeMcp::new(&Script::with_tools(&["a"]))?, FakeMcp::new(&Script::with_tools(&["b"]))?);
    let stage = McpStage::start().await?;
    let entry = |fake: &FakeMcp| on_foot(fake, json!({}));
    let foot = stage.foot("laptop", &json!({ "one": entry(&one)? })).await?;
    stage.until_listed(OWNER, "one__").await?;
    let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
    let mut told = client.listen(None).await?;
    foot.change(&json!({ "one": entry(&one)?, "two": entry(&two)? }))?;
    stage.until_listed(OWNER, "two__").await?;
    told.until("notifications/tools/list_changed").await?;
    assert_eq!(one.starts()?, 1, "a server that stays is not started again");
    foot.change(&json!({ "two": entry(&two)? }))?;
    told.until("notifications/tools/list_changed").await?;
    let names = client.tool_names().await?;
    assert!(!names.iter().any(|name| name.starts_with("one__")), "{names:?}");
    none_left(&[one.folder()])
}
