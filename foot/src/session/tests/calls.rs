//! Calls over connections that come and go.

use footbridge_shared::limits::{Limits, MAX_RESULT_BYTES};
use serde_json::{Value, json};

use super::Foot;
use super::hub::{HUB_MS, Hub, call, soon};
use crate::config::FootConfig;
use crate::failure::Failure;
use crate::permissions::{Action, Permissions};
use crate::tools::{Arguments, CallContext, Plan, Tool, ToolOutput, raw};
use footbridge_shared::id::Subject;
use footbridge_shared::message::{Share, ToolEntry};

#[tokio::test]
async fn a_call_is_answered_with_its_origin() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call("c-1", "echo", &json!({"n": 12_345_678_901_234_567_890_u64})).await;
    let (said, result) = connection.answer().await;
    assert_eq!((said.as_str(), &result["origin"]), ("c-1: result", &json!("origin-of-c-1")));
    let structured = json!({"arguments": {"n": 12_345_678_901_234_567_890_u64}, "run": 1, "caller": "ada"});
    assert_eq!(result["structured"], structured);
    assert_eq!(result["content"][0]["text"], r#"{"n":12345678901234567890}"#);

    for (id, tool, arguments, expected) in [
        ("a", "echo_wait", json!({}), "a: invalid_arguments not_run"),
        ("b", "echo_fail", json!({}), "b: tool_failed completed"),
        ("c", "missing", json!({}), "c: unknown_tool not_run"),
        ("d", "echo_bytes", json!({"bytes": MAX_RESULT_BYTES}), "d: result_too_large completed"),
        ("e", "echo_bytes", json!({"bytes": 60_000}), "e: result"),
    ] {
        connection.call(id, tool, &arguments).await;
        assert_eq!(connection.answer().await.0, expected);
    }
}

#[tokio::test]
async fn a_foot_works_for_those_it_is_shared_with() {
    let bob = || Subject::parse("bob").unwrap();
    for (share, subject, expected) in [
        (Share::Owner, "ada", "c: result"),
        (Share::Owner, "bob", "c: unknown_tool not_run"),
        (Share::Subjects(vec![bob()]), "bob", "c: result"),
        (Share::Subjects(vec![bob()]), "ada", "c: result"),
        (Share::Subjects(vec![bob()]), "eve", "c: unknown_tool not_run"),
        (Share::Project, "eve", "c: result"),
    ] {
        let hub = Hub::new().await;
        let _foot = Foot::start_with(&hub, |config| FootConfig { share: share.clone(), ..config });
        let (mut connection, _) = hub.welcome(&json!({})).await;
        let mut message = call("c", "echo", &json!({}));
        message["caller"]["subject"] = json!(subject);
        connection.say(&message).await;
        assert_eq!(connection.answer().await.0, expected, "{share:?} {subject}");
    }
}

#[tokio::test]
async fn a_result_without_ack_is_sent_again_after_a_drop() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call("lost", "echo", &json!({})).await;
    connection.call("safe", "echo", &json!({})).await;
    let mut answers = [connection.answer().await.0, connection.answer().await.0];
    answers.sort();
    assert_eq!(answers, ["lost: result", "safe: result"]);
    connection.say(&json!({"type": "ack", "call": "safe"})).await;
    // Whoever answers this has read the ack.
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    connection.hear("pong").await;
    drop(connection);

    let (mut connection, hello) = hub.welcome(&json!({"resumed": true})).await;
    let in_flight = json!([{"call": "lost", "state": "done", "origin": "origin-of-lost"}]);
    assert_eq!((&hello["inFlight"], &hello["resume"]["session"]), (&in_flight, &json!("s-1")));
    let (said, result) = connection.answer().await;
    assert_eq!(said, "lost: result");
    let run = result["structured"]["run"].clone();
    // Asked for once more, it is answered from memory.
    connection.call("lost", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.1["structured"]["run"], run);
    connection.say(&json!({"type": "ack", "call": "lost"})).await;
    connection.call("next", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.1["structured"]["run"], 3, "nothing ran twice");
}

#[tokio::test]
async fn work_goes_on_while_the_hub_is_away() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call("c", "echo_wait", &json!({"ms": 50})).await;
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    connection.hear("pong").await;
    drop(connection);
    let (mut connection, hello) = hub.welcome(&json!({"resumed": true})).await;
    assert_eq!(hello["inFlight"][0]["call"], "c", "running or done, the hub is told");
    // The hub is not sure that the foot ever saw the call.
    connection.call("c", "echo_wait", &json!({"ms": 50})).await;
    let (said, result) = connection.answer().await;
    assert_eq!((said.as_str(), &result["structured"]["run"]), ("c: result", &json!(1)));
}

#[tokio::test]
async fn a_keyed_call_is_never_run_twice() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let keyed = |digest: &str| {
        let mut message = call("k", "echo_wait", &json!({"ms": 30}));
        (message["keyed"], message["digest"]) = (json!(true), json!(digest));
        message
    };
    connection.say(&keyed("d-1")).await;
    connection.say(&keyed("d-1")).await;
    connection.say(&keyed("d-2")).await;
    assert_eq!(connection.answer().await.0, "k: id_conflict not_run");
    assert_eq!(connection.answer().await.0, "k: result");
    connection.say(&json!({"type": "ack", "call": "k"})).await;
    connection.say(&keyed("d-1")).await;
    assert_eq!(connection.answer().await.0, "k: result_expired completed");
    connection.call("next", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.1["structured"]["run"], 2);
}

#[tokio::test]
async fn cancel_stops_a_call_wherever_it_is() {
    let hub = Hub::new().await;
    let _foot = Foot::start_with(&hub, |config| FootConfig { max_concurrent: 1, ..config });
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let cancel = |id: &str| json!({"type": "cancel", "call": id, "reason": "nobody waits"});
    connection.say(&cancel("early")).await;
    connection.call("early", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.0, "early: cancelled not_run");
    connection.call("runs", "echo_wait", &json!({"ms": 60_000})).await;
    connection.call("waits", "echo", &json!({})).await;
    connection.say(&cancel("waits")).await;
    assert_eq!(connection.answer().await.0, "waits: cancelled not_run");
    connection.say(&cancel("runs")).await;
    assert_eq!(connection.answer().await.0, "runs: cancelled unknown");
}

#[tokio::test]
async fn time_in_the_socket_counts() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let ping = connection.hear_any().await;
    assert_eq!(ping["type"], "ping", "the first thing is to learn the hub's clock");
    connection.pong(&ping, HUB_MS).await;
    let sent = |id: &str, ago: u64, deadline: u64| {
        let mut message = call(id, "echo_wait", &json!({"ms": 60_000}));
        (message["sentMs"], message["deadlineMs"]) = (json!(HUB_MS - ago), json!(deadline));
        message
    };
    connection.say(&sent("late", 30_000, 10_000)).await;
    assert_eq!(connection.answer().await.0, "late: deadline_exceeded not_run");
    connection.say(&sent("short", 30_000, 30_300)).await;
    assert_eq!(connection.answer().await.0, "short: deadline_exceeded unknown", "what was left, and no more");
}

#[tokio::test]
async fn a_tool_that_shows_no_life_is_stopped() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let idle = |id: &str, arguments: &Value| {
        let mut message = call(id, "echo_wait", arguments);
        message["idleMs"] = json!(200);
        message
    };
    connection.say(&idle("alive", &json!({"ms": 700, "progressMs": 20}))).await;
    assert_eq!(connection.hear("progress").await["message"], "waiting");
    assert_eq!(connection.answer().await.0, "alive: result");
    connection.say(&idle("dead", &json!({"ms": 60_000}))).await;
    assert_eq!(connection.answer().await.0, "dead: deadline_exceeded unknown");
}

#[tokio::test]
async fn a_full_foot_says_so() {
    let hub = Hub::new().await;
    let _foot = Foot::start_with(&hub, |config| FootConfig { max_concurrent: 1, max_queued: 1, ..config });
    let (mut connection, hello) = hub.welcome(&json!({})).await;
    assert_eq!(hello["maxConcurrent"], 1);
    for id in ["runs", "waits"] {
        connection.call(id, "echo_wait", &json!({"ms": 60_000})).await;
    }
    connection.call("busy", "echo", &json!({})).await;
    let (said, failure) = connection.answer().await;
    assert_eq!((said.as_str(), &failure["retryable"]), ("busy: foot_busy not_run", &json!(true)));
    assert!(failure["retryAfterMs"].as_u64().is_some_and(|ms| ms > 0));
}

#[tokio::test]
async fn what_waited_while_the_grace_ran_out_does_not_run() {
    let hub = Hub::new().await;
    let _foot = Foot::start_with(&hub, |config| FootConfig { max_concurrent: 1, ..config });
    let limits = Limits { resume_grace_ms: 0, ..Limits::default() };
    let (mut connection, _) = hub.welcome(&json!({"limits": limits})).await;
    connection.call("runs", "echo_wait", &json!({"ms": 60_000})).await;
    connection.call("waits", "echo", &json!({})).await;
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    connection.hear("pong").await;
    drop(connection);
    // This hub has never heard of the session.
    let (mut connection, _) = hub.welcome(&json!({"session": "s-2", "resumed": false})).await;
    connection.say(&json!({"type": "cancel", "call": "runs", "reason": "nobody waits"})).await;
    assert_eq!(connection.answer().await.0, "runs: cancelled unknown");
    connection.call("next", "echo", &json!({})).await;
    let (said, result) = connection.answer().await;
    assert_eq!((said.as_str(), &result["structured"]["run"]), ("next: result", &json!(2)));
}

/// Changes something until it is told to stop, and says that it was.
struct Endless(tokio::sync::mpsc::UnboundedSender<()>);

#[async_trait::async_trait]
impl Tool for Endless {
    fn entry(&self) -> ToolEntry {
        ToolEntry::new("endless", "", raw(&json!({"type": "object"})))
    }

    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, _: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let stopped = self.0.clone();
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            ctx.cancelled().await;
            stopped.send(()).unwrap();
            ctx.check().map(|()| ToolOutput::text(""))
        }))
    }
}

#[tokio::test]
async fn work_is_ended_at_its_deadline_while_the_hub_is_away() {
    let hub = Hub::new().await;
    let foot = Foot::start(&hub);
    let (sender, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    foot.tools.replace(vec![std::sync::Arc::new(Endless(sender))], &Permissions::for_tests());
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let mut message = call("c", "endless", &json!({}));
    message["deadlineMs"] = json!(400);
    connection.say(&message).await;
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    connection.hear("pong").await;
    drop(connection);
    soon(stopped.recv()).await.expect("nobody but the foot itself can have ended it");
    let (mut connection, hello) = hub.welcome(&json!({"resumed": true})).await;
    assert_eq!(hello["inFlight"][0]["call"], "c");
    assert_eq!(connection.answer().await.0, "c: deadline_exceeded unknown");
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_each_answered_once() {
    let hub = Hub::new().await;
    let _foot = Foot::start_with(&hub, |config| FootConfig { max_concurrent: 8, ..config });
    let (mut connection, _) = hub.welcome(&json!({})).await;
    for n in 0..1000 {
        connection.call(&format!("c-{n}"), "echo", &json!({})).await;
    }
    let mut answered = std::collections::HashSet::new();
    for _ in 0..1000 {
        let (said, _) = connection.answer().await;
        assert!(said.ends_with(": result"), "{said}");
        assert!(answered.insert(said));
    }
}
