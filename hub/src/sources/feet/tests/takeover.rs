//! H16: one foot, two connections.

use std::time::Duration;

use footbridge_shared::ErrorCode;
use footbridge_shared::message::Share;
use serde_json::json;

use super::harness::{Heard, Hub, Identity, foot_name, hear, principal, subject, tool};
use crate::domain::feet::{FootDirectory as _, FootState};

#[tokio::test(start_paused = true)]
async fn a_late_close_removes_nothing_of_the_new_connection() {
    let hub = Hub::new().await;
    let mut old = hub.foot("ada", "dev-1").await;
    old.offer(1, &["disk_free"]).await;
    let before = hub.revision();
    let sees = async |what: &[&str]| assert_eq!(hub.names("ada").await, what, "in every moment");

    let mut new = hub.foot_as("ada", old.identity.restarted(), |_| {}).await;
    sees(&["dev_1__disk_free", "disk_free"]).await;
    new.offer(1, &["disk_free", "uptime"]).await;
    let all = ["dev_1__disk_free", "dev_1__uptime", "disk_free", "uptime"];
    sees(&all).await;

    hear!(old, Superseded);
    assert_eq!(old.hear_close().await, 4410);
    drop(old);
    hub.settles(|counts| counts.connections == 1).await;
    sees(&all).await;
    assert_eq!(hub.revision(), before + 1, "one change for the takeover, not more");

    for name in ["disk_free", "uptime"] {
        let mut call = hub.call("ada", name, json!({})).await;
        let asked = hear!(new, Call);
        new.answer(&asked, "from the new one").await;
        assert_eq!(call.text().await, "from the new one");
        hear!(new, Ack);
    }
    drop(new);
    hub.ends_clean().await;
}

/// A network brought the `hello` of a process that is long gone, or that of a connection which its process has given up.
#[tokio::test(start_paused = true)]
async fn a_hello_that_comes_late_takes_nothing_over() {
    let hub = Hub::new().await;
    let mut here = hub.foot("ada", "dev").await;
    here.offer(1, &["build"]).await;
    for past in [here.identity.restarted(), here.identity.clone()] {
        let mut late = hub.dial(principal("ada"), past);
        late.deaf = true;
        late.say_hello(|_| {}).await;
        hub.settles(|counts| counts.connections == 2).await;
        let mut call = hub.call("ada", "build", json!({})).await;
        let asked = hear!(here, Call);
        here.answer(&asked, "from the one that is here").await;
        assert_eq!(call.text().await, "from the one that is here");
        hear!(here, Ack);
        assert_eq!(hear!(late, Error).code, ErrorCode::Timeout);
        assert_eq!(late.hear_close().await, 4408);
    }
    drop(here);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_old_connection_still_says_counts_for_nothing() {
    let hub = Hub::new().await;
    let mut old = hub.foot("ada", "dev").await;
    old.offer(1, &["build"]).await;
    let mut new = hub.foot_as("ada", old.identity.restarted(), |_| {}).await;
    new.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(new, Call);
    old.answer(&asked, "forged by the past").await;
    old.say_text(r#"{"type":"tools","revision":9,"upsert":[],"remove":["build"]}"#).await;
    old.say_text(r#"{"type":"bye","reason":"late"}"#).await;
    assert_eq!(old.hear_close().await, 4410);
    assert!(call.runs().await);
    assert_eq!(hub.names("ada").await, ["build", "dev__build"]);
    new.answer(&asked, "true").await;
    assert_eq!(call.text().await, "true");
}

#[tokio::test(start_paused = true)]
async fn the_first_word_of_the_new_process_replaces_what_it_inherited() {
    let hub = Hub::new().await;
    let mut old = hub.foot("ada", "dev").await;
    old.change(1, json!([tool("build"), tool("deploy")]), &[]).await;
    let build = hub.tool("ada", "build").await.unwrap();
    let mut new = hub.foot_as("ada", old.identity.restarted(), |_| {}).await;
    assert_eq!(hub.names("ada").await, ["build", "deploy", "dev__build", "dev__deploy"]);
    // Revisions count from the start of a process.
    new.offer(1, &["build"]).await;
    assert_eq!(hub.names("ada").await, ["build", "dev__build"]);
    assert!(std::sync::Arc::ptr_eq(&build, &hub.tool("ada", "build").await.unwrap()), "an equal tool is the same tool");
}

#[tokio::test(start_paused = true)]
async fn a_new_process_that_offers_nothing_loses_what_it_inherited() {
    let hub = Hub::new().await;
    let mut old = hub.foot("ada", "dev").await;
    old.offer(1, &["build"]).await;
    let _new = hub.foot_as("ada", old.identity.restarted(), |_| {}).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(hub.names("ada").await, ["build", "dev__build"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(hub.names("ada").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_shares_less_shares_less_at_once() {
    let hub = Hub::new().await;
    let mut old = hub.foot_as("ada", Identity::new("dev"), |hello| hello.share = Share::Project).await;
    old.offer(1, &["build"]).await;
    assert_eq!(hub.names("bob").await, ["build", "dev__build"]);
    let _new = hub.foot_as("ada", old.identity.restarted(), |_| {}).await;
    assert!(hub.names("bob").await.is_empty());
    assert_eq!(hub.names("ada").await, ["build", "dev__build"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_process_on_a_new_socket_is_no_takeover() {
    let hub = Hub::new().await;
    let mut old = hub.foot("ada", "dev").await;
    old.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    let asked = hear!(old, Call);
    // The hub has not noticed that the old socket is dead.
    let (mut new, welcome) =
        old.resume(&hub, "ada", &[(&asked, footbridge_shared::message::InFlightState::Running)]).await;
    assert!(welcome.resumed);
    assert_eq!(Some(&welcome.session), old.session.as_ref());
    match old.hear().await {
        Heard::Closed(close) => assert_eq!(close.code, 1000, "nothing that is final for the process"),
        other => panic!("{other:?}"),
    }
    new.answer(&asked, "built").await;
    assert_eq!(call.text().await, "built");
    let feet = hub.registry.feet(&hub.scope, &subject("ada"));
    assert_eq!((feet.len(), &feet[0].name, feet[0].state), (1, &foot_name("dev"), FootState::Connected));
}
