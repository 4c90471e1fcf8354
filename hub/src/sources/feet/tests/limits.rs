//! What one foot, and one subject, may take of the hub's memory.

use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::MAX_FRAME_BYTES;
use serde_json::{Value, json};

use super::harness::{Hub, Identity, hear, principal, tool};
use crate::domain::tool::Tool;
use crate::sources::feet::FeetConfig;
use crate::sources::feet::foot::MAX_PENDING_BYTES;
use crate::sources::feet::offer::MAX_TOOL_BYTES;

/// A tool of about 60 KiB.
fn large(name: &str) -> Value {
    let schema = json!({"type": "object", "default": "y".repeat(60 * 1024)});
    json!({"name": name, "description": "", "inputSchema": schema})
}

#[tokio::test(start_paused = true)]
async fn the_definitions_of_a_foot_fit_a_budget() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let mut revision = 0;
    let fits = MAX_TOOL_BYTES / large("t100").to_string().len();
    for number in 0..fits {
        revision += 1;
        assert!(foot.change(revision, json!([large(&format!("t{number}"))]), &[]).await.rejected.is_empty());
    }
    let ack = foot.change(revision + 1, json!([large("one_more"), tool("small")]), &[]).await;
    assert_eq!((ack.rejected.len(), ack.rejected[0].code), (1, ErrorCode::TooManyTools));
    assert!(hub.tool("ada", "one_more").await.is_none() && hub.tool("ada", "small").await.is_some());
    // A tool that grows out of the budget is gone: its old form is not what would run.
    let ack = foot.change(revision + 2, json!([large("small")]), &[]).await;
    assert_eq!(ack.rejected[0].code, ErrorCode::TooManyTools);
    assert!(hub.tool("ada", "small").await.is_none());
    // What is taken away makes room.
    let ack = foot.change(revision + 3, json!([large("one_more")]), &["t0"]).await;
    assert!(ack.rejected.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_foot_fit_a_budget() {
    let hub = Hub::new().await;
    let mut foot = hub.foot_as("ada", Identity::new("dev"), |hello| hello.max_concurrent = 1024).await;
    foot.offer(1, &["build"]).await;
    let tool: Arc<Tool> = hub.tool("ada", "build").await.unwrap();
    let arguments = json!({"text": "x".repeat(MAX_FRAME_BYTES - 1024)}).to_string();
    let mut calls = Vec::new();
    let mut asked = Vec::new();
    let busy = loop {
        let mut call = hub.call_tool("ada", tool.clone(), &arguments);
        if !call.runs().await {
            break hub.call_tool("ada", tool.clone(), &arguments).failure().await;
        }
        asked.push(hear!(foot, Call));
        calls.push(call);
        assert!(calls.len() <= MAX_PENDING_BYTES / (MAX_FRAME_BYTES - 1024), "there is a bound");
    };
    assert_eq!((busy.code, busy.retry_after_ms.is_some()), (ErrorCode::FootBusy, true));
    assert!(calls.len() > 500, "{} are enough to reach it", calls.len());
    // A call that ends makes room.
    foot.answer(&asked[0], "built").await;
    assert_eq!(calls[0].text().await, "built");
    assert!(hub.call_tool("ada", tool, &arguments).runs().await);
}

#[tokio::test(start_paused = true)]
async fn a_subject_has_only_so_many_feet_and_names() {
    let hub = Hub::with(FeetConfig { max_connections: 2, max_names: 3, ..FeetConfig::default() }).await;
    let first = hub.foot("ada", "a").await;
    let _second = hub.foot("ada", "b").await;
    let mut third = hub.dial(principal("ada"), Identity::new("c"));
    third.say_hello(|_| {}).await;
    assert_eq!(hear!(third, Error).code, ErrorCode::Overloaded);
    assert_eq!(third.hear_close().await, 1013, "it may come back");
    // Others are not counted, nor is the connection that is taken over.
    let _bobs = hub.foot("bob", "c").await;
    let _again = hub.foot_as("ada", Identity::new("b").restarted(), |_| {}).await;

    drop(first);
    hub.settles(|counts| counts.feet == 2).await;
    let third = hub.foot("ada", "c").await;
    drop(third);
    hub.settles(|counts| counts.feet == 2).await;
    let mut fourth = hub.dial(principal("ada"), Identity::new("d"));
    fourth.say_hello(|_| {}).await;
    let error = hear!(fourth, Error);
    assert_eq!(error.code, ErrorCode::Overloaded);
    assert!(error.message.contains("release"), "{}", error.message);
    assert_eq!(fourth.hear_close().await, 4403);
    let _bound = hub.foot("ada", "a").await;
}
