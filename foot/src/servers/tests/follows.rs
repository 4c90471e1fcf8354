//! Resources that are followed.

use footbridge_mcp::Lifecycle;
use footbridge_shared::message::Caller;

use super::played::{Stage, played};
use super::*;
use crate::servers::follows::Following;
use crate::servers::router::For;

fn caller(session: &str) -> Caller {
    let client = super::Caller::client("ada", "2025-11-25", (!session.is_empty()).then_some(session)).client;
    Caller { subject: Subject::parse("ada").unwrap(), process: None, client: client.map(Box::new) }
}

/// Whether the server is asked; if so, it agrees.
fn follow(stage: &Stage, method: &str, session: &str) -> bool {
    let params = raw(&json!({"uri": "a:b"}));
    match stage.attached.follow(&format!("resources/{method}"), &params, &caller(session), &stage.tasks) {
        Following::Ask(begun) => {
            if let Some(begun) = begun {
                begun.keep();
            }
            true
        }
        Following::Done(done) => {
            done.unwrap();
            false
        }
    }
}

#[tokio::test]
async fn a_server_hears_of_the_last_who_ends_a_subscription() {
    let (stage, _server) = played(Lifecycle::Session, For::Everybody, None).await;
    for session in ["m-1", "m-1", "m-2"] {
        assert!(follow(&stage, "subscribe", session), "it answers itself");
    }
    assert!(!follow(&stage, "unsubscribe", "m-1"), "another one follows it");
    assert!(!follow(&stage, "unsubscribe", "m-3"), "who did not follow it ends nothing");
    assert!(follow(&stage, "unsubscribe", "m-2"));
    assert!(stage.attached.follows.is_empty());
    // Those without a session are not told from each other.
    for _ in 0..2 {
        follow(&stage, "subscribe", "");
    }
    assert_eq!([(), ()].map(|()| follow(&stage, "unsubscribe", "")), [false, true]);

    let params = raw(&json!({"uri": "a:b"}));
    drop(stage.attached.follow("resources/subscribe", &params, &caller("m-1"), &stage.tasks));
    assert!(stage.attached.follows.is_empty(), "it did not agree");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_at_a_server_without_sessions_is_a_request_that_is_made_again_when_it_breaks() {
    let (stage, mut server) = played(Lifecycle::Stateless, For::Everybody, None).await;
    for session in ["m-1", "m-2"] {
        assert!(!follow(&stage, "subscribe", session));
    }
    let first = server.next().await.unwrap();
    assert_eq!(
        (&first["method"], &first["params"]["notifications"]),
        (&json!("subscriptions/listen"), &json!({"resourceSubscriptions": ["a:b"]}))
    );
    server.answer(&first, json!({})).await;
    let second = server.next().await.unwrap();
    assert_eq!(second["params"], first["params"], "one request for both, and once more");

    assert!(!follow(&stage, "unsubscribe", "m-1"));
    assert!(!follow(&stage, "unsubscribe", "m-2"));
    assert!(!follow(&stage, "subscribe", "m-1"));
    // In either order: two tasks say it.
    let (mut cancelled, mut third) = (None, None);
    for _ in 0..2 {
        let message = server.next().await.unwrap();
        let place = if message["method"] == "notifications/cancelled" { &mut cancelled } else { &mut third };
        *place = Some(message);
    }
    assert_eq!(cancelled.unwrap()["params"]["requestId"], second["id"]);
    assert_eq!(third.as_ref().unwrap()["params"]["notifications"], first["params"]["notifications"]);
    assert!(!follow(&stage, "unsubscribe", "m-1"));
    assert_eq!(server.next().await.unwrap()["params"]["requestId"], third.unwrap()["id"], "and it is known which");
}

#[tokio::test(start_paused = true)]
async fn what_was_followed_is_followed_on_the_next_connection() {
    for (lifecycle, method) in
        [(Lifecycle::Session, "resources/subscribe"), (Lifecycle::Stateless, "subscriptions/listen")]
    {
        let (before, _server) = played(lifecycle, For::Everybody, None).await;
        follow(&before, "subscribe", "m-1");
        before.attached.give_up();
        let (after, mut server) = played(lifecycle, For::Everybody, Some(&before)).await;
        after.attached.follow_again(before.attached.follows.take(), &after.tasks);
        let request = server.next().await.unwrap();
        assert_eq!(request["method"], method);
        assert!(request["params"].to_string().contains("a:b"), "{request}");
        assert_eq!(follow(&after, "unsubscribe", "m-1"), lifecycle == Lifecycle::Session);
        assert!(after.attached.follows.is_empty());
    }
}

#[tokio::test]
async fn a_connection_on_which_something_is_followed_stays() {
    let (stage, _server) = played(Lifecycle::Session, For::Everybody, None).await;
    let pool = crate::servers::pool::Pool::default();
    let key = crate::servers::attached::Key::Subject(Subject::parse("ada").unwrap(), None);
    *pool.slot(&key).unwrap().0.lock().await = Some(stage.attached.clone());
    follow(&stage, "subscribe", "m-1");
    let hour = Duration::from_secs(60 * 60);
    let swept = |hours: u32| pool.sweep(crate::clock::Clock::boot(&*stage.clock) + hour * hours).len();
    assert_eq!((swept(23), swept(24)), (0, 1), "not for ever: clients go away without a word");
    *pool.slot(&key).unwrap().0.lock().await = Some(stage.attached.clone());
    follow(&stage, "unsubscribe", "m-1");
    assert_eq!(swept(1), 1);
}
