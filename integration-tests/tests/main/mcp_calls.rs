//! H14: what belongs to a call goes with it: progress to whoever asked for it, a cancel to exactly the call it names.

use std::time::Duration;

use integration_tests::clients::exchange::Exchange;
use integration_tests::clients::raw::Client;
use integration_tests::clients::stage::{McpStage, OWNER, Way};
use integration_tests::eventually::eventually;
use integration_tests::fake_mcp::FakeMcp;
use integration_tests::fake_mcp::log::{self, Entry};
use integration_tests::fake_mcp::script::{Script, Speaks, Step};
use serde_json::json;

use crate::TestResult;

/// A second, as the case says, and what a busy machine may need on top.
const SOON: Duration = Duration::from_secs(5);

fn cancelled(fake: &FakeMcp) -> TestResult<Vec<Entry>> {
    Ok(fake.log()?.into_iter().filter(|entry| entry.event == log::CANCELLED).collect())
}

/// The server was told to stop exactly this call, and none runs at the hub any more.
async fn stopped(stage: &McpStage, fake: &FakeMcp, call: &Entry, situation: &str) -> TestResult {
    let what = format!("the server is told to stop ({situation})");
    let told = eventually(&what, || async { Ok(cancelled(fake)?.into_iter().next()) });
    let told = tokio::time::timeout(SOON, told).await.map_err(|_| format!("not in time ({situation})"))??;
    assert_eq!(told.text, call.json()["id"].to_string(), "under the id that the server knows ({situation})");
    eventually("the slot is free", || async { Ok((stage.api.running_calls().await? == 0).then_some(())) }).await?;
    assert_eq!(cancelled(fake)?.len(), 1, "no other call is stopped ({situation})");
    Ok(())
}

#[tokio::test]
async fn a_cancel_reaches_the_call_that_it_names_and_no_answer_follows() -> TestResult {
    for way in Way::ALL {
        for http in [false, true] {
            let script = Script::default().doing("simulate", vec![Step::Hang]).doing("echo", vec![Step::text("here")]);
            let fake = if http { FakeMcp::over_http(&script)? } else { FakeMcp::new(&script)? };
            let stage = McpStage::start().await?;
            let _foot = stage.offer(way, "lab", &fake, json!({ "session": "subject" })).await?;
            let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
            let situation = format!("{way:?}, http {http}");
            let params = json!({ "name": "lab__simulate", "arguments": {}, "_meta": { "progressToken": "pt-9" } });
            let text = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
            let waits = async {
                let mut answer = client.post(text, &[]).await?;
                while let Some(message) = answer.next().await? {
                    assert!(message.id.is_none(), "an answer came: {message:?}");
                }
                TestResult::Ok(())
            };
            let cancels = async {
                let call = fake.called("simulate").await?;
                client.cancel("7").await?;
                TestResult::Ok(call)
            };
            let (waited, call) = tokio::join!(waits, cancels);
            waited.map_err(|error| format!("{situation}: {error}"))?;
            stopped(&stage, &fake, &call?, &situation).await?;
            let next = client.call("lab__echo", json!({})).await?;
            assert!(next.result.is_some(), "{situation}: {}", next.error_value());
        }
    }
    Ok(())
}

/// Without a session a client cancels by hanging up.
#[tokio::test]
async fn whoever_hangs_up_without_a_session_cancels_its_call() -> TestResult {
    for way in Way::ALL {
        for speaks in [Speaks::Session, Speaks::Stateless] {
            let script = Script { speaks, ..Script::default() }.doing("simulate", vec![Step::Hang]);
            let fake = FakeMcp::over_http(&script)?;
            let stage = McpStage::start().await?;
            let _foot = stage.offer(way, "lab", &fake, json!({})).await?;
            let client = Client::stateless(&stage.target(OWNER).await?, json!({})).await?;
            let call = tokio::select! {
                answer = call(&client, "lab__simulate") => return Err(format!("answered: {}", answer.is_ok()).into()),
                call = fake.called("simulate") => call?,
            };
            stopped(&stage, &fake, &call, &format!("{way:?}, {speaks:?}")).await?;
        }
    }
    Ok(())
}

async fn call(client: &Client, tool: &str) -> TestResult<Exchange> {
    let mut exchange = client.begin("tools/call", json!({ "name": tool, "arguments": {} })).await?.1;
    exchange.answer().await?;
    Ok(exchange)
}

#[tokio::test]
async fn progress_arrives_under_the_clients_token_and_keeps_the_call_alive() -> TestResult {
    for way in Way::ALL {
        for http in [false, true] {
            // Eight seconds would be as good; what counts is that it takes longer than the idle limit.
            let steps = vec![Step::Progress { times: 8, every_ms: 400 }, Step::text("simulated")];
            let script = Script { speaks: Speaks::Both, ..Script::default() }.doing("simulate", steps);
            let fake = if http { FakeMcp::over_http(&script)? } else { FakeMcp::new(&script)? };
            let stage = McpStage::start().await?;
            let _foot = stage.offer(way, "lab", &fake, json!({ "timeoutSeconds": 2, "session": "subject" })).await?;
            for client in Client::both(&stage.target(OWNER).await?, &json!({})).await? {
                let situation = format!("{way:?}, http {http}, stateless {}", client.is_stateless());
                let params = json!({ "name": "lab__simulate", "arguments": {}, "_meta": { "progressToken": "pt-9" } });
                let (_, mut exchange) = client.begin("tools/call", params).await?;
                let mut seen = Vec::new();
                let answer = loop {
                    let message = exchange.next().await?.ok_or_else(|| format!("no answer ({situation})"))?;
                    if message.method.is_none() {
                        break message;
                    }
                    let told = message.params_value();
                    assert_eq!(told["progressToken"], "pt-9", "{situation}");
                    assert_eq!(told["message"], format!("step {}", told["progress"]), "{situation}");
                    seen.push(told["progress"].as_u64().unwrap_or_default());
                };
                assert!(answer.result.is_some(), "{situation}: {}", answer.error_value());
                assert!(seen.is_sorted() && seen.len() > 2, "{situation}: {seen:?}");
            }
            for call in fake.calls_of("simulate")? {
                let token = &call.json()["params"]["_meta"]["progressToken"];
                assert!(!token.is_null() && token != "pt-9", "the hub asks under a token of its own: {token}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn silence_ends_a_call_at_the_idle_limit_and_progress_without_end_at_the_hard_one() -> TestResult {
    for way in Way::ALL {
        let script = Script::default()
            .doing("silent", vec![Step::Hang])
            .doing("endless", vec![Step::Progress { times: 1_000_000, every_ms: 50 }]);
        let fake = FakeMcp::new(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "lab", &fake, json!({ "timeoutSeconds": 1, "session": "subject" })).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        let answer = client.call("lab__silent", json!({})).await?;
        assert!(answer.to_string_lossy().contains("deadline_exceeded"), "{way:?}: {}", answer.to_string_lossy());
        let id = fake.called("silent").await?.json()["id"].to_string();
        let told = eventually("the server is told", || async { Ok(cancelled(&fake)?.into_iter().next()) }).await?;
        assert_eq!(told.text, id, "{way:?}");
        // The hard limit of a call is said where it is made.
        let api = stage.api.with_token(&stage.hub.token(OWNER, &["engine", "viewer"]).await?);
        let body = json!({ "arguments": {}, "maxTimeoutMs": 2_000 });
        let request = api.scoped(reqwest::Method::POST, "tools/lab__endless/invoke").json(&body);
        let answer = integration_tests::api::send(request).await?;
        assert!(answer.text.contains("deadline") || answer.text.contains("timeout"), "{way:?}: {}", answer.text);
        eventually("the server is told", || async { Ok((cancelled(&fake)?.len() == 2).then_some(())) }).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_said_to_have_and_the_next_call_starts_it_again() -> TestResult {
    for way in Way::ALL {
        let script = Script::default().doing("die", vec![Step::Exit]).doing("echo", vec![Step::text("here")]);
        let fake = FakeMcp::new(&script)?;
        let stage = McpStage::start().await?;
        let _foot = stage.offer(way, "lab", &fake, json!({ "session": "subject" })).await?;
        let client = Client::open(&stage.target(OWNER).await?, json!({})).await?;
        let answer = client.call("lab__die", json!({})).await?;
        assert!(answer.error.is_some() || answer.result_value()["isError"] == true, "{way:?}");
        assert_eq!(fake.calls_of("die")?.len(), 1, "{way:?}: what may have run is not sent again");
        eventually("the next call works", || async {
            let answer = client.call("lab__echo", json!({})).await?;
            if answer.result_value()["content"][0]["text"] == "here" { Ok(Some(())) } else { Err("not yet".into()) }
        })
        .await?;
    }
    Ok(())
}
