//! Who gets a seat, and who does not.

use footbridge_shared::ErrorCode;
use footbridge_shared::id::{ProjectName, TenantName};
use footbridge_shared::limits::{HELLO_TIMEOUT, Limits};
use footbridge_shared::message::{Bye, Hello, Ping};
use tokio::time::Instant;

use super::harness::{Heard, Hub, Identity, TestFoot, hear, principal};
use crate::domain::principal::{Principal, Reach, Role};

/// Says a spoiled hello; answers the error's code and the close's.
async fn refusal(mut foot: TestFoot, spoil: impl FnOnce(&mut Hello)) -> (ErrorCode, u16) {
    foot.say_hello(spoil).await;
    let error = hear!(foot, Error);
    (error.code, foot.hear_close().await)
}

#[tokio::test(start_paused = true)]
async fn a_foot_that_proves_itself_is_welcome() {
    let hub = Hub::new().await;
    let mut foot = hub.dial(principal("ada"), Identity::new("dev"));
    let welcome = foot.greet(|_| {}).await;
    assert_eq!(welcome.owner.as_str(), "ada");
    assert_eq!((welcome.node.as_str(), welcome.resumed, &welcome.limits), ("hub", false, &Limits::default()));
    assert_eq!(welcome.shared_name, None);
    foot.say(Bye { reason: "done".to_owned() }).await;
    assert_eq!(foot.hear_close().await, 1000);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_right_is_refused_with_its_reason() {
    let hub = Hub::new().await;
    let dial = |principal: Principal| hub.dial(principal, Identity::new("dev"));
    let project = |name: &str| ProjectName::parse(name).unwrap();

    let wrong_key = Identity::with_key("dev", "another");
    let stolen_id = wrong_key.hello("x").foot.id;
    assert_eq!(refusal(dial(principal("ada")), |hello| hello.foot.id = stolen_id).await, (ErrorCode::BadProof, 4403));
    assert_eq!(refusal(dial(principal("ada")), |hello| hello.proof.clear()).await, (ErrorCode::BadProof, 4403));
    let replayed = Identity::new("dev").hello("the nonce of another connection").proof;
    assert_eq!(refusal(dial(principal("ada")), |hello| hello.proof = replayed).await, (ErrorCode::BadProof, 4403));

    let unknown = (ErrorCode::UnknownScope, 4403);
    assert_eq!(refusal(dial(principal("ada")), |hello| hello.project = project("nowhere")).await, unknown);
    assert_eq!(refusal(dial(principal("ada")), |hello| hello.project = project("_tenant")).await, unknown);
    let elsewhere = TenantName::parse("globex").unwrap();
    assert_eq!(refusal(dial(principal("ada")), |hello| hello.tenant = elsewhere).await, unknown);
    let narrow = Reach { projects: Some(vec![project("other")]), ..principal("ada").reach };
    assert_eq!(refusal(dial(Principal { reach: narrow, ..principal("ada") }), |_| {}).await, unknown);

    let viewer = Principal { roles: vec![Role::Viewer], ..principal("ada") };
    assert_eq!(refusal(dial(viewer), |_| {}).await, (ErrorCode::Forbidden, 4401));

    assert_eq!(hub.registry.metrics().refused, 8);
    assert!(hub.registry.list_all(&hub.scope).is_empty(), "a refused foot binds no name");
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed() {
    let hub = Hub::new().await;
    let mut foot = hub.dial(principal("ada"), Identity::new("dev"));
    let started = Instant::now();
    hear!(foot, Challenge);
    assert_eq!(hear!(foot, Error).code, ErrorCode::Timeout);
    assert_eq!(foot.hear_close().await, 4408);
    assert_eq!(started.elapsed(), HELLO_TIMEOUT);
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn noise_before_hello_is_borne_with_twice() {
    let hub = Hub::new().await;
    let mut foot = hub.dial(principal("ada"), Identity::new("dev"));
    hear!(foot, Challenge);
    foot.say(Ping { sent_ms: 1 }).await;
    foot.say_text(r#"{"type":"fromTheFuture"}"#).await;
    for noise in ["{", r#"{"type":"bye","reason":"too early"}"#, "[]"] {
        foot.say_text(noise).await;
        assert_eq!(hear!(foot, Error).code, ErrorCode::BadFrame, "{noise}");
    }
    assert_eq!(foot.hear_close().await, 4400);
    let metrics = hub.registry.metrics();
    assert_eq!((metrics.unknown_types, metrics.bad_frames), (1, 3));
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_ends_during_the_greeting_gets_nobody_in() {
    let hub = Hub::new().await;
    let token = principal("ada");
    token.ended.cancel();
    let mut foot = hub.dial(token, Identity::new("dev"));
    loop {
        match foot.hear().await {
            Heard::Message(_) => {}
            Heard::Closed(close) => break assert_eq!(close.code, 4401),
            Heard::End => panic!("no close"),
        }
    }
    hub.ends_clean().await;
}
