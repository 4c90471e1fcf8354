//! Servers that come, go, change and fail.

use footbridge_shared::message::Request;
use footbridge_shared::{ErrorCode, Outcome};

use super::*;

#[tokio::test]
async fn a_server_that_ends_is_there_again_and_its_tools_never_left() {
    let place = Place::with(&[fake("s", "session", "session: shared")]).await;
    let before = place.state_for(&Caller::none("ada")).await;
    let failure = place.call("s__die", json!({})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ServerUnavailable, Outcome::Unknown));
    assert!(place.names().contains(&"s__state".to_owned()));
    let end = Instant::now() + PATIENCE;
    let after = loop {
        match place.call("s__state", json!({})).await {
            Ok(output) => break structured(Ok(output)),
            Err(failure) => {
                assert_eq!((failure.code, failure.outcome), (ErrorCode::ServerUnavailable, Outcome::NotRun));
                assert!(Instant::now() < end);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    assert_ne!(before["pid"], after["pid"]);
}

#[tokio::test]
async fn a_program_that_ends_over_a_question_is_asked_it_once() {
    let mut old = fake("s", "old", "session: shared");
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    if let Target::Program { env, .. } = &mut old.target {
        env.insert(fake::LOG.to_owned(), log.display().to_string());
    }
    let place = Place::with(&[old]).await;
    let started = || std::fs::read_to_string(&log).unwrap().lines().count();
    assert_eq!(started(), 2);
    place.call("s__die", json!({})).await.unwrap_err();
    place.state_for(&Caller::none("ada")).await;
    assert_eq!(started(), 3, "it was reached again");
}

#[tokio::test]
async fn a_change_of_tools_is_announced() {
    let place = Place::with(&[fake("s", "session", "session: shared")]).await;
    assert!(!place.names().contains(&"s__more".to_owned()));
    place.call("s__change", json!({})).await.unwrap();
    place.until(|names| names.contains(&"s__more".to_owned())).await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_costs_itself_and_says_why() {
    let mut missing = fake("missing", "session", "");
    missing.target = Target::Program {
        command: "/none/such".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
        confine: false,
    };
    let mut loud = fake("loud", "session", "initTimeoutSeconds: 20");
    loud.target = Target::Program {
        command: "/bin/sh".to_owned(),
        args: ["-c".to_owned(), "echo no key is set >&2; exit 1".to_owned()].into(),
        env: BTreeMap::new(),
        cwd: None,
        confine: true,
    };
    let mut lost = fake("lost", "session", "");
    if let Target::Program { cwd, .. } = &mut lost.target {
        *cwd = Some("none/such".into());
    }
    let mut unknown = fake("unknown", "session", "");
    if let Target::Program { command, .. } = &mut unknown.target {
        *command = "no-such-program".to_owned();
    }
    let place = Place::new();
    place.apply(&[missing, loud, lost, unknown, fake("s", "session", "")]);
    let settled: BTreeMap<String, Result<(), String>> =
        soon(place.servers.settled()).await.into_iter().map(|(name, state)| (name.to_string(), state)).collect();
    assert_eq!(settled["s"], Ok(()));
    assert!(settled["missing"].as_ref().is_err_and(|why| why.contains("names no program")), "{settled:?}");
    assert!(settled["lost"].as_ref().is_err_and(|why| why.contains("see `cwd`")), "{settled:?}");
    assert!(settled["unknown"].as_ref().is_err_and(|why| why.contains("in PATH; write its whole path")), "{settled:?}");
    assert!(settled["loud"].as_ref().is_err_and(|why| why.contains("no key is set")), "{settled:?}");
    assert!(place.call("s__state", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_confined_server_reaches_what_a_command_would() {
    let place = Place::new();
    let mut confined = fake("s", "session", "");
    if let Target::Program { confine, .. } = &mut confined.target {
        *confine = true;
    }
    place.apply(&[confined]);
    assert_eq!(soon(place.servers.settled()).await[0].1, Ok(()));
    let state = place.state_for(&Caller::none("ada")).await;
    assert_eq!((&state["home"], &state["secret"]), (&json!(true), &json!(false)));

    let secret = place.dir.path().join("secret");
    std::fs::write(&secret, "").unwrap();
    let mut reader = fake("r", "session", "");
    reader.target = Target::Program {
        command: "/bin/cat".to_owned(),
        args: vec![secret.display().to_string()],
        env: BTreeMap::new(),
        cwd: None,
        confine: true,
    };
    place.apply(&[reader]);
    let why = soon(place.servers.settled()).await.pop().unwrap().1.unwrap_err();
    assert!(why.contains("denied"), "{why}");
}

#[tokio::test]
async fn just_what_changed_is_started_and_stopped_and_in_the_end_nothing_is_left() {
    let ada = Caller::none("ada");
    let place = Place::with(&[fake("s", "session", ""), fake("t", "session", "")]).await;
    let before = place.state_for(&ada).await;
    let other = structured(place.call("t__state", json!({})).await);
    place.apply(&[fake("s", "session", "exclude: ['*']\npermission: ask")]);
    assert_eq!(place.names(), Vec::<String>::new());
    until_gone(&other["pid"]).await;
    place.apply(&[fake("s", "session", "")]);
    assert_eq!(place.state_for(&ada).await["pid"], before["pid"], "its tools changed, and it went on");

    place.apply(&[fake("s", "session", "concurrency: 2")]);
    assert_eq!(soon(place.servers.settled()).await[0].1, Ok(()));
    let after = place.state_for(&ada).await;
    assert_ne!(after["pid"], before["pid"]);
    until_gone(&before["pid"]).await;
    soon(place.servers.end()).await;
    until_gone(&after["pid"]).await;
}

#[tokio::test]
async fn tools_that_are_denied_are_not_offered() {
    let place = Place::new();
    place.apply(&[fake("s", "session", "permission: deny")]);
    assert_eq!(soon(place.servers.settled()).await, []);
}

fn request(id: &str, server: &str, method: &str, params: Value) -> Request {
    let request = json!({"call": id, "server": server, "method": method, "params": params, "deadlineMs": 60_000,
        "sentMs": 0, "caller": {"subject": "ada", "client": {"protocol": "2025-11-25", "session": "m-1",
        "capabilities": {"elicitation": {}}}}});
    serde_json::from_value(request).unwrap()
}

async fn answered(place: &Place) -> Value {
    loop {
        soon(place.servers.line().news()).await;
        for message in place.servers.line().take() {
            match message {
                FootToHub::Response(response) => return serde_json::from_str(raw(&response).get()).unwrap(),
                FootToHub::Upcall(upcall) => {
                    let result = json!({"call": upcall.call, "id": upcall.id, "result": {"action": "accept"}});
                    place.servers.line().answered(serde_json::from_value(result).unwrap());
                }
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn requests_go_to_the_server_and_calls_of_tools_do_not_go_this_way() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    place.servers.line().connected(false);
    let ask = async |server: &str, method: &str, params: Value| {
        place.servers.request(request("r-1", server, method, params), PATIENCE, true);
        answered(&place).await
    };
    let read = ask("s", "resources/read", json!({"uri": "a:b"})).await;
    assert_eq!((&read["call"], &read["result"]["contents"][0]["uri"]), (&json!("r-1"), &json!("a:b")));
    assert_eq!(ask("s", "prompts/get", json!({})).await["result"]["answer"]["action"], "accept");
    assert_eq!(ask("s", "what/ever", json!({})).await["error"], json!({"code": -32601, "message": "no such method"}));
    assert_eq!(ask("s", "tools/call", json!({"name": "die"})).await["error"]["data"]["code"], "not_supported");
    assert_eq!(ask("none", "prompts/list", json!({})).await["error"]["data"]["code"], "not_found");
    place.servers.refuse(request("r-2", "s", "prompts/list", json!({})));
    assert_eq!(answered(&place).await["error"]["data"]["code"], "not_found");
}

#[tokio::test]
async fn a_request_ends_when_it_is_cancelled_and_when_its_time_is_up() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    place.servers.line().connected(false);
    let hanging = request("r-1", "s", "prompts/get", json!({}));
    place.servers.request(hanging.clone(), PATIENCE, true);
    // It asks, and nobody answers.
    let asked = async {
        soon(place.servers.line().news()).await;
        place.servers.line().take()
    };
    assert!(matches!(asked.await.as_slice(), [FootToHub::Upcall(_)]));
    place.servers.request(hanging.clone(), PATIENCE, true);
    place.servers.cancel(&hanging.call);
    assert_eq!(answered(&place).await["error"]["data"]["code"], "cancelled");
    place.servers.request(request("r-2", "s", "prompts/get", json!({})), Duration::ZERO, true);
    assert_eq!(answered(&place).await["error"]["data"]["code"], "deadline_exceeded");
}

#[tokio::test]
async fn a_subscription_of_a_client_with_a_session_is_a_long_request_to_a_server_without() {
    let place = Place::with(&[fake("s", "stateless", "")]).await;
    place.servers.line().connected(false);
    let params = json!({"uri": "a:b"});
    place.servers.request(request("r-1", "s", "resources/subscribe", params.clone()), PATIENCE, true);
    let (mut response, mut note) = (None, None);
    while response.is_none() || note.is_none() {
        soon(place.servers.line().news()).await;
        for message in place.servers.line().take() {
            match message {
                FootToHub::Response(told) => response = told.result,
                FootToHub::Notify(told) => note = Some(told),
                other => panic!("{other:?}"),
            }
        }
    }
    let note = note.unwrap();
    assert_eq!((note.method.as_str(), response.unwrap().get()), ("notifications/resources/updated", "{}"));
    let audience = note.audience.unwrap();
    assert_eq!((audience.subject.as_str(), audience.session.as_deref()), ("ada", Some("m-1")));
    place.servers.request(request("r-2", "s", "resources/unsubscribe", params), PATIENCE, true);
    assert_eq!(answered(&place).await["result"], json!({}));
}
