//! A call from start to end: events while it runs, its two limits, cancelling it, finding it again.

use std::time::Duration;

use futures::StreamExt as _;
use integration_tests::api::{Api, send};
use integration_tests::eventually::eventually;
use integration_tests::hub::TestHub;
use integration_tests::raw_foot::{Identity, RawFoot, simple_tool};
use reqwest::Method;
use serde_json::{Value, json};

use crate::TestResult;

/// A hub, a client, and a foot driven by hand that offers `work`.
async fn stage() -> TestResult<(TestHub, Api, RawFoot)> {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &["viewer", "engine", "foot"]).await?;
    let api = hub.api()?.with_token(&token);
    let (mut foot, _) = RawFoot::connect(&hub.url, &token, &Identity::new("dev")?).await?;
    foot.offer(1, json!([simple_tool("work")])).await?;
    Ok((hub, api, foot))
}

async fn start(api: &Api, body: Value) -> TestResult<reqwest::Response> {
    let request = api.scoped(Method::POST, "tools/work/invoke").header("accept", "text/event-stream");
    Ok(request.json(&body).send().await?)
}

#[tokio::test]
async fn events_come_while_the_call_runs_and_the_result_last() -> TestResult {
    let (_hub, api, mut foot) = stage().await?;
    let response = start(&api, json!({"arguments": {"n": 9007199254740993_u64}})).await?;
    assert_eq!(response.headers().get("content-type").and_then(|v| v.to_str().ok()), Some("text/event-stream"));
    let id = response.headers().get("footbridge-call").and_then(|v| v.to_str().ok()).ok_or("no call id")?.to_owned();
    let call = foot.receive_kind("call").await?;
    assert_eq!(call["arguments"].to_string(), "{\"n\":9007199254740993}", "arguments are relayed to the digit");
    let running = api.get(&format!("calls/{id}")).await?.json();
    assert_eq!((&running["state"], &running["tool"]), (&json!("running"), &json!("work")));

    foot.send(&json!({"type": "progress", "call": call["call"], "progress": 1, "total": 2, "message": "half"})).await?;
    let output = json!({"type": "output", "call": call["call"], "seq": 0, "stream": "stdout", "data": "hello\n"});
    foot.send(&output).await?;
    let mut stream = response.bytes_stream();
    let mut text = String::new();
    while !text.contains("hello") {
        text.push_str(std::str::from_utf8(&stream.next().await.ok_or("the stream ended")??)?);
    }
    assert!(!text.contains("event: result"), "events come before the end: {text}");
    foot.answer(&call, "done").await?;
    while let Some(bytes) = stream.next().await {
        text.push_str(std::str::from_utf8(&bytes?)?);
    }
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, ["progress", "output", "result"], "{text}");
    let ended = api.get(&format!("calls/{id}?waitMs=1000")).await?.json();
    assert_eq!((&ended["state"], &ended["result"]["structured"]["text"]), (&json!("ended"), &json!("done")));
    Ok(())
}

#[tokio::test]
async fn progress_moves_the_idle_limit_and_nothing_moves_the_hard_one() -> TestResult {
    let (_hub, api, mut foot) = stage().await?;
    for (body, code) in [
        (json!({"timeoutMs": 400}), "deadline_exceeded"),
        (json!({"timeoutMs": 2_000, "maxTimeoutMs": 3_000}), "deadline_exceeded"),
    ] {
        let endless = body["maxTimeoutMs"].is_number();
        let request = api.scoped(Method::POST, "tools/work/invoke").json(&body);
        let (answer, cancelled) = tokio::join!(send(request), async {
            let call = foot.receive_kind("call").await?;
            for progress in 0..if endless { 100 } else { 0 } {
                let sign = json!({"type": "progress", "call": call["call"], "progress": progress});
                foot.send(&sign).await?;
                tokio::time::sleep(Duration::from_millis(100)).await;
                // More signs than the idle limit could bear apart; the hard one comes nevertheless.
                if progress > 25 {
                    break;
                }
            }
            let cancel = foot.receive_kind("cancel").await?;
            assert_eq!(cancel["call"], call["call"]);
            let failure = json!({"type": "failure", "call": call["call"], "origin": call["origin"], "code": "cancelled",
                "message": "stopped", "outcome": "unknown", "retryable": false});
            foot.send(&failure).await?;
            foot.receive_kind("ack").await
        });
        cancelled?;
        let answer = answer?.json();
        assert_eq!((&answer["code"], &answer["outcome"]), (&json!(code), &json!("unknown")), "{body}: {answer}");
        let took = answer["durationMs"].as_u64().ok_or("no duration")?;
        assert!(took >= if endless { 2_500 } else { 400 }, "{body}: {answer}");
    }
    Ok(())
}

#[tokio::test]
async fn who_goes_away_or_says_so_cancels_the_call_on_the_foot() -> TestResult {
    let (_hub, api, mut foot) = stage().await?;
    for by in ["a closed stream", "DELETE", "a closed request"] {
        let (id, response) = if by == "a closed request" {
            let request = api.scoped(Method::POST, "tools/work/invoke").json(&json!({})).send();
            // Given up while the tool runs.
            let _ = tokio::time::timeout(Duration::from_millis(500), request).await;
            (String::new(), None)
        } else {
            let response = start(&api, json!({})).await?;
            let id = response.headers().get("footbridge-call").and_then(|v| v.to_str().ok()).ok_or("no id")?.to_owned();
            (id, Some(response))
        };
        let call = foot.receive_kind("call").await?;
        let deleting = async {
            match by {
                "DELETE" => Ok(Some(api.delete(&format!("calls/{id}")).await?)),
                _ => {
                    drop(response);
                    TestResult::Ok(None)
                }
            }
        };
        let (deleted, cancel) = tokio::join!(deleting, async {
            let cancel = foot.receive_kind("cancel").await?;
            let failure = json!({"type": "failure", "call": call["call"], "origin": call["origin"], "code": "cancelled",
                "message": "stopped half way", "outcome": "unknown", "retryable": false});
            foot.send(&failure).await?;
            TestResult::Ok(cancel)
        });
        assert_eq!(cancel?["call"], call["call"], "{by}");
        if let Some(deleted) = deleted? {
            let shown = deleted.ok()?.json();
            assert_eq!((&shown["state"], &shown["result"]["code"]), (&json!("ended"), &json!("cancelled")), "{shown}");
        }
        eventually("nothing runs", || async { Ok((api.running_calls().await? == 0).then_some(())) }).await?;
    }
    Ok(())
}

/// A call is its own subject's: another one neither sees nor cancels it, an admin does both and never reads the result.
#[tokio::test]
async fn calls_are_their_subjects_own() -> TestResult {
    let (hub, api, mut foot) = stage().await?;
    let other = api.with_token(&hub.token("bob", &["viewer", "engine"]).await?);
    let response = start(&api, json!({})).await?;
    let id = response.headers().get("footbridge-call").and_then(|v| v.to_str().ok()).ok_or("no id")?.to_owned();
    let call = foot.receive_kind("call").await?;
    assert_eq!(other.get("calls").await?.json()["calls"], json!([]));
    assert_eq!(other.get(&format!("calls/{id}")).await?.code(), "not_found");
    assert_eq!(other.delete(&format!("calls/{id}")).await?.code(), "not_found");
    assert_eq!(api.in_scope("local/other").get(&format!("calls/{id}")).await?.code(), "not_found");
    foot.answer(&call, "private").await?;
    response.bytes().await?;
    let seen = hub.api()?.get(&format!("calls/{id}?waitMs=1000")).await?.ok()?;
    assert_eq!(seen.json()["state"], "ended");
    assert!(!seen.text.contains("private"), "{}", seen.text);
    Ok(())
}
