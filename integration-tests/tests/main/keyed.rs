//! Calls with an idempotency key: at most once, with a known outcome, whatever happens to caller, hub and connection.

use std::process::Command;

use futures::StreamExt as _;
use integration_tests::api::{Answer, Api, send};
use integration_tests::binaries;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use integration_tests::process::Process;
use integration_tests::raw_foot::{Identity, RawFoot, simple_tool};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::TestResult;

const ROLES: [&str; 3] = ["viewer", "engine", "foot"];

fn request(api: &Api, tool: &str, key: &str, arguments: &Value) -> RequestBuilder {
    let request = api.scoped(Method::POST, &format!("tools/{tool}/invoke")).header("idempotency-key", key);
    request.json(&json!({ "arguments": arguments }))
}

async fn call(api: &Api, tool: &str, key: &str, arguments: Value) -> TestResult<Answer> {
    send(request(api, tool, key, &arguments)).await
}

/// Starts a call whose events are streamed; with its id.
async fn stream(api: &Api, tool: &str, key: &str, arguments: Value) -> TestResult<(Response, String)> {
    let response = request(api, tool, key, &arguments).header("accept", "text/event-stream").send().await?;
    let id = response.headers().get("footbridge-call").and_then(|id| id.to_str().ok()).ok_or("no call id")?;
    let id = id.to_owned();
    Ok((response, id))
}

/// The same client with no connection left over from before.
fn anew(hub: &TestHub, api: &Api) -> TestResult<Api> {
    Ok(match api.token() {
        Some(token) => hub.api()?.with_token(token),
        None => hub.api()?,
    })
}

/// Reads a stream up to the event that holds `part`, as `id name data` lines. Keeps it open for more.
async fn heard(response: &mut Response, part: &str) -> TestResult<Vec<String>> {
    let mut text = String::new();
    while !text.split_inclusive("\n\n").any(|event| event.contains(part) && event.ends_with("\n\n")) {
        text.push_str(std::str::from_utf8(&response.chunk().await?.ok_or_else(|| format!("the end: {text}"))?)?);
    }
    Ok(events(&text))
}

fn events(text: &str) -> Vec<String> {
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    };
    text.split("\n\n")
        .filter(|event| event.contains("event:"))
        .map(|event| format!("{} {} {}", field(event, "id:"), field(event, "event:"), field(event, "data:")))
        .collect()
}

/// The rest of a call's stream behind an event.
async fn rest(api: &Api, id: &str, seen: u64) -> TestResult<Response> {
    let request = api.scoped(Method::GET, &format!("calls/{id}")).header("accept", "text/event-stream");
    Ok(request.header("last-event-id", seen.to_string()).send().await?.error_for_status()?)
}

fn replayed(answer: &Answer) -> bool {
    answer.headers.get("footbridge-replayed").is_some_and(|value| value == "true")
}

/// A hub, its owner's client, and a foot that echoes.
async fn echoing() -> TestResult<(TestHub, Api, TestFoot, tempfile::TempDir)> {
    let hub = TestHub::start().await?;
    let api = hub.api()?.with_token(&hub.token("ann", &ROLES).await?);
    let root = tempfile::tempdir()?;
    let foot = TestFoot::start(&hub, "ann", "dev", root.path(), &["--echo"]).await?;
    Ok((hub, api, foot, root))
}

/// A hub, its owner's client, and a foot driven by hand that offers `work`.
async fn stage() -> TestResult<(TestHub, Api, RawFoot, Identity, String)> {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &ROLES).await?;
    let api = hub.api()?.with_token(&token);
    let identity = Identity::new("dev")?;
    let (mut foot, _) = RawFoot::connect(&hub.url, &token, &identity).await?;
    foot.offer(1, json!([simple_tool("work")])).await?;
    Ok((hub, api, foot, identity, token))
}

#[tokio::test]
async fn the_same_key_runs_once_and_its_end_outlives_the_hub() -> TestResult {
    let (mut hub, api, _foot, _root) = echoing().await?;
    let mut answers = Vec::new();
    for answer in futures::future::join_all((0..20).map(|_| call(&api, "echo", "k", json!({"a": [1, 2.0]})))).await {
        answers.push(answer?.ok()?);
    }
    for answer in &answers {
        assert_eq!(answer.json()["structured"]["run"], 1, "{}", answer.text);
        assert_eq!(answer.headers.get("footbridge-call"), answers[0].headers.get("footbridge-call"));
    }
    let same = call(&api, "echo", "k", json!({"a": [1.0, 2]})).await?.ok()?;
    assert!(replayed(&same) && same.json()["structured"]["run"] == 1, "{}", same.text);
    for (tool, arguments) in [("echo", json!({"a": [1, 3]})), ("dev__echo", json!({"a": [1, 2]}))] {
        let other = call(&api, tool, "k", arguments).await?;
        assert_eq!(
            (other.status, other.code()),
            (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused".to_owned())
        );
        assert_eq!(other.json()["outcome"], "not_run");
    }
    hub.kill_and_restart()?;
    let api = anew(&hub, &api)?;
    let again = call(&api, "echo", "k", json!({"a": [1, 2]})).await?.ok()?;
    assert!(replayed(&again), "{}", again.text);
    assert_eq!(again.json()["structured"], answers[0].json()["structured"]);
    let fresh = eventually("the foot is back", || async { Ok(api.call("echo", json!({})).await.ok()) }).await?;
    assert_eq!(fresh["run"], 2, "nothing else ran");
    Ok(())
}

#[tokio::test]
async fn a_call_is_collected_from_the_foot_after_the_hub_was_killed_in_the_middle() -> TestResult {
    let (mut hub, api, _foot, _root) = echoing().await?;
    let arguments = json!({"ms": 3000, "progressMs": 50});
    let (mut response, id) = stream(&api, "echo_wait", "k", arguments.clone()).await?;
    heard(&mut response, "progress").await?;
    hub.kill_and_restart()?;
    let api = anew(&hub, &api)?;
    let answer = eventually("the call is collected", || async {
        let answer = call(&api, "echo_wait", "k", arguments.clone()).await?;
        let json = answer.json();
        if json["code"] == "foot_unavailable" {
            assert_eq!((answer.status, &json["outcome"]), (StatusCode::OK, &json!("unknown")), "{}", answer.text);
            return Ok(None);
        }
        Ok(Some(answer.ok()?))
    })
    .await?;
    assert_eq!(answer.json()["structured"]["run"], 1, "{}", answer.text);
    let shown = api.get(&format!("calls/{id}")).await?.ok()?.json();
    assert_eq!((&shown["state"], &shown["result"]["structured"]["run"]), (&json!("ended"), &json!(1)), "{shown}");
    assert_eq!(api.call("echo", json!({})).await?["run"], 2, "it ran once");
    Ok(())
}

#[tokio::test]
async fn a_result_for_a_hub_that_knows_nobody_who_waits_is_stored_and_then_acknowledged() -> TestResult {
    let (mut hub, api, mut foot, identity, token) = stage().await?;
    let (response, id) = stream(&api, "work", "k", json!({})).await?;
    let asked = foot.receive_kind("call").await?;
    assert_eq!((&asked["call"], &asked["keyed"]), (&json!(id), &json!(true)), "the call has the id of its key");
    assert!(asked["digest"].is_string(), "{asked}");
    hub.kill_and_restart()?;
    let api = anew(&hub, &api)?;
    drop(response);
    let path = format!("calls/{id}");
    assert_eq!(api.get(&path).await?.ok()?.json()["state"], "running", "the journal knows of it");
    let (mut foot, _) = RawFoot::connect_with(&hub.url, &token, &identity, |hello| {
        hello["inFlight"] =
            json!([{"call": id, "digest": asked["digest"], "state": "running", "origin": asked["origin"]}]);
    })
    .await?;
    foot.offer(1, json!([simple_tool("work")])).await?;
    let waited = format!("{path}?waitMs=60000");
    let (seen, acked) = tokio::join!(api.get(&waited), async {
        foot.answer(&asked, "late").await?;
        let next = foot.receive().await?;
        assert_eq!((&next["type"], &next["call"]), (&json!("ack"), &json!(id)), "neither cancelled nor asked again");
        api.get(&path).await
    });
    for answer in [acked?, seen?] {
        let shown = answer.ok()?.json();
        assert_eq!(
            (&shown["state"], &shown["result"]["structured"]["text"]),
            (&json!("ended"), &json!("late")),
            "{shown}"
        );
    }
    let other = api.with_token(&hub.token("bob", &["viewer", "engine"]).await?);
    assert_eq!(other.get(&path).await?.code(), "not_found");
    let admin = hub.api()?.get(&path).await?.ok()?;
    assert!(admin.json()["state"] == "ended" && !admin.text.contains("late"), "{}", admin.text);
    let again = call(&api, "work", "k", json!({})).await?.ok()?;
    assert!(replayed(&again) && again.json()["structured"]["text"] == "late", "{}", again.text);
    Ok(())
}

#[tokio::test]
async fn a_keyed_call_goes_on_when_its_caller_leaves_and_ends_when_it_is_told_to() -> TestResult {
    let (_hub, api, mut foot, _, _) = stage().await?;
    for ends in ["by itself", "DELETE"] {
        let (response, id) = stream(&api, "work", ends, json!({})).await?;
        let asked = foot.receive_kind("call").await?;
        drop(response);
        // A round trip beside it: had the call been cancelled, that would have come before.
        let (beside, next) = tokio::join!(api.call("dev__work", json!({})), async {
            let mut next = foot.receive().await?;
            while next["type"] == "ack" {
                next = foot.receive().await?;
            }
            foot.answer(&next, "beside").await?;
            TestResult::Ok(next)
        });
        assert_eq!((&next?["type"], &beside?["text"]), (&json!("call"), &json!("beside")));
        let shown = if ends == "DELETE" {
            let path = format!("calls/{id}");
            let (shown, cancel) = tokio::join!(api.delete(&path), async {
                let cancel = foot.receive_kind("cancel").await?;
                let failure = json!({"type": "failure", "call": asked["call"], "origin": asked["origin"],
                    "code": "cancelled", "message": "stopped", "outcome": "unknown", "retryable": false});
                foot.send(&failure).await?;
                TestResult::Ok(cancel)
            });
            assert_eq!(cancel?["call"], json!(id));
            shown?.ok()?.json()
        } else {
            foot.answer(&asked, "alone").await?;
            api.get(&format!("calls/{id}?waitMs=60000")).await?.ok()?.json()
        };
        let wanted = if ends == "DELETE" { json!("cancelled") } else { Value::Null };
        assert_eq!((&shown["state"], &shown["result"]["code"]), (&json!("ended"), &wanted), "{shown}");
        // The foot may forget it; that of the call beside it may come first.
        while foot.receive_kind("ack").await?["call"] != json!(id) {}
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_the_hub_ran_itself_is_unknown_after_a_kill_and_stays_so() -> TestResult {
    let (mut hub, api, mut foot, _, _) = stage().await?;
    let document = "type: scripted\ndescription: Lets the foot work.\nparameters:\n  inputs: []\n  \
                    source: 'vance.tools.call(\"work\", {})'\n";
    hub.api()?.put("server-tools/chain", document).await?.ok()?;
    let (mut response, id) = stream(&api, "chain", "k", json!({})).await?;
    let asked = foot.receive_kind("call").await?;
    assert!(asked["call"] != json!(id) && asked["keyed"] == json!(false), "a script's call has no key: {asked}");
    hub.kill_and_restart()?;
    let api = anew(&hub, &api)?;
    while response.chunk().await.ok().flatten().is_some() {}
    for _ in 0..2 {
        let answer = call(&api, "chain", "k", json!({})).await?.ok()?;
        let json = answer.json();
        assert_eq!((&json["code"], &json["outcome"]), (&json!("draining"), &json!("unknown")), "{json}");
    }
    let shown = api.get(&format!("calls/{id}")).await?.ok()?.json();
    assert_eq!(shown["result"]["outcome"], "unknown", "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_off_and_says_what_is_missing() -> TestResult {
    let (hub, api, mut foot, _, _) = stage().await?;
    let (mut response, id) = stream(&api, "work", "k", json!({})).await?;
    let asked = foot.receive_kind("call").await?;
    let progress = |number: u32| json!({"type": "progress", "call": asked["call"], "progress": number});
    for number in 1..=3 {
        foot.send(&progress(number)).await?;
    }
    let first = heard(&mut response, "\"progress\":3").await?;
    assert_eq!(
        first.iter().filter_map(|event| event.split(' ').next()).collect::<Vec<_>>(),
        ["1", "2", "3"],
        "{first:?}"
    );
    drop(response);
    let mut running = rest(&api, &id, 2).await?;
    assert_eq!(heard(&mut running, "\"progress\":3").await?.len(), 1, "only what came after");
    foot.send(&progress(4)).await?;
    assert!(heard(&mut running, "\"progress\":4").await?[0].starts_with("4 progress "));
    // More than there is room for, and nobody reads: what is lost is counted.
    for number in 5..=1000 {
        foot.send(&progress(number)).await?;
    }
    foot.answer(&asked, "done").await?;
    foot.receive_kind("ack").await?;
    let all = events(&rest(&api, &id, 4).await?.text().await?);
    assert_eq!(all.len(), 1 + 256 + 1, "{:?}", all.first());
    assert_eq!(all[0], "744 skipped {\"events\":740}");
    assert!(all[1].starts_with("745 progress ") && all[257].starts_with("1001 result "), "{} {}", all[1], all[257]);
    let end = events(&rest(&api, &id, 1000).await?.text().await?);
    assert!(end.len() == 1 && end[0].contains("done"), "{end:?}");
    let mut whole = running.bytes_stream();
    let mut text = String::new();
    while let Some(bytes) = whole.next().await {
        text.push_str(std::str::from_utf8(&bytes?)?);
    }
    assert!(
        events(&text).last().is_some_and(|end| end.contains("result")),
        "who was there all the time hears the end, too"
    );
    let other = api.with_token(&hub.token("bob", &["viewer", "engine"]).await?);
    assert!(rest(&other, &id, 0).await.is_err(), "a call's events are its subject's own");
    assert_eq!(events(&rest(&api, &id, u64::MAX - 1).await?.text().await?).len(), 1);
    assert!(rest(&api, &id, u64::MAX).await.is_err_and(|error| error.to_string().contains("400")));
    Ok(())
}

#[tokio::test]
async fn the_command_line_takes_a_keyed_call_up_again_when_the_hub_is_back() -> TestResult {
    let (mut hub, api, _foot, _root) = echoing().await?;
    let mut command = Command::new(binaries::footbridge()?);
    command.args(["call", "echo_wait", "ms:=3000", "progressMs:=50", "--key", "k", "--output", "json"]);
    command.args(["--tenant", "local", "--project", "main", "--url", &hub.url]);
    command.env("FOOTBRIDGE_TOKEN", api.token().ok_or("no token")?);
    let mut process = Process::spawn(&mut command)?;
    eventually("the call runs", || async { Ok((api.running_calls().await? > 0).then_some(())) }).await?;
    hub.kill_and_restart()?;
    let status = process.wait()?;
    let said = process.output();
    assert!(status.success(), "{status}: {said}");
    assert!(said.replace(' ', "").contains("\"run\":1"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_key_is_its_subjects_own() -> TestResult {
    let hub = TestHub::start().await?;
    let mut ids = Vec::new();
    for (subject, scope) in [("ann", "local/main"), ("bob", "local/main"), ("ann", "local/other")] {
        let api = hub.api()?.with_token(&hub.token(subject, &ROLES).await?).in_scope(scope);
        let answer = call(&api, "whoami", "k", json!({})).await?.ok()?;
        assert!(!replayed(&answer), "{subject} {scope}: {}", answer.text);
        ids.push(answer.headers.get("footbridge-call").cloned());
    }
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
    Ok(())
}

#[tokio::test]
async fn a_key_reaches_the_foot_through_a_pack_of_its_tools() -> TestResult {
    let (hub, api, mut foot, _, _) = stage().await?;
    let document = "type: foot\ndescription: The tools of dev.\nparameters: { foot: dev }\n";
    hub.api()?.put("server-tools/box", document).await?.ok()?;
    let (answer, asked) = tokio::join!(call(&api, "box__work", "k", json!({})), async {
        let asked = foot.receive_kind("call").await?;
        foot.answer(&asked, "packed").await?;
        TestResult::Ok(asked)
    });
    let (answer, asked) = (answer?.ok()?, asked?);
    assert_eq!((&asked["keyed"], &asked["tool"]), (&json!(true), &json!("work")));
    assert_eq!(answer.headers.get("footbridge-call").and_then(|id| id.to_str().ok()), asked["call"].as_str());
    Ok(())
}

#[tokio::test]
async fn a_foot_that_had_no_room_frees_the_key() -> TestResult {
    let (_hub, api, mut foot, _, _) = stage().await?;
    let (refused, acked) = tokio::join!(call(&api, "work", "k", json!({})), async {
        let asked = foot.receive_kind("call").await?;
        let failure = json!({"type": "failure", "call": asked["call"], "origin": asked["origin"], "code": "foot_busy",
            "message": "full", "outcome": "not_run", "retryable": true, "retryAfterMs": 10});
        foot.send(&failure).await?;
        foot.receive_kind("ack").await
    });
    acked?;
    let refused = refused?;
    assert_eq!((refused.status, refused.code()), (StatusCode::SERVICE_UNAVAILABLE, "foot_busy".to_owned()));
    let (again, answered) = tokio::join!(call(&api, "work", "k", json!({})), async {
        let asked = foot.receive_kind("call").await?;
        foot.answer(&asked, "now").await
    });
    answered?;
    assert_eq!(again?.ok()?.json()["structured"]["text"], "now");
    Ok(())
}
