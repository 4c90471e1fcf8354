//! Messages that are larger than a frame, both ways.

use footbridge_shared::id::CallId;
use footbridge_shared::limits::{
    BULK_WINDOW_BYTES, DEFAULT_TIMEOUT, FOOT_PARTS_BYTES, MAX_MESSAGE_BYTES, MAX_RESULT_BYTES, PART_FRAME_BYTES,
    PARTS_STEP_BYTES,
};
use footbridge_shared::message::{Call, CallResult, Credit, FootToHub, HubToFoot, InFlightState, Ping, Pong};
use footbridge_shared::part::{HEADER_BYTES, Part};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::harness::{Heard, Hub, Running, TestFoot, hear, tool};
use crate::sources::feet::frame::Frame;

/// A text whose parts all differ.
fn text(bytes: usize) -> String {
    (0..bytes).map(|n| char::from(b'a' + (n / 1_000 % 26) as u8)).collect()
}

/// The answer to a call, as its JSON.
fn result(call: &Call, text: &str) -> Vec<u8> {
    let content = to_raw_value(&json!([{"type": "text", "text": text}])).unwrap();
    let (call, origin) = (call.call.clone(), call.origin.clone());
    let result = CallResult { call, origin, content, structured: None, is_error: false, meta: None, extra: None };
    FootToHub::from(result).encode().into_bytes()
}

const DATA: usize = PART_FRAME_BYTES - HEADER_BYTES;

fn frame(id: [u8; 16], seq: u32, last: bool, data: &[u8]) -> Frame {
    Frame::Binary(Part { id, seq, last, data }.encode().unwrap().into())
}

/// All frames of a message.
fn frames(id: [u8; 16], message: &[u8]) -> Vec<Frame> {
    let count = message.len().div_ceil(DATA);
    message.chunks(DATA).enumerate().map(|(n, data)| frame(id, n as u32, n + 1 == count, data)).collect()
}

fn id(call: &Call) -> [u8; 16] {
    call.call.to_bytes().unwrap()
}

impl TestFoot {
    /// Sends frames, and takes what comes meanwhile: credit, and the `ack` at the end.
    async fn say_parts(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            self.say_frame(frame).await;
            while let Ok(frame) = self.from_hub.try_recv() {
                let Frame::Text(text) = frame else { panic!("{frame:?}") };
                let message = HubToFoot::decode(std::str::from_utf8(&text).unwrap()).unwrap();
                assert!(
                    matches!(message, HubToFoot::Credit(_) | HubToFoot::Ping(_) | HubToFoot::Ack(_)),
                    "{message:?}"
                );
            }
        }
    }

    /// The next message that is no receipt.
    async fn hear_news(&mut self) -> HubToFoot {
        loop {
            match self.hear().await {
                Heard::Message(HubToFoot::Credit(Credit { hold: false, .. }) | HubToFoot::Ack(_)) => {}
                Heard::Message(message) => return message,
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn stage() -> (Hub, TestFoot) {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    (hub, foot)
}

async fn asked(hub: &Hub, foot: &mut TestFoot) -> (Running, Call) {
    let call = hub.call("ada", "build", json!({})).await;
    let HubToFoot::Call(asked) = foot.hear_news().await else { panic!() };
    (call, asked)
}

#[tokio::test(start_paused = true)]
async fn a_result_in_parts_is_exact_and_small_ones_pass_it() {
    let (hub, mut foot) = stage().await;
    let (mut large, asked_large) = asked(&hub, &mut foot).await;
    let (mut small, asked_small) = asked(&hub, &mut foot).await;
    let long = text(MAX_RESULT_BYTES - 100);
    let mut parts = frames(id(&asked_large), &result(&asked_large, &long));
    let rest = parts.split_off(3);
    foot.say_parts(parts).await;
    foot.answer(&asked_small, "done").await;
    assert_eq!(small.text().await, "done");
    foot.say_parts(rest).await;
    assert_eq!(large.text().await, long);
}

#[tokio::test(start_paused = true)]
async fn bulk_is_returned_as_it_comes_and_the_result_is_acknowledged() {
    let (hub, mut foot) = stage().await;
    let (mut call, asked) = asked(&hub, &mut foot).await;
    let message = result(&asked, &text(3 * DATA));
    let (mut returned, mut sent) = (0, 0);
    for part in frames(id(&asked), &message) {
        let Frame::Binary(bytes) = &part else { panic!() };
        sent += bytes.len() as u64;
        foot.say_frame(part).await;
        let credit = hear!(foot, Credit);
        assert_eq!((&credit.call, credit.hold), (&asked.call, false));
        returned += credit.bytes;
    }
    assert_eq!(returned, sent, "to the last byte");
    assert_eq!(hear!(foot, Ack).call, asked.call);
    assert_eq!(call.text().await, text(3 * DATA));
}

#[tokio::test(start_paused = true)]
async fn on_a_slow_link_what_comes_and_what_is_taken_in_are_signs_of_life() {
    let (hub, mut foot) = stage().await;
    let (call, asked) = asked(&hub, &mut foot).await;
    let mut messages = frames(id(&asked), &result(&asked, &text(4 * DATA)));
    messages.truncate(4);
    let credit = Credit { call: asked.call.clone(), bytes: 1, hold: false };
    let credit = Frame::Text(FootToHub::from(credit).encode().into_bytes().into());
    messages.extend([credit.clone(), credit]);
    for message in messages {
        // Two thirds of the idle time before each, and some behind it: without a sign of life that is too much at the second.
        for _ in 0..4 {
            tokio::time::sleep(DEFAULT_TIMEOUT / 6).await;
            foot.say(Pong { echo_ms: 0, sent_ms: 0 }).await;
        }
        foot.say_parts(vec![message]).await;
        let expired = tokio::time::timeout(DEFAULT_TIMEOUT / 4, call.clock.expired());
        assert!(expired.await.is_err(), "the idle time began anew");
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_in_parts_are_exact_and_wait_until_the_foot_has_spoken() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let long = text(MAX_RESULT_BYTES);
    let tool = hub.tool("ada", "build").await.unwrap();
    let mut call = hub.call_tool("ada", tool, &json!({"text": long}).to_string());
    let asked = hear!(foot, Call);
    assert_eq!(asked.arguments.get(), json!({"text": long}).to_string());
    foot.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
}

#[tokio::test(start_paused = true)]
async fn a_foot_that_returns_nothing_is_sent_no_more_than_a_window() {
    let (hub, mut foot) = stage().await;
    let call = hub.call("ada", "build", json!({"text": text(1_000_000)})).await;
    let mut bulk = 0;
    // A small call comes through all the same.
    let mut small = None;
    loop {
        match futures::StreamExt::next(&mut foot.from_hub).await.unwrap() {
            Frame::Binary(part) => bulk += part.len(),
            Frame::Text(text) => match HubToFoot::decode(std::str::from_utf8(&text).unwrap()).unwrap() {
                HubToFoot::Call(asked) => {
                    foot.answer(&asked, "small").await;
                    break;
                }
                HubToFoot::Ping(_) | HubToFoot::Pong(_) | HubToFoot::Ack(_) => {}
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
        if bulk + PART_FRAME_BYTES > BULK_WINDOW_BYTES && small.is_none() {
            small = Some(hub.call("ada", "build", json!({})).await);
        }
    }
    assert_eq!(small.unwrap().text().await, "small");
    assert_eq!(bulk, BULK_WINDOW_BYTES);
    // Taken back before the foot has all of it: certainly not run, and the foot may forget its part.
    call.cancel.cancel();
    let mut call = call;
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Cancelled, Outcome::NotRun));
    foot.say(Ping { sent_ms: 1 }).await;
    let HubToFoot::Cancel(_) = foot.hear_news().await else { panic!() };
}

#[tokio::test(start_paused = true)]
async fn a_result_that_grows_too_long_fails_alone() {
    let (hub, mut foot) = stage().await;
    let (mut call, asked_first) = asked(&hub, &mut foot).await;
    let long = vec![b'x'; MAX_MESSAGE_BYTES + 1];
    foot.say_parts(frames(id(&asked_first), &long)).await;
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ResultTooLarge, Outcome::Completed));
    let (mut next, asked_next) = asked(&hub, &mut foot).await;
    foot.answer(&asked_next, "fine").await;
    assert_eq!(next.text().await, "fine");
}

#[tokio::test(start_paused = true)]
async fn parts_from_the_middle_of_nothing_cost_nothing() {
    let (hub, mut foot) = stage().await;
    let data = vec![b'x'; DATA];
    for n in 0..40 {
        foot.say_frame(frame([n % 3; 16], 1 + u32::from(n), n % 5 == 0, &data)).await;
        assert_eq!(hear!(foot, Credit).bytes, PART_FRAME_BYTES as u64);
    }
    let metrics = hub.registry.metrics();
    assert_eq!((metrics.unknown_parts, metrics.orphan_results, metrics.bad_frames), (40, 0, 0));
    assert_eq!(hub.registry.core.node.parts.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_waits_for_is_kept_if_its_call_had_a_key() {
    let (hub, mut foot) = stage().await;
    let (call, asked) = asked(&hub, &mut foot).await;
    let long = text(4 * DATA);
    for (id, kept) in [([8; 16], false), ([9; 16], true)] {
        let known = Call { call: CallId::from_bytes(id), ..asked.clone() };
        if kept {
            hub.late.wants.lock().insert(known.call.clone(), true);
        }
        let parts = frames(id, &result(&known, &long));
        let (first, rest) = parts.split_at(2);
        for part in first {
            foot.say_frame(part.clone()).await;
            hear!(foot, Credit);
        }
        // It outlives the connection as others do.
        foot = foot.resume(&hub, "ada", &[(&asked, InFlightState::Running)]).await.0;
        assert_eq!(hear!(foot, PartsFrom).seq, 2);
        for part in rest {
            foot.say_frame(part.clone()).await;
            hear!(foot, Credit);
        }
        assert_eq!(hear!(foot, Ack).call, known.call);
        assert_eq!(hub.late.kept.lock().pop(), kept.then(|| (known.call, long.clone())));
    }
    assert_eq!(hub.registry.metrics().orphan_results, 2);
    assert_eq!(hub.registry.core.node.parts.used(), 0);
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_ends_its_call() {
    let (hub, mut foot) = stage().await;
    for (n, garbage) in [&b"{\"type\":\"result\""[..], b"\xff\xfe", br#"{"type":"ping","sentMs":1}"#].iter().enumerate()
    {
        let (mut call, asked) = asked(&hub, &mut foot).await;
        foot.say_frame(frame(id(&asked), 0, true, garbage)).await;
        let failure = call.failure().await;
        assert_eq!((failure.code, failure.outcome), (ErrorCode::BadFrame, Outcome::Unknown));
        assert_eq!(hub.registry.metrics().bad_frames, n as u64 + 1);
        let HubToFoot::Error(_) = foot.hear_news().await else { panic!() };
    }
    assert_eq!(foot.hear_close().await, 4400);
}

#[tokio::test(start_paused = true)]
async fn a_result_goes_on_where_the_connection_broke() {
    let (hub, mut foot) = stage().await;
    let (mut call, asked) = asked(&hub, &mut foot).await;
    let long = text(10 * DATA);
    let parts = frames(id(&asked), &result(&asked, &long));
    foot.say_parts(parts[..4].to_vec()).await;
    let (mut again, welcome) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Done)]).await;
    assert!(welcome.resumed);
    let wanted = hear!(again, PartsFrom);
    assert_eq!((&wanted.call, wanted.seq), (&asked.call, 4), "right behind the welcome");
    drop(foot);
    // What the hub has may come again, and changes nothing.
    again.say_parts(parts[2..].to_vec()).await;
    assert_eq!(call.text().await, long);
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_where_the_connection_broke() {
    let (hub, mut foot) = stage().await;
    let long = text(BULK_WINDOW_BYTES * 2);
    let mut call = hub.call("ada", "build", json!({"text": long})).await;
    let mut first = Vec::new();
    while first.len() < 3 {
        if let Some(Frame::Binary(part)) = futures::StreamExt::next(&mut foot.from_hub).await {
            first.push(part);
        }
    }
    let mut again = foot.resume(&hub, "ada", &[]).await.0;
    for part in first {
        let part = Part::decode(&part).unwrap();
        again.parts.entry(part.id).or_default().take(&part, usize::MAX, |_| true);
        again.parts.entry(part.id).or_default().rejoin();
    }
    let unfinished = *again.parts.keys().next().unwrap();
    again.say(footbridge_shared::message::PartsFrom { call: CallId::from_bytes(unfinished), seq: 3 }).await;
    again.say(Ping { sent_ms: 1 }).await;
    let asked = hear!(again, Call);
    assert_eq!(asked.arguments.get(), json!({"text": long}).to_string());
    again.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
}

#[tokio::test(start_paused = true)]
async fn beyond_its_room_a_foot_waits_and_its_oldest_result_goes_on() {
    let (hub, mut foot) = stage().await;
    let count = FOOT_PARTS_BYTES / PARTS_STEP_BYTES;
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(asked(&hub, &mut foot).await);
    }
    let long = text(MAX_RESULT_BYTES - 1_000);
    let all: Vec<Vec<Frame>> = calls.iter().map(|(_, asked)| frames(id(asked), &result(asked, &long))).collect();
    // Two fill the room; the third is told to wait, and the first goes on.
    let most = all[0].len() - 1;
    foot.say_parts(all[0][..most].to_vec()).await;
    foot.say_parts(all[1][..most].to_vec()).await;
    assert!(2 * most * DATA > (count - 2) * PARTS_STEP_BYTES);
    let mut held = false;
    for part in &all[2] {
        foot.say_frame(part.clone()).await;
        let credit = hear!(foot, Credit);
        held |= credit.hold;
    }
    assert!(held);
    foot.say_parts(all[0][most..].to_vec()).await;
    assert_eq!(calls[0].0.text().await, long);
    let HubToFoot::PartsFrom(from) = foot.hear_news().await else { panic!() };
    assert_eq!(from.call, calls[2].1.call);
    foot.say_parts(all[2][from.seq as usize..].to_vec()).await;
    assert_eq!(calls[2].0.text().await, long);
    foot.say_parts(all[1][most..].to_vec()).await;
    assert_eq!(calls[1].0.text().await, long);
}

#[tokio::test(start_paused = true)]
async fn what_is_here_of_a_result_goes_with_its_call() {
    let (hub, mut foot) = stage().await;
    let (call, asked) = asked(&hub, &mut foot).await;
    let parts = frames(id(&asked), &result(&asked, &text(4 * DATA)));
    foot.say_parts(parts[..2].to_vec()).await;
    let room = hub.registry.core.node.parts.clone();
    hub.settles(|_| room.used() == PARTS_STEP_BYTES).await;
    drop(call);
    hub.settles(|_| room.used() == 0).await;
    // The foot can spare itself the rest. What was on its way already is dropped.
    while let Heard::Message(message) = foot.hear().await {
        if let HubToFoot::Ack(ack) = message {
            assert_eq!(ack.call, asked.call);
            break;
        }
    }
    foot.say_parts(parts[2..].to_vec()).await;
    foot.say(Ping { sent_ms: 1 }).await;
    hub.settles(|_| hub.registry.metrics().unknown_parts == 3).await;
    assert_eq!(room.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_larger_than_a_frame_is_offered_in_parts() {
    let (hub, mut foot) = stage().await;
    let schema = json!({"type": "object", "default": "y".repeat(200 * 1024)});
    let large = json!({"name": "large", "description": "", "inputSchema": schema});
    let change = json!({"type": "tools", "revision": 2, "upsert": [large, tool("small")], "remove": []}).to_string();
    // The type is the first field of what the types write.
    let rest = change.replacen(r#""type":"tools","#, "", 1).replacen(r#","type":"tools""#, "", 1);
    let change = format!(r#"{{"type":"tools",{}"#, &rest[1..]);
    foot.say_parts(frames([5; 16], change.as_bytes())).await;
    let HubToFoot::ToolsAck(ack) = foot.hear_news().await else { panic!() };
    assert!(ack.revision == 2 && ack.rejected.is_empty(), "{ack:?}");
    assert!(hub.tool("ada", "large").await.is_some() && hub.tool("ada", "small").await.is_some());
    assert_eq!(hub.registry.metrics().unknown_parts, 0);
}
