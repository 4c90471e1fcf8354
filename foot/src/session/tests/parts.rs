//! Messages larger than a frame, both ways.

use footbridge_shared::id::CallId;
use footbridge_shared::limits::{BULK_WINDOW_BYTES, PART_FRAME_BYTES};
use footbridge_shared::part::{HEADER_BYTES, Part};
use serde_json::{Value, json};

use super::Foot;
use super::hub::{Connection, Hub, call};
use crate::error::Exit;

const ID: [u8; 16] = [7; 16];
const WINDOW: u32 = (BULK_WINDOW_BYTES / PART_FRAME_BYTES) as u32;

fn id() -> String {
    CallId::from_bytes(ID).to_string()
}

/// The parts of a message.
fn parts(message: &str) -> Vec<Vec<u8>> {
    let chunks: Vec<&[u8]> = message.as_bytes().chunks(PART_FRAME_BYTES - HEADER_BYTES).collect();
    let part = |(n, data): (usize, &&[u8])| {
        Part { id: ID, seq: u32::try_from(n).unwrap(), last: n + 1 == chunks.len(), data }.encode().unwrap()
    };
    chunks.iter().enumerate().map(part).collect()
}

async fn say_all(connection: &mut Connection, parts: &[Vec<u8>]) {
    for part in parts {
        connection.say_binary(part.clone()).await;
    }
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_large_result_waits_for_credit_and_small_ones_pass_it() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call(&id(), "echo_bytes", &json!({"bytes": 1_000_000})).await;
    for seq in 0..WINDOW {
        assert_eq!(connection.part().await, seq);
    }
    connection.call("small", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.0, "small: result");
    connection.say(&json!({"type": "credit", "call": id(), "bytes": BULK_WINDOW_BYTES})).await;
    let (said, result) = connection.answer().await;
    assert_eq!((said, text_of(&result).len()), (format!("{}: result", id()), 1_000_000));
}

#[tokio::test]
async fn a_result_goes_on_where_the_connection_broke() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut before, _) = hub.welcome(&json!({})).await;
    before.call(&id(), "echo_bytes", &json!({"bytes": 300_000})).await;
    while before.part().await + 1 < WINDOW {}
    let here = before.breaks();

    let (mut connection, _) = hub.welcome(&json!({"resumed": true})).await;
    connection.goes_on(here);
    connection.say(&json!({"type": "partsFrom", "call": id(), "seq": WINDOW})).await;
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    assert_eq!(connection.part().await, WINDOW, "not what the hub has");
    assert_eq!(text_of(&connection.answer().await.1).len(), 300_000);
    connection.say(&json!({"type": "ack", "call": id()})).await;
    connection.call("next", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.1["structured"]["run"], 2, "nothing ran twice");
}

#[tokio::test]
async fn a_call_goes_on_where_the_connection_broke() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let text: String = (0..60_000).map(|n| format!("{n}")).collect();
    let parts = parts(&call(&id(), "echo_text", &json!({"text": text})).to_string());
    let (mut before, _) = hub.welcome(&json!({})).await;
    say_all(&mut before, &parts[..5]).await;
    before.say(&json!({"type": "ping", "sentMs": 1})).await;
    before.hear("pong").await;
    drop(before);

    let (mut connection, _) = hub.welcome(&json!({"resumed": true})).await;
    let wanted = connection.hear("partsFrom").await;
    assert_eq!((&wanted["call"], &wanted["seq"]), (&json!(id()), &json!(5)));
    say_all(&mut connection, &parts[4..]).await;
    assert_eq!(text_of(&connection.answer().await.1), text);
    drop(connection);

    // Another hub knows nothing of it.
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    assert_ne!(connection.hear_any().await["type"], "partsFrom");
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_is_whole_does_not_run() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let parts = parts(&call(&id(), "echo", &json!({"text": "x".repeat(200_000)})).to_string());
    say_all(&mut connection, &parts[..3]).await;
    connection.say(&json!({"type": "cancel", "call": id(), "reason": "nobody waits"})).await;
    assert_eq!(connection.answer().await.0, format!("{}: cancelled not_run", id()));
    say_all(&mut connection, &parts[3..]).await;
    connection.call("next", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.1["structured"]["run"], 1);
}

#[tokio::test]
async fn parts_that_are_no_call_are_a_bad_frame() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let other = call("other", "echo", &json!({})).to_string();
    for garbage in [r#"{"type":"call""#, r#"{"type":"ping","sentMs":1}"#, &other] {
        say_all(&mut connection, &parts(garbage)).await;
        assert_eq!(connection.answer().await.0, format!("{}: bad_frame not_run", id()));
    }
    assert_eq!(connection.closed().await, Some(4400));
}

#[tokio::test]
async fn a_foot_that_is_stopped_waits_until_its_large_results_are_taken() {
    let hub = Hub::new().await;
    let mut foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call(&id(), "echo_bytes", &json!({"bytes": 1_000_000})).await;
    assert_eq!(connection.part().await, 0);
    foot.shutdown.cancel();
    assert_eq!(text_of(&connection.answer().await.1).len(), 1_000_000);
    connection.hear("bye").await;
    assert_eq!(connection.closed().await, Some(1000));
    assert_eq!(foot.ended().await.unwrap(), Exit::Stopped);
}
