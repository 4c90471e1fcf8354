//! Calls with a key: their ids are their own, and a result is acknowledged when it is safe, never before.

use std::time::Duration;

use footbridge_shared::id::{CallId, ToolName};
use footbridge_shared::message::{InFlight, InFlightState, Resume};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::json;

use super::harness::{Heard, Hub, Identity, TestFoot, foot_name, hear, subject};
use crate::domain::journal::{FootRecall as _, FootTarget, Recall};

/// The next thing a foot hears within a second; `None`: nothing.
async fn hears(foot: &mut TestFoot) -> Option<Heard> {
    tokio::time::timeout(Duration::from_secs(1), foot.hear()).await.ok()
}

fn id(text: &str) -> CallId {
    CallId::parse(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_keyed_call_is_known_by_its_own_id_and_acknowledged_once_stored() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let (mut call, keyed) = hub.keyed_call("ada", "build", "k1").await;
    let asked = hear!(foot, Call);
    assert_eq!((asked.call.as_str(), asked.keyed, asked.digest.as_deref()), ("k1", true, Some("digest of k1")));
    foot.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
    assert!(hears(&mut foot).await.is_none(), "not safe yet");
    keyed.take_receipt().unwrap()();
    assert_eq!(hear!(foot, Ack).call, asked.call);
}

#[tokio::test(start_paused = true)]
async fn what_the_hub_itself_says_of_a_call_has_no_receipt() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let (mut call, keyed) = hub.keyed_call("ada", "build", "k1").await;
    hear!(foot, Call);
    drop(foot);
    assert_eq!(call.failure().await.code, ErrorCode::FootGone);
    assert!(keyed.take_receipt().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_late_result_is_stored_and_then_acknowledged_and_kept_by_the_foot_if_it_cannot_be() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    hub.late.wants.lock().extend([(id("k1"), true), (id("k2"), false)]);
    let mut asked = Vec::new();
    for key in ["k1", "k2"] {
        let (call, _) = hub.keyed_call("ada", "build", key).await;
        asked.push(hear!(foot, Call));
        // The hub that asked is not there any more.
        drop(call);
        hear!(foot, Cancel);
    }
    foot.answer(&asked[1], "second").await;
    assert!(hears(&mut foot).await.is_none());
    foot.answer(&asked[0], "first").await;
    assert_eq!(hear!(foot, Ack).call, asked[0].call);
    assert_eq!(*hub.late.kept.lock(), [(id("k1"), "first".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn keyed_work_that_nobody_waits_for_goes_on_across_a_resume() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let identity = foot.identity.clone();
    let session = foot.session.clone().unwrap();
    drop(foot);
    hub.settles(|counts| counts.connections == 0).await;
    let mut foot = hub
        .foot_as("ada", identity, |hello| {
            hello.resume = Some(Resume { session });
            let known = |call: &str, state| InFlight {
                call: id(call),
                digest: Some("d".to_owned()),
                state,
                origin: "hub".to_owned(),
            };
            hello.in_flight = vec![known("k1", InFlightState::Running), known("k2", InFlightState::Done)];
        })
        .await;
    assert!(hears(&mut foot).await.is_none(), "neither cancelled nor acknowledged");
}

#[tokio::test(start_paused = true)]
async fn a_foot_is_recalled_by_its_key_and_not_by_its_name() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    let target = hub.tool("ada", "dev__build").await.unwrap().handler.runs_on().unwrap();
    assert_eq!(
        (target.owner.clone(), target.foot.clone(), target.local.as_str()),
        (subject("ada"), foot_name("dev"), "build")
    );
    let public = ToolName::parse("dev__build").unwrap();
    let recall = |target: &FootTarget| hub.registry.recall(&hub.scope, target, &public);
    // Whether the tool is still offered makes no difference.
    foot.change(2, json!([]), &["build"]).await;
    let Recall::Here(tool) = recall(&target) else { panic!("it is here") };
    assert_eq!(tool.handler.runs_on().unwrap(), target);
    let mut call = hub.call_tool("ada", tool, "{}");
    assert_eq!(hear!(foot, Call).tool, "build");
    hub.registry.stop(&hub.scope, &target, &id("k1"));
    assert_eq!(hear!(foot, Cancel).call, id("k1"));
    drop(foot);
    hub.settles(|counts| counts.connections == 0).await;
    assert!(matches!(recall(&target), Recall::Away));
    assert_eq!(call.failure().await.outcome, Outcome::Unknown);
    hub.registry.release(&hub.scope, &subject("ada"), &foot_name("dev")).await.unwrap();
    assert!(matches!(recall(&target), Recall::Away), "nobody has the name now");
    let _other = hub.foot_as("ada", Identity::with_key("dev", "another"), |_| {}).await;
    assert!(matches!(recall(&target), Recall::Replaced));
}
