//! What passes between a caller and a foot's tool.

use std::time::Duration;

use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use footbridge_shared::message::{CallFailure, HubToFoot, Output, Progress, Stream, Upcall};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::json;
use serde_json::value::RawValue;

use super::harness::{Heard, Hub, Identity, hear};
use crate::domain::call::CallEvent;

#[tokio::test(start_paused = true)]
async fn payloads_pass_byte_for_byte() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let arguments = "{ \"n\" :1.10,\"n\": 1e400 ,\"text\":\"\\u00e9\\/\u{e9}\" }";
    let tool = hub.tool("ada", "dev__build").await.unwrap();
    let mut call = hub.call_tool("ada", tool, arguments);
    let asked = hear!(foot, Call);
    assert_eq!((asked.tool.as_str(), asked.arguments.get()), ("build", arguments));
    assert_eq!((asked.caller.subject.as_str(), asked.caller.process.as_deref()), ("ada", None));
    assert_eq!((asked.origin.as_str(), asked.keyed, asked.idle_ms, asked.deadline_ms), ("hub", false, 60_000, 600_000));
    assert_ne!(asked.call.as_str(), "outer", "inner calls of one outer call need ids of their own");
    let result = format!(
        r#"{{"type":"result","call":"{}","origin":"hub","content":[{arguments}],"structured":{arguments},"isError":true,"meta":{{"k":1.0}}}}"#,
        asked.call
    );
    foot.say_text(&result).await;
    let output = call.end().await.unwrap();
    assert_eq!(output.content.get(), format!("[{arguments}]"));
    assert_eq!(output.structured.as_deref().map(RawValue::get), Some(arguments));
    assert_eq!((output.is_error, output.code), (true, Some(ErrorCode::ToolFailed)));
    assert_eq!(output.meta.as_deref().map(RawValue::get), Some(r#"{"k":1.0}"#));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_heard_while_it_runs() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    let id = asked.call.clone();
    foot.say(Progress { call: id.clone(), progress: 1.0, total: Some(2.0), message: Some("half".to_owned()) }).await;
    let data = "line\n".to_owned();
    foot.say(Output { call: id, seq: 1, stream: Stream::Stderr, data: data.clone(), skipped_bytes: Some(7) }).await;
    let message = Some("half".to_owned());
    assert_eq!(call.heard.recv().await, Some(CallEvent::Progress { progress: 1.0, total: Some(2.0), message }));
    assert_eq!(call.heard.recv().await, Some(CallEvent::Output { stream: Stream::Stderr, data, skipped_bytes: 7 }));
    foot.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_foot_and_its_answer_comes_back() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    call.cancel.cancel();
    assert_eq!(hear!(foot, Cancel).call, asked.call);
    foot.say(CallFailure {
        call: asked.call.clone(),
        origin: asked.origin.clone(),
        code: ErrorCode::Cancelled,
        message: "killed\u{202e}".to_owned(),
        hint: Some("none\u{200b}".to_owned()),
        outcome: Outcome::Unknown,
        retryable: true,
        retry_after_ms: Some(5),
        rpc: None,
    })
    .await;
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Cancelled, Outcome::Unknown));
    assert_eq!((failure.message.as_str(), failure.hint.as_deref()), ("killed", Some("none")), "cleaned");
    assert_eq!(failure.retry_after_ms, None, "only what certainly did not run may be tried again");
    hear!(foot, Ack);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_takes_its_call_along() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    drop(call);
    assert_eq!(hear!(foot, Cancel).call, asked.call);
    assert_eq!(hub.registry.counts().pending, 0);
    foot.answer(&asked, "too late").await;
    assert_eq!(hear!(foot, Ack).call, asked.call);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_sent_is_taken_back_without_a_word() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut calls = Vec::new();
    for _ in 0..30 {
        calls.push(hub.call("ada", "build", json!({})).await);
    }
    hub.settles(|counts| counts.pending == 30).await;
    let mut last = calls.pop().unwrap();
    last.cancel.cancel();
    let failure = last.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Cancelled, Outcome::NotRun));
    let first_dropped = calls.split_off(28);
    drop(first_dropped);
    hub.settles(|counts| counts.pending == 28).await;
    let (mut asked, mut acked) = (0, 0);
    while asked + acked < 2 * 28 {
        match foot.hear().await {
            Heard::Message(HubToFoot::Call(call)) => {
                asked += 1;
                foot.answer(&call, "built").await;
            }
            Heard::Message(HubToFoot::Ack(_)) => acked += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((asked, acked), (28, 28));
    let quiet = tokio::time::timeout(Duration::from_secs(1), foot.hear()).await;
    assert!(quiet.is_err(), "neither call nor cancel: {quiet:?}");
}

#[tokio::test(start_paused = true)]
async fn a_foot_with_enough_to_do_gets_no_more() {
    let hub = Hub::new().await;
    let mut foot = hub.foot_as("ada", Identity::new("dev"), |hello| hello.max_concurrent = 0).await;
    foot.offer(1, &["build"]).await;
    let tool = hub.tool("ada", "build").await.unwrap();
    // One that it runs, and those that it queues.
    let most = 1 + footbridge_shared::limits::FOOT_QUEUE;
    let mut calls = Vec::new();
    for _ in 0..most {
        calls.push(hub.call_tool("ada", tool.clone(), "{}"));
        hear!(foot, Call);
    }
    let failure = hub.call_tool("ada", tool, "{}").failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::FootBusy, Outcome::NotRun));
    assert!(failure.retry_after_ms.is_some());
    assert_eq!(hub.registry.counts().pending, most);
}

#[tokio::test(start_paused = true)]
async fn arguments_beyond_the_limit_are_refused() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({"x": "x".repeat(MAX_MESSAGE_BYTES)})).await;
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::PayloadTooLarge, Outcome::NotRun));
}

#[tokio::test(start_paused = true)]
async fn a_result_without_content_blocks_is_a_failure_of_the_foot() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    foot.say_text(&format!(r#"{{"type":"result","call":"{}","origin":"hub","content":"text"}}"#, asked.call)).await;
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::BadFrame, Outcome::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_no_client_can_answer_is_declined_at_once() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let params = RawValue::from_string("{}".to_owned()).unwrap();
    for (method, expected) in
        [("elicitation/create", r#"{"action":"decline"}"#), ("sampling/createMessage", r#""code":-32601"#)]
    {
        let call = footbridge_shared::id::CallId::parse("c").unwrap();
        let upcall =
            Upcall { call, id: "q".to_owned(), method: method.to_owned(), params: params.clone(), timeout_ms: 9 };
        foot.say(upcall).await;
        let answer = hear!(foot, UpcallResult);
        let said = answer.result.or(answer.error).unwrap();
        assert!(said.get().contains(expected), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_travel_in_company() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut first = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    foot.answer(&asked, "built").await;
    first.text().await;
    let early = tokio::time::timeout(Duration::from_millis(2), foot.hear()).await;
    assert!(early.is_err(), "{early:?}");
    let _second = hub.call("ada", "build", json!({})).await;
    hear!(foot, Ack);
    assert!(matches!(foot.hear().await, Heard::Message(_)));
}
