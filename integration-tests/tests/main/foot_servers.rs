//! Local MCP servers behind a foot that is driven by hand: what they ask, tell and say of themselves.

use integration_tests::api::Api;
use integration_tests::clients::raw::{Client, Target, capable};
use integration_tests::eventually::eventually;
use integration_tests::hub::TestHub;
use integration_tests::raw_foot::{Identity, RawFoot};
use serde_json::{Value, json};

use crate::TestResult;

const ROLES: [&str; 3] = ["viewer", "engine", "foot"];

fn server(name: &str) -> Value {
    json!({ "name": name, "capabilities": { "tools": {}, "logging": {} }, "protocol": "2025-11-25" })
}

fn tool(name: &str) -> Value {
    json!({ "name": format!("git__{name}"), "originalName": name, "description": "", "inputSchema": { "type": "object" },
        "pack": "git" })
}

/// A hub, and a foot of somebody's with the server `git` and its tool `ask`.
async fn stage(who: &str) -> TestResult<(TestHub, RawFoot, Target, Api)> {
    let hub = TestHub::start().await?;
    let (foot, target, api) = foot_of(&hub, who).await?;
    Ok((hub, foot, target, api))
}

async fn foot_of(hub: &TestHub, who: &str) -> TestResult<(RawFoot, Target, Api)> {
    let token = hub.token(who, &ROLES).await?;
    let identity = Identity::new(&format!("{who}-laptop"))?;
    let servers = json!([server("git")]);
    let (mut foot, _) = RawFoot::connect_with(&hub.url, &token, &identity, |hello| hello["servers"] = servers).await?;
    foot.offer(1, json!([tool("ask")])).await?;
    let target = Target::new(&format!("{}/mcp/local/main", hub.url), Some(&token))?;
    Ok((foot, target, hub.api()?.with_token(&token)))
}

fn upcall(call: &Value, id: &str) -> Value {
    json!({ "type": "upcall", "call": call["call"], "id": id, "method": "elicitation/create", "timeoutMs": 60_000,
        "params": { "message": "which branch?", "requestedSchema": { "type": "object", "properties": {} } } })
}

/// Takes a call, asks its client, and answers with what that said.
async fn ask_and_answer(foot: &mut RawFoot) -> TestResult<Value> {
    let call = foot.receive_kind("call").await?;
    foot.send(&upcall(&call, "q-1")).await?;
    let said = foot.receive_kind("upcallResult").await?;
    assert_eq!((&said["call"], &said["id"]), (&call["call"], &json!("q-1")));
    foot.answer(&call, &said["result"].to_string()).await?;
    Ok(call)
}

#[tokio::test]
async fn what_a_server_of_a_foot_asks_is_answered_by_the_client_of_the_call() -> TestResult {
    let (_hub, mut foot, target, api) = stage("ann").await?;
    for client in Client::both(&target, &capable()).await? {
        let answer = |method: &str, _: &Value| {
            assert_eq!(method, "elicitation/create");
            json!({ "action": "accept", "content": { "branch": "main" } })
        };
        let (called, asked) = tokio::join!(client.call_and_answer("git__ask", answer), ask_and_answer(&mut foot));
        let ((last, questions), call) = (called?, asked?);
        assert!(last.result_value()["structuredContent"]["text"].to_string().contains("main"));
        assert_eq!(questions.len(), 1);
        assert!(questions[0]["message"].to_string().contains("which branch?"), "{questions:?}");
        assert!(call["caller"]["client"]["capabilities"]["elicitation"].is_object(), "{call}");
    }
    // Nobody can be asked: the answer is no, at once, and the call goes on.
    let (result, asked) = tokio::join!(api.call("git__ask", json!({})), ask_and_answer(&mut foot));
    assert_eq!(asked?["caller"].get("client"), None);
    assert!(result?["text"].to_string().contains("decline"));
    let poor = Client::open(&target, json!({})).await?;
    let (result, asked) = tokio::join!(poor.call("git__ask", json!({})), ask_and_answer(&mut foot));
    asked?;
    assert!(result?.result_value().to_string().contains("decline"));
    Ok(())
}

#[tokio::test]
async fn a_question_ends_with_the_call_that_its_client_cancels() -> TestResult {
    let (_hub, mut foot, target, api) = stage("ann").await?;
    let client = Client::open(&target, capable()).await?;
    let (begun, call) = tokio::join!(
        client.begin("tools/call", json!({ "name": "git__ask", "arguments": {} })),
        foot.receive_kind("call")
    );
    let ((id, mut exchange), call) = (begun?, call?);
    foot.send(&upcall(&call, "q-1")).await?;
    exchange.until("elicitation/create").await?;
    client.cancel(&id).await?;
    let (mut answered, mut stopped) = (Value::Null, Value::Null);
    while answered.is_null() || stopped.is_null() {
        let said = foot.receive().await?;
        match said["type"].as_str() {
            Some("upcallResult") => answered = said,
            Some("cancel") => stopped = said,
            _ => {}
        }
    }
    assert!(answered["error"].is_object(), "{answered}");
    assert_eq!(stopped["call"], call["call"]);
    foot.send(&json!({ "type": "failure", "call": call["call"], "origin": call["origin"], "code": "cancelled",
        "message": "stopped", "outcome": "unknown", "retryable": false }))
        .await?;
    eventually("the call is over", || async { Ok((api.running_calls().await? == 0).then_some(())) }).await?;
    // What is asked for a call that is over is answered too, and nothing is left of it.
    foot.send(&upcall(&call, "q-2")).await?;
    assert_eq!(foot.receive_kind("upcallResult").await?["result"], json!({ "action": "decline" }));
    Ok(())
}

/// A foot speaks to those it works for, whatever it says.
#[tokio::test]
async fn a_foot_tells_nothing_to_strangers() -> TestResult {
    let (hub, mut foreign, ..) = stage("mallory").await?;
    let (mut own, target, _) = foot_of(&hub, "ann").await?;
    let client = Client::open(&target, capable()).await?;
    let mut heard = client.listen(None).await?;
    let notify = |text: &str, audience: Value| {
        json!({ "type": "notify", "server": "git", "method": "notifications/message", "audience": audience,
            "params": { "level": "error", "data": text } })
    };
    let told = async {
        // The listener may not be there yet at the first time.
        loop {
            for audience in [json!({ "subject": "ann" }), json!({ "subject": "ann", "session": client.session() })] {
                foreign.send(&notify("from a stranger", audience)).await?;
            }
            // What is answered was heard, and what was said before it.
            foreign.offer(1, json!([])).await?;
            own.send(&notify("from her own", json!({ "subject": "ann" }))).await?;
            own.offer(1, json!([])).await?;
        }
    };
    let message: TestResult<_> = tokio::select! {
        failed = told => failed,
        message = heard.until("notifications/message") => Ok(message?),
    };
    assert_eq!(message?.params_value()["data"], "from her own");
    Ok(())
}

#[tokio::test]
async fn what_a_foot_says_of_its_servers_is_judged_one_by_one() -> TestResult {
    let (_hub, mut foot, target, api) = stage("ann").await?;
    let odd = [
        json!({ "name": "Git", "capabilities": {} }),
        json!({ "name": "whoami", "capabilities": {} }),
        json!({ "name": "tool_list", "capabilities": {} }),
        json!({ "name": "a__b", "capabilities": {} }),
        json!({ "name": "list", "capabilities": [] }),
        json!({ "name": "info", "capabilities": {}, "info": "x" }),
        json!({ "name": "large", "capabilities": { "x": "y".repeat(60_000) }, "info": { "x": "y".repeat(5_000) } }),
        server("git"),
        server("git"),
    ];
    foot.send(&json!({ "type": "servers", "servers": odd[..6] })).await?;
    foot.send(&json!({ "type": "servers", "servers": odd[7..] })).await?;
    foot.send(&json!({ "type": "servers", "servers": (0..100).map(|n| server(&format!("s{n}"))).collect::<Vec<_>>() }))
        .await?;
    foot.offer(2, json!([])).await?;
    let listed = api.get("feet").await?.ok()?.json();
    assert_eq!(listed["feet"][0]["servers"].as_array().map(Vec::len), Some(64), "{listed}");
    foot.send(&json!({ "type": "servers", "servers": [odd[0], server("git")] })).await?;
    foot.offer(3, json!([])).await?;
    let listed = api.get("feet").await?.ok()?.json();
    assert_eq!(listed["feet"][0]["servers"], json!([{ "name": "git", "protocol": "2025-11-25" }]));
    for frame in [json!({ "type": "servers", "servers": {} }), json!({ "type": "servers", "servers": [{ "name": 7 }] })]
    {
        foot.send(&frame).await?;
        assert_eq!(foot.receive_kind("error").await?["code"], "bad_frame");
    }
    let client = Client::open(&target, capable()).await?;
    let (called, asked) = tokio::join!(
        client.call_and_answer("git__ask", |_, _| json!({ "action": "cancel" })),
        ask_and_answer(&mut foot)
    );
    asked?;
    assert!(called?.0.result.is_some(), "the foot is still there");
    Ok(())
}
