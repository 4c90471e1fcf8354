//! H18: a call that takes long, and a question that nobody answers yet, hold up neither heartbeat nor other calls of a foot.

use integration_tests::clients::raw::{Client, capable};
use integration_tests::clients::stage::{McpStage, OWNER};
use integration_tests::raw_foot::{Identity, RawFoot, simple_tool};
use serde_json::json;

use crate::TestResult;

#[tokio::test]
async fn a_question_of_a_foot_holds_up_nothing_else_of_it() -> TestResult {
    let stage = McpStage::start().await?;
    let token = stage.hub.token(OWNER, &["foot"]).await?;
    let (mut foot, _) = RawFoot::connect(&stage.hub.url, &token, &Identity::new("dev")?).await?;
    foot.offer(1, json!([simple_tool("sleep_20"), simple_tool("uptime")])).await?;
    stage.until_listed(OWNER, "uptime").await?;
    let target = stage.target(OWNER).await?;
    let (client, other) = (Client::open(&target, capable()).await?, Client::open(&target, json!({})).await?);

    let slow = async {
        let (_, mut exchange) = client.begin("tools/call", json!({ "name": "sleep_20", "arguments": {} })).await?;
        TestResult::Ok((exchange.until("elicitation/create").await?, exchange))
    };
    let asks = async {
        let call = foot.receive_kind("call").await?;
        let params = json!({ "message": "go on?", "requestedSchema": { "type": "object", "properties": {} } });
        let upcall = json!({ "type": "upcall", "call": call["call"], "id": "u-1", "method": "elicitation/create",
            "params": params, "timeoutMs": 60_000 });
        foot.send(&upcall).await?;
        TestResult::Ok(call)
    };
    let (slow, call) = tokio::join!(slow, asks);
    let ((question, mut exchange), call) = (slow?, call?);

    // Nobody has answered. The heartbeat is, and so is another call.
    let between = foot.heartbeat().await?;
    assert!(between.is_empty(), "{between:?}");
    let uptime = other.call("uptime", json!({}));
    let answers = async {
        let uptime = foot.receive_kind("call").await?;
        assert_eq!(uptime["tool"], "uptime");
        foot.answer(&uptime, "3 days").await
    };
    let (uptime, answered) = tokio::join!(uptime, answers);
    answered?;
    assert_eq!(uptime?.result_value()["content"][0]["text"], "3 days");

    client.answer(question.id_text(), json!({ "action": "accept", "content": {} })).await?;
    let answer = foot.receive_kind("upcallResult").await?;
    assert_eq!((&answer["id"], &answer["result"]["action"]), (&json!("u-1"), &json!("accept")));
    foot.answer(&call, "slept").await?;
    assert_eq!(exchange.answer().await?.result_value()["content"][0]["text"], "slept");
    Ok(())
}

/// A question about a call of somebody else's, or of none, is not passed on.
#[tokio::test]
async fn a_foot_can_ask_only_in_the_name_of_its_running_calls() -> TestResult {
    let stage = McpStage::start().await?;
    let token = stage.hub.token(OWNER, &["foot"]).await?;
    let (mut foot, _) = RawFoot::connect(&stage.hub.url, &token, &Identity::new("dev")?).await?;
    foot.offer(1, json!([simple_tool("work")])).await?;
    stage.until_listed(OWNER, "work").await?;
    let client = Client::open(&stage.target(OWNER).await?, capable()).await?;
    let works = client.call("work", json!({}));
    let ends = async {
        let call = foot.receive_kind("call").await?;
        foot.answer(&call, "done").await?;
        TestResult::Ok(call)
    };
    let (worked, call) = tokio::join!(works, ends);
    let call = call?;
    assert!(worked?.result.is_some());
    let params = json!({ "message": "still there?", "requestedSchema": { "type": "object", "properties": {} } });
    for id in [call["call"].clone(), json!("00000000000000000000000000000000")] {
        let upcall = json!({ "type": "upcall", "call": id, "id": "u-1", "method": "elicitation/create",
            "params": params, "timeoutMs": 60_000 });
        foot.send(&upcall).await?;
        let answer = foot.receive_kind("upcallResult").await?;
        assert_ne!(answer["result"]["action"], "accept", "{answer}");
    }
    Ok(())
}
