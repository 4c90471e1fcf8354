//! How connections end in order: token, drain, bye.

use std::time::Duration;

use footbridge_shared::message::{Bye, InFlightState};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::json;

use super::harness::{Hub, Identity, hear, principal};

#[tokio::test(start_paused = true)]
async fn a_revoked_token_ends_what_lives_on_it() {
    let hub = Hub::new().await;
    let token = principal("ada");
    let ended = token.ended.clone();
    let mut foot = hub.dial(token, Identity::new("dev"));
    foot.greet(|_| {}).await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(foot, Call);
    ended.cancel();
    assert_eq!(hear!(foot, Error).code, ErrorCode::Unauthorized);
    assert_eq!(foot.hear_close().await, 4401);
    assert!(hub.names("ada").await.is_empty());
    foot.answer(&asked, "not any more").await;
    assert!(call.runs().await);
    // With a token that holds, the foot may go on.
    let (mut foot, welcome) = {
        let mut resumed = foot.identity.clone();
        resumed.name = "dev".to_owned();
        foot.resume(&hub, "ada", &[(&asked, InFlightState::Done)]).await
    };
    assert!(welcome.resumed);
    foot.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
}

#[tokio::test(start_paused = true)]
async fn bye_takes_the_tools_and_the_calls_along_at_once() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    hear!(foot, Call);
    foot.say(Bye { reason: "ctrl-c".to_owned() }).await;
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::FootGone, Outcome::Unknown));
    assert!(hub.names("ada").await.is_empty());
    assert_eq!(foot.hear_close().await, 1000);
    assert_eq!(hub.registry.counts().feet, 0, "no grace for who left");
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn feet_serve_until_the_work_is_done_and_are_told_when_to_come_back() {
    let hub = Hub::new().await;
    let idle = hub.foot("ada", "idle").await;
    let mut busy = hub.foot("ada", "busy").await;
    busy.offer(1, &["build"]).await;
    let mut away = hub.foot("ada", "away").await;
    away.offer(1, &["test"]).await;
    let mut lost = hub.call("ada", "away__test", json!({})).await;
    hear!(away, Call);
    drop(away);
    hub.settles(|counts| counts.connections == 2).await;

    // A script, say: it calls, thinks, and calls again.
    let (done, script) = tokio::sync::oneshot::channel::<()>();
    hub.lifecycle.spawn_work(async move {
        let _ = script.await;
    });
    let lifecycle = hub.lifecycle.clone();
    let stories = async {
        assert_eq!(lost.failure().await.code, ErrorCode::FootGone, "nobody can come back to this hub");
        let mut late = hub.dial(principal("ada"), Identity::new("late"));
        assert_eq!(late.hear_close().await, 1012);
        for round in ["first", "second"] {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let mut call = hub.call("ada", "build", json!({})).await;
            let asked = hear!(busy, Call);
            busy.answer(&asked, round).await;
            assert_eq!(call.text().await, round);
            hear!(busy, Ack);
        }
        done.send(()).unwrap();
        for mut foot in [busy, idle] {
            let draining = hear!(foot, Draining);
            assert!((500..=5_500).contains(&draining.reconnect_after_ms) && draining.try_for_ms >= 60_000);
            assert_eq!(foot.hear_close().await, 1012);
        }
    };
    let (left, ()) = tokio::join!(lifecycle.shut_down(Duration::from_secs(20)), stories);
    assert_eq!(left, 0, "every task ended");
    assert_eq!(hub.registry.counts(), crate::sources::feet::FeetCounts::default());
}

#[test]
fn a_hard_stop_leaves_time_to_close() {
    let linger = crate::sources::feet::FeetConfig::default().close_linger;
    assert!(2 * linger < crate::lifecycle::HARD_TIMEOUT, "to write the close, and to have it read");
}

#[tokio::test(start_paused = true)]
async fn a_hard_stop_waits_for_nobody() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    hear!(foot, Call);
    let left = hub.lifecycle.shut_down(Duration::from_secs(1)).await;
    assert_eq!(left, 0);
    let failure = call.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::FootGone, Outcome::Unknown));
    hear!(foot, Draining);
    assert_eq!(foot.hear_close().await, 1012);
}
