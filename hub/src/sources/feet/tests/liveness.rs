//! H18: what keeps a connection alive, and what does not.

use std::time::Duration;

use footbridge_shared::limits::WRITE_TIMEOUT;
use footbridge_shared::message::{InFlightState, Progress};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::json;
use tokio::time::Instant;

use super::harness::{Heard, Hub, hear};
use crate::domain::call::CallEvent;
use crate::sources::feet::{FeetConfig, Frame};

const SECOND: Duration = Duration::from_secs(1);

fn quick() -> FeetConfig {
    FeetConfig { heartbeat_interval: SECOND, heartbeat_misses: 1, ..FeetConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn a_long_call_starves_neither_heartbeats_nor_other_calls() {
    let hub = Hub::with(quick()).await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["sleep_20", "uptime"]).await;
    let mut long = hub.call("ada", "sleep_20", json!({})).await;
    let asked = hear!(foot, Call);
    let started = Instant::now();
    while started.elapsed() < 20 * SECOND {
        // Hearing answers the heartbeats; nothing else is said for most of a second.
        let heard = tokio::time::timeout(SECOND, foot.hear()).await;
        assert!(heard.is_err(), "{heard:?}");
        let mut quick = hub.call("ada", "uptime", json!({})).await;
        let now = Instant::now();
        let asked = hear!(foot, Call);
        assert_eq!(asked.tool, "uptime");
        foot.answer(&asked, "up").await;
        assert_eq!(quick.text().await, "up");
        assert_eq!(now.elapsed(), Duration::ZERO, "at once");
        hear!(foot, Ack);
    }
    foot.answer(&asked, "slept").await;
    assert_eq!(long.text().await, "slept");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_process_with_an_open_socket_is_dropped() {
    let hub = Hub::with(quick()).await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    hear!(foot, Call);
    // From here on the foot is stopped: it neither reads nor writes, and its socket stays open.
    let stopped = Instant::now();
    hub.settles(|counts| counts.connections == 0).await;
    let noticed = stopped.elapsed();
    assert!(noticed < 4 * SECOND, "interval, limit and the time to close: {noticed:?}");
    assert!(hub.names("ada").await.is_empty());
    assert!(call.runs().await, "its calls wait for it");
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::FootGone, Outcome::Unknown));
    assert!(stopped.elapsed() < 40 * SECOND);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn any_frame_is_a_sign_of_life() {
    let hub = Hub::with(quick()).await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    foot.deaf = true;
    for step in 0..60 {
        match step % 3 {
            0 => foot.say_text(r#"{"type":"fromTheFuture"}"#).await,
            1 => foot.say_frame(Frame::Heartbeat).await,
            _ => foot.say_text(r#"{"type":"notify","server":"s","method":"m","params":{}}"#).await,
        }
        let heard = tokio::time::timeout(SECOND / 2, foot.hear()).await;
        assert!(heard.is_err(), "{heard:?}");
    }
    let silent = Instant::now();
    assert_eq!(foot.hear_close().await, 4408);
    assert!(silent.elapsed() < 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_foot_that_talks_and_does_not_read_is_dropped() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let calls = {
        let mut calls = Vec::new();
        for _ in 0..40 {
            calls.push(hub.call("ada", "build", json!({})).await);
        }
        calls
    };
    let started = Instant::now();
    while hub.registry.counts().connections > 0 && started.elapsed() < 2 * WRITE_TIMEOUT {
        foot.say_frame(Frame::Heartbeat).await;
        tokio::time::sleep(SECOND).await;
    }
    let lasted = started.elapsed();
    assert!(lasted >= WRITE_TIMEOUT && lasted < WRITE_TIMEOUT + 3 * SECOND, "{lasted:?}");
    drop(calls);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_reaches_its_listener_in_part_and_grows_nothing() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["talk"]).await;
    let mut call = hub.call("ada", "talk", json!({})).await;
    let asked = hear!(foot, Call);
    for number in 0..5_000 {
        foot.say(Progress { call: asked.call.clone(), progress: f64::from(number), total: None, message: None }).await;
        let orphan = format!(r#"{{"type":"result","call":"nobody{number}","origin":"x","content":[]}}"#);
        foot.say_text(&orphan).await;
        // The acknowledgements are read, as a foot has to.
        while let Ok(heard) = tokio::time::timeout(Duration::ZERO, foot.hear()).await {
            assert!(matches!(heard, Heard::Message(_)), "{heard:?}");
        }
    }
    foot.answer(&asked, "done").await;
    assert_eq!(call.text().await, "done");
    let mut heard = 0;
    while let Ok(CallEvent::Progress { .. }) = call.heard.try_recv() {
        heard += 1;
    }
    assert_eq!(heard, 64, "as many as fit the listener's queue");
    assert_eq!(hub.registry.metrics().orphan_results, 5_000);
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_malformed_frame_quotes_little_of_it() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let long = "\u{202e}x".repeat(15_000);
    foot.say_text(&json!({"type": "ping", "sentMs": long}).to_string()).await;
    let error = hear!(foot, Error);
    assert!(error.message.chars().count() <= 200 && !error.message.contains('\u{202e}'), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn three_malformed_frames_end_a_connection_and_its_calls_go_on() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    let large = format!(r#"{{"type":"bye","reason":"{}"}}"#, "x".repeat(70_000));
    foot.say_text(r#"{"type":"result"}"#).await;
    foot.say_frame(Frame::Binary(vec![0; 20].into())).await;
    foot.say_text(&large).await;
    for _ in 0..3 {
        assert_eq!(hear!(foot, Error).code, ErrorCode::BadFrame);
    }
    assert_eq!(foot.hear_close().await, 4400);
    let (mut foot, _) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Done)]).await;
    foot.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
}
