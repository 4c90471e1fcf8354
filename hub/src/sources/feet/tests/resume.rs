//! H17: calls whose connection is cut.

use std::time::Duration;

use footbridge_shared::limits::RESUME_GRACE;
use footbridge_shared::message::{CallFailure, InFlightState};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::json;
use tokio::time::Instant;

use super::harness::{Heard, Hub, Running, TestFoot, hear, principal};
use crate::domain::failure::Failure;

/// A foot with the tool `build`, a call that it has, and that call's message.
async fn cut_off(hub: &Hub) -> (TestFoot, Running, footbridge_shared::message::Call) {
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let call = hub.call("ada", "build", json!({"n": 1})).await;
    let asked = hear!(foot, Call);
    foot.to_hub.close_channel();
    hub.settles(|counts| counts.connections == 0).await;
    (foot, call, asked)
}

fn fate(failure: &Failure) -> (ErrorCode, Outcome) {
    (failure.code, failure.outcome)
}

#[tokio::test(start_paused = true)]
async fn a_the_foot_resumes_with_the_result() {
    let hub = Hub::new().await;
    let (foot, mut call, asked) = cut_off(&hub).await;
    assert!(hub.names("ada").await.is_empty(), "a foot that is away lists nothing");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (mut foot, welcome) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Done)]).await;
    assert!(welcome.resumed);
    assert_eq!(hub.names("ada").await, ["build", "dev__build"], "it need not offer again");
    foot.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
    assert_eq!(hear!(foot, Ack).call, asked.call);
    // Once: a second result of the same call goes nowhere, and the foot may forget it.
    foot.answer(&asked, "built twice").await;
    assert_eq!(hear!(foot, Ack).call, asked.call);
    assert_eq!(hub.registry.metrics().orphan_results, 1);
    drop(foot);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn b_the_foot_never_saw_the_call() {
    let hub = Hub::new().await;
    let (foot, mut call, asked) = cut_off(&hub).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (mut foot, _) = foot.resume(&hub, "ada", &[]).await;
    let again = hear!(foot, Call);
    assert_eq!((&again.call, &again.tool, again.arguments.get()), (&asked.call, &asked.tool, asked.arguments.get()));
    let spent = asked.deadline_ms - again.deadline_ms;
    assert!((2_000..2_100).contains(&spent), "the deadline went on: {spent} ms");
    foot.answer(&again, "built once").await;
    assert_eq!(call.text().await, "built once");
    hear!(foot, Ack);
    drop(foot);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn c_the_foot_comes_back_as_a_new_process() {
    let hub = Hub::new().await;
    let (foot, mut call, asked) = cut_off(&hub).await;
    let mut new = hub.foot_as("ada", foot.identity.restarted(), |_| {}).await;
    let started = Instant::now();
    assert_eq!(fate(&call.failure().await), (ErrorCode::FootRestarted, Outcome::Unknown));
    assert_eq!(started.elapsed(), Duration::ZERO, "at once");
    // Not sent again: the next thing the new process hears is the answer to its own message.
    new.offer(1, &["build"]).await;
    // What its journal says of the call is dropped.
    let failure = CallFailure {
        call: asked.call.clone(),
        origin: asked.origin.clone(),
        code: ErrorCode::FootRestarted,
        message: "restarted".to_owned(),
        hint: None,
        outcome: Outcome::Unknown,
        retryable: false,
        retry_after_ms: None,
        rpc: None,
    };
    new.say(failure).await;
    assert_eq!(hear!(new, Ack).call, asked.call);
    drop(new);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn d_nobody_comes_back_within_the_grace() {
    let hub = Hub::new().await;
    let cut = Instant::now();
    let (_foot, mut call, _) = cut_off(&hub).await;
    let failure = call.failure().await;
    assert_eq!(fate(&failure), (ErrorCode::FootGone, Outcome::Unknown));
    let waited = cut.elapsed();
    assert!(waited >= RESUME_GRACE && waited < RESUME_GRACE + Duration::from_secs(1), "{waited:?}");
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn d_nobody_comes_back_before_the_deadline() {
    let hub = Hub::new().await;
    let (_foot, mut call, _) = cut_off(&hub).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(call.runs().await);
    // The dispatcher fires this at the deadline.
    call.cancel.cancel();
    let stopped = Instant::now();
    assert_eq!(fate(&call.failure().await), (ErrorCode::FootGone, Outcome::Unknown));
    assert_eq!(stopped.elapsed(), Duration::ZERO);
    assert_eq!(hub.registry.counts().pending, 0);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_written_runs_after_the_resume_or_certainly_not() {
    for resumes in [true, false] {
        let hub = Hub::new().await;
        let mut foot = hub.foot("ada", "dev").await;
        foot.offer(1, &["build"]).await;
        // The pipe fills up: nobody reads it.
        let mut calls = Vec::new();
        for _ in 0..20 {
            calls.push(hub.call("ada", "build", json!({})).await);
        }
        hub.settles(|counts| counts.pending == 20).await;
        foot.to_hub.close_channel();
        hub.settles(|counts| counts.connections == 0).await;
        let mut seen = Vec::new();
        while let Heard::Message(message) = foot.hear().await {
            if let footbridge_shared::message::HubToFoot::Call(call) = message {
                seen.push(call);
            }
        }
        assert!(!seen.is_empty() && seen.len() < 20, "some were written: {}", seen.len());
        if resumes {
            let known: Vec<_> = seen.iter().map(|call| (call, InFlightState::Running)).collect();
            let (mut foot, _) = foot.resume(&hub, "ada", &known).await;
            let mut asked = seen.clone();
            while asked.len() < 20 {
                asked.push(hear!(foot, Call));
            }
            for call in &asked {
                foot.answer(call, "built").await;
                hear!(foot, Ack);
            }
            for call in &mut calls {
                assert_eq!(call.text().await, "built");
            }
        } else {
            let mut fates = Vec::new();
            for call in &mut calls {
                fates.push(fate(&call.failure().await));
            }
            let certain = fates.iter().filter(|fate| **fate == (ErrorCode::FootUnavailable, Outcome::NotRun)).count();
            assert_eq!(certain, 20 - seen.len());
            assert_eq!(
                fates.iter().filter(|fate| **fate == (ErrorCode::FootGone, Outcome::Unknown)).count(),
                seen.len()
            );
        }
        drop(foot);
        hub.ends_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn work_whose_caller_left_meanwhile_is_stopped_on_resume() {
    let hub = Hub::new().await;
    let (foot, call, asked) = cut_off(&hub).await;
    drop(call);
    hub.settles(|counts| counts.pending == 0).await;
    let (mut foot, _) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Running)]).await;
    assert_eq!(hear!(foot, Cancel).call, asked.call);
    // A finished one is only forgotten.
    foot.to_hub.close_channel();
    hub.settles(|counts| counts.connections == 0).await;
    let (mut foot, _) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Done)]).await;
    assert_eq!(hear!(foot, Ack).call, asked.call);
    drop(foot);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_may_not_have_arrived_is_repeated() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let (mut known, mut unknown) =
        (hub.call("ada", "build", json!({})).await, hub.call("ada", "build", json!({})).await);
    let (first, second) = (hear!(foot, Call), hear!(foot, Call));
    known.cancel.cancel();
    unknown.cancel.cancel();
    hear!(foot, Cancel);
    hear!(foot, Cancel);
    foot.to_hub.close_channel();
    hub.settles(|counts| counts.connections == 0).await;
    let (mut foot, _) = foot.resume(&hub, "ada", &[(&first, InFlightState::Running)]).await;
    assert_eq!(hear!(foot, Cancel).call, first.call);
    let failure = unknown.failure().await;
    assert_eq!(fate(&failure), (ErrorCode::Cancelled, Outcome::NotRun), "the foot never saw it");
    let _ = second;
    foot.answer(&first, "finished after all").await;
    assert_eq!(known.text().await, "finished after all");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_the_last_one_is_not_resumed() {
    let hub = Hub::new().await;
    let (mut foot, mut call, asked) = cut_off(&hub).await;
    foot.session = Some(footbridge_shared::id::SessionId::parse("of-another-hub").unwrap());
    let (mut foot, welcome) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Running)]).await;
    assert!(!welcome.resumed);
    assert_eq!(fate(&call.failure().await), (ErrorCode::FootGone, Outcome::Unknown));
    assert_eq!(hear!(foot, Cancel).call, asked.call, "nobody waits for the work any more");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_was_looked_up_before_the_cut_is_certainly_not_run() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let tool = hub.tool("ada", "build").await.unwrap();
    drop(foot);
    hub.settles(|counts| counts.connections == 0).await;
    for _ in 0..2 {
        let failure = hub.call_tool("ada", tool.clone(), "{}").failure().await;
        assert_eq!(fate(&failure), (ErrorCode::FootUnavailable, Outcome::NotRun));
        // Away at first, then gone for good.
        hub.settles(|counts| counts.feet == 0).await;
    }
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn another_key_cannot_take_over_waiting_calls() {
    let hub = Hub::new().await;
    let (foot, mut call, asked) = cut_off(&hub).await;
    let mut thief = hub.dial(principal("ada"), super::harness::Identity::with_key("dev", "thief"));
    let session = foot.session.clone().unwrap();
    thief.say_hello(|hello| hello.resume = Some(footbridge_shared::message::Resume { session })).await;
    assert_eq!(hear!(thief, Error).code, ErrorCode::NameTaken);
    assert_eq!(thief.hear_close().await, 4409);
    let (mut foot, _) = foot.resume(&hub, "ada", &[(&asked, InFlightState::Running)]).await;
    foot.answer(&asked, "mine").await;
    assert_eq!(call.text().await, "mine");
}
