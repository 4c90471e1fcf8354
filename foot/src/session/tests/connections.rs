//! How connections begin, live and end.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
use footbridge_shared::limits::Limits;
use serde_json::{Value, json};

use super::hub::{HUB_MS, Hub};
use super::{Foot, config};
use crate::config::TokenSource;
use crate::error::{Exit, FootError};
use crate::identity::Identity;
use crate::runner::Runner;
use crate::session::{Probe, probe};

fn fast_heartbeat() -> Value {
    json!({"limits": Limits { heartbeat_ms: 60, ..Limits::default() }})
}

#[tokio::test]
async fn a_foot_proves_its_id_and_offers_its_tools() {
    let hub = Hub::new().await;
    let foot = Foot::start_with(&hub, |config| crate::FootConfig { runner: Runner::Real, ..config });
    let (mut connection, hello) = hub.welcome(&json!({})).await;
    assert_eq!((connection.path.as_str(), connection.authorization.as_str()), ("/base/ws/foot", "Bearer fbt_test"));

    let bytes = |text: &Value| URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
    let key = VerifyingKey::from_bytes(&bytes(&hello["foot"]["id"]).try_into().unwrap()).unwrap();
    let proof = Signature::from_slice(&bytes(&hello["proof"])).unwrap();
    key.verify(b"footbridge.v1\nn-1", &proof).unwrap();
    assert_eq!((&hello["foot"]["name"], &hello["share"]), (&json!("work"), &json!("owner")));
    assert_eq!((&hello["tenant"], &hello["project"]), (&json!("acme"), &json!("web")));
    assert_eq!((hello.get("resume"), &hello["inFlight"]), (None, &json!([])));
    let work = foot.dir.path().canonicalize().unwrap().join("Work");
    assert_eq!(hello["foot"]["cwd"], work.display().to_string());

    let tools = connection.hear("tools").await;
    assert_eq!((&tools["revision"], &tools["remove"]), (&json!(1), &json!([])));
    let offered: Vec<(&str, bool)> = tools["upsert"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            assert!(tool["labels"].as_array().unwrap().contains(&json!("read-only")));
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            (tool["name"].as_str().unwrap(), tool["primary"].as_bool().unwrap())
        })
        .collect();
    let expected =
        [("file_find", false), ("file_grep", true), ("file_list", true), ("file_read", true), ("file_stat", false)];
    assert_eq!(offered, expected);
}

#[tokio::test]
async fn changed_tools_are_told_and_rejected_ones_harm_nobody() {
    let hub = Hub::new().await;
    let foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.hear("tools").await;
    let rejected = json!([{"tool": "echo", "code": "a_code_of_tomorrow", "message": "no"}]);
    connection.say(&json!({"type": "toolsAck", "revision": 1, "rejected": rejected})).await;

    foot.tools.replace(vec![], &crate::permissions::Permissions::for_tests());
    let change = connection.hear("tools").await;
    assert_eq!((&change["revision"], &change["upsert"]), (&json!(2), &json!([])));
    assert_eq!(change["remove"], json!(["echo", "echo_bytes", "echo_fail", "echo_text", "echo_wait"]));
    connection.call("c", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.0, "c: unknown_tool not_run");
}

#[tokio::test]
async fn a_silent_hub_is_left_and_its_session_resumed() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut silent, first) = hub.welcome(&fast_heartbeat()).await;
    assert_eq!(silent.closed().await, None, "it reads, and never says a word");
    let (mut connection, second) = hub.welcome(&json!({"resumed": true})).await;
    assert_eq!(second["resume"], json!({"session": "s-1"}));
    assert_eq!(second["foot"]["instance"], first["foot"]["instance"]);
    assert_eq!(connection.hear("tools").await["revision"], 2, "everything is told again, under a new number");
}

#[tokio::test]
async fn heartbeats_go_both_ways_while_a_call_runs() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    // Silence of a second is the end; there is a heartbeat every tenth of one.
    let limits = Limits { heartbeat_ms: 100, heartbeat_misses: 10, ..Limits::default() };
    let (mut connection, _) = hub.welcome(&json!({"limits": limits})).await;
    connection.call("slow", "echo_wait", &json!({"ms": 60_000})).await;
    for beat in 1..=15 {
        connection.hear("ping").await;
        connection.say(&json!({"type": "ping", "sentMs": beat})).await;
        assert_eq!(connection.hear("pong").await["echoMs"], beat);
    }
    connection.call("quick", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.0, "quick: result");
}

#[tokio::test]
async fn some_ends_are_final() {
    for (code, expected) in [
        (4401, "the hub does not accept the token: so it is [unauthorized]"),
        (4403, "the hub refuses this foot: so it is [forbidden]"),
        (
            4409,
            "the name `work` belongs to another foot: so it is; choose another with --name, or release it [name_taken]",
        ),
    ] {
        let hub = Hub::new().await;
        let mut foot = Foot::start(&hub);
        let (mut connection, _) = hub.welcome(&json!({})).await;
        connection.close(code, "so it is").await;
        assert_eq!(foot.ended().await.unwrap_err().to_string(), expected);
    }
    for superseded_by_close in [true, false] {
        let hub = Hub::new().await;
        let mut foot = Foot::start(&hub);
        let (mut connection, _) = hub.welcome(&json!({})).await;
        connection.call("c", "echo_wait", &json!({"ms": 60_000})).await;
        if superseded_by_close {
            connection.close(4410, "").await;
        } else {
            connection.say(&json!({"type": "superseded"})).await;
        }
        assert_eq!(foot.ended().await.unwrap(), Exit::Superseded);
    }
}

#[tokio::test]
async fn an_error_before_a_lost_close_code_counts_and_an_old_one_does_not() {
    let hub = Hub::new().await;
    let mut foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.say(&json!({"type": "error", "code": "unauthorized", "message": "an old story"})).await;
    connection.say(&json!({"type": "ping", "sentMs": 1})).await;
    connection.hear("pong").await;
    drop(connection);
    let mut connection = hub.accept().await;
    connection.say(&json!({"type": "challenge", "nonce": "n"})).await;
    connection.hear("hello").await;
    connection.say(&json!({"type": "error", "code": "name_taken", "message": "by another"})).await;
    drop(connection);
    assert!(matches!(foot.ended().await, Err(FootError::NameTaken { .. })));
}

#[tokio::test]
async fn a_token_file_that_is_exchanged_may_be_away_for_a_moment() {
    let hub = Hub::new().await;
    let tokens = tempfile::tempdir().unwrap();
    let file = tokens.path().join("token");
    std::fs::write(&file, "first").unwrap();
    let source = TokenSource::File(file.clone());
    let _foot = Foot::start_with(&hub, |config| crate::FootConfig { token: source, ..config });
    let (connection, _) = hub.welcome(&json!({})).await;
    assert_eq!(connection.authorization, "Bearer first");
    std::fs::remove_file(&file).unwrap();
    drop(connection);
    let came_back = hub.next_stream();
    assert!(tokio::time::timeout(Duration::from_millis(400), came_back).await.is_err(), "it has nothing to show");
    std::fs::write(&file, "second").unwrap();
    let (connection, _) = hub.welcome(&json!({})).await;
    assert_eq!(connection.authorization, "Bearer second");
}

#[tokio::test]
async fn a_refused_upgrade_is_final_or_asks_for_patience() {
    let problem = r#"{"title": "t", "detail": "the token expired"}"#;
    for (head, code, text) in [
        ("401 Unauthorized", 3, "the token expired"),
        ("403 Forbidden", 4, "the token expired"),
        ("400 Bad Request", 7, "footbridge.v1"),
    ] {
        let hub = Hub::new().await;
        let mut foot = Foot::start(&hub);
        hub.refuse(head, problem).await;
        let error = foot.ended().await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    hub.refuse("404 Not Found", "").await;
    hub.refuse("503 Service Unavailable\r\nretry-after: 1", "").await;
    let refused = Instant::now();
    hub.refuse("429 Too Many Requests", "").await;
    assert!(refused.elapsed() >= Duration::from_secs(1), "it came back after {:?}", refused.elapsed());
    hub.welcome(&json!({})).await;
}

#[tokio::test]
async fn a_hub_without_our_protocol_is_not_tried_again() {
    let hub = Hub::new().await;
    let mut foot = Foot::start(&hub);
    hub.accept_without_protocol().await;
    assert!(matches!(foot.ended().await, Err(FootError::Version { .. })));
}

#[tokio::test]
async fn a_hub_that_does_not_read_is_left() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    for n in 0..400 {
        connection.call(&format!("c-{n}"), "echo_bytes", &json!({"bytes": 60_000})).await;
    }
    // From here on tokio's time, on which writes are measured, passes whenever both sides have nothing left to do.
    let real = Instant::now();
    tokio::time::pause();
    let again = hub.next_stream().await;
    tokio::time::resume();
    drop((again, connection));
    assert!(real.elapsed() < Duration::from_secs(20), "it was the heartbeat, not the write, that noticed");
}

#[tokio::test]
async fn a_draining_hub_is_left_when_its_calls_are_done() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call("c", "echo_wait", &json!({"ms": 100})).await;
    connection.say(&json!({"type": "draining", "reconnectAfterMs": 1, "tryForMs": 60_000})).await;
    assert_eq!(connection.answer().await.0, "c: result", "what runs is answered here");
    connection.say(&json!({"type": "ack", "call": "c"})).await;
    assert_eq!(connection.closed().await, Some(1000));
    let (_, hello) = hub.welcome(&json!({})).await;
    assert_eq!(hello["resume"]["session"], "s-1");
}

#[tokio::test]
async fn three_malformed_frames_end_a_connection_and_unknown_ones_do_not() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    for _ in 0..5 {
        connection.say(&json!({"type": "novelty", "of": ["tomorrow"]})).await;
    }
    connection.say_text("{\"type\": \"call\"}").await;
    assert_eq!(connection.hear("error").await["code"], "bad_frame");
    connection.say_text(&format!("{{\"type\": \"ping\", \"pad\": \"{}\"}}", "x".repeat(70_000))).await;
    assert_eq!(connection.hear("error").await["code"], "bad_frame");
    connection.call("c", "echo", &json!({})).await;
    assert_eq!(connection.answer().await.0, "c: result", "two are forgiven");
    connection.say_binary(vec![0; 20]).await;
    assert_eq!(connection.closed().await, Some(4400));
    hub.welcome(&json!({})).await;
}

#[tokio::test]
async fn a_foot_that_is_stopped_answers_and_says_good_bye() {
    let hub = Hub::new().await;
    let mut foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    connection.call("c", "echo_wait", &json!({"ms": 60_000})).await;
    connection.call("marker", "echo", &json!({})).await;
    connection.answer().await;
    foot.shutdown.cancel();
    assert_eq!(connection.answer().await.0, "c: cancelled unknown");
    connection.hear("bye").await;
    assert_eq!(connection.closed().await, Some(1000));
    assert_eq!(foot.ended().await.unwrap(), Exit::Stopped);
}

#[tokio::test]
async fn a_foot_can_be_stopped_while_there_is_no_hub() {
    let hub = Hub::new().await;
    let mut foot = Foot::start(&hub);
    drop(hub);
    foot.shutdown.cancel();
    assert_eq!(foot.ended().await.unwrap(), Exit::Stopped);
}

#[tokio::test]
async fn a_request_to_an_mcp_server_is_answered_though_there_is_none() {
    let hub = Hub::new().await;
    let _foot = Foot::start(&hub);
    let (mut connection, _) = hub.welcome(&json!({})).await;
    let request = json!({"type": "request", "call": "r", "server": "notes", "method": "resources/list", "params": {},
        "deadlineMs": 1000, "sentMs": HUB_MS, "caller": {"subject": "ada"}});
    connection.say(&request).await;
    let response = connection.hear("response").await;
    assert_eq!((&response["call"], &response["error"]["code"]), (&json!("r"), &json!(-32603)));
}

#[tokio::test]
async fn a_check_says_what_the_hub_says_and_disturbs_nobody() {
    let hub = Hub::new().await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&hub, dir.path());
    let identity = Identity::open(&config).unwrap();
    let as_hub = async {
        let (mut connection, _) = hub.welcome(&json!({})).await;
        connection.hear("bye").await;
        let mut shy = hub.accept().await;
        shy.say(&json!({"type": "challenge", "nonce": "n"})).await;
        shy.closed().await
    };
    let as_foot = async {
        let first = probe(&config, &identity).await.unwrap();
        // The first identity is still held: as if a foot ran.
        (first, probe(&config, &Identity::open(&config).unwrap()).await.unwrap())
    };
    let (_, (first, second)) = tokio::join!(as_hub, as_foot);
    assert!(matches!(first, Probe::Welcome { owner, .. } if owner.as_str() == "ada"));
    assert_eq!(second, Probe::InUse);
    drop(hub);
    assert!(matches!(probe(&config, &identity).await.unwrap(), Probe::Unreachable(_)));
}

#[tokio::test]
async fn a_check_beside_another_foot_of_the_name_says_so() {
    let hub = Hub::new().await;
    let dir = tempfile::tempdir().unwrap();
    let config = config(&hub, dir.path());
    let identity = Identity::open(&config).unwrap();
    let as_hub = async {
        let mut connection = hub.accept().await;
        connection.say(&json!({"type": "challenge", "nonce": "n"})).await;
        connection.hear("hello").await;
        connection.say(&json!({"type": "error", "code": "name_taken", "message": "by another"})).await;
        connection.close(4409, "by another").await;
    };
    let (_, probed) = tokio::join!(as_hub, probe(&config, &identity));
    assert_eq!(probed.unwrap(), Probe::NameTaken);
}
