//! Names of feet: bound on first use, kept by the store, released by their owner.

use footbridge_shared::ErrorCode;
use serde_json::json;

use super::harness::{Hub, Identity, foot_name, hear, principal, subject};
use crate::domain::feet::{FootDirectory as _, FootState};
use crate::sources::feet::FeetConfig;

async fn is_taken(hub: &Hub, identity: Identity) -> bool {
    let mut foot = hub.dial(principal("ada"), identity);
    foot.say_hello(|_| {}).await;
    match foot.hear().await {
        super::harness::Heard::Message(footbridge_shared::message::HubToFoot::Welcome(_)) => false,
        super::harness::Heard::Message(footbridge_shared::message::HubToFoot::Error(error)) => {
            assert_eq!(error.code, ErrorCode::NameTaken);
            assert_eq!(foot.hear_close().await, 4409);
            true
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_belongs_to_the_key_that_used_it_first_until_it_is_released() {
    let hub = Hub::new().await;
    let (name, owner) = (foot_name("dev"), subject("ada"));
    let first = hub.foot("ada", "dev").await;
    assert!(is_taken(&hub, Identity::with_key("dev", "other")).await);
    drop(first);
    hub.settles(|counts| counts.feet == 0).await;
    assert!(is_taken(&hub, Identity::with_key("dev", "other")).await, "also while it is not here");
    let not_found = hub.registry.release(&hub.scope, &owner, &foot_name("nope")).await.unwrap_err();
    assert_eq!(not_found.code, ErrorCode::NotFound);

    let mut first = hub.foot("ada", "dev").await;
    first.offer(1, &["build"]).await;
    let mut call = hub.call("ada", "build", json!({})).await;
    hear!(first, Call);
    hub.registry.release(&hub.scope, &owner, &name).await.unwrap();
    assert!(hub.names("ada").await.is_empty(), "at once");
    assert_eq!(call.failure().await.code, ErrorCode::FootGone);
    assert_eq!(hear!(first, Error).code, ErrorCode::NameTaken);
    assert_eq!(first.hear_close().await, 4409, "so that it does not come back by itself");
    assert!(hub.registry.feet(&hub.scope, &owner).is_empty());
    assert!(!is_taken(&hub, Identity::with_key("dev", "other")).await);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn bindings_survive_the_hub() {
    let hub = Hub::new().await;
    drop(hub.foot("ada", "dev").await);
    let later = Hub::over(hub.store.clone(), FeetConfig::default()).await;
    let feet = later.registry.feet(&later.scope, &subject("ada"));
    assert_eq!((feet.len(), feet[0].state), (1, FootState::Offline));
    assert!(is_taken(&later, Identity::with_key("dev", "other")).await);
    assert!(!is_taken(&later, Identity::new("dev")).await);
}

#[tokio::test(start_paused = true)]
async fn what_another_hub_releases_is_released_here() {
    let hub = Hub::new().await;
    let other = Hub::over(hub.store.clone(), FeetConfig::default()).await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["build"]).await;
    other.settles(|_| !other.registry.list_all(&other.scope).is_empty()).await;
    other.registry.release(&other.scope, &subject("ada"), &foot_name("dev")).await.unwrap();
    assert_eq!(hear!(foot, Error).code, ErrorCode::NameTaken);
    assert_eq!(foot.hear_close().await, 4409);
    assert!(hub.registry.list_all(&hub.scope).is_empty());
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn one_key_may_serve_two_subjects_and_two_names() {
    let hub = Hub::new().await;
    let _one = hub.foot_as("ada", Identity::with_key("dev", "k"), |_| {}).await;
    let _two = hub.foot_as("ada", Identity::with_key("lab", "k"), |_| {}).await;
    let _three = hub.foot_as("bob", Identity::with_key("dev", "k"), |_| {}).await;
    assert_eq!(hub.registry.counts().connections, 3);
}
