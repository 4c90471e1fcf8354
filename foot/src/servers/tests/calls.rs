//! What comes and goes with a call.

use footbridge_shared::{ErrorCode, Outcome};

use super::*;

#[tokio::test]
async fn what_a_server_offers_is_told_as_it_came_under_names_of_its_pack() {
    let place = Place::with(&[fake("s", "session", "exclude: [h*]\ntimeoutSeconds: 7")]).await;
    let names = ["s__ask", "s__change", "s__die", "s__echo_it", "s__fail", "s__progress", "s__state"];
    assert_eq!(place.names(), names, "both pages, but for what is odd or excluded");
    let echo = place.tools.entries().into_iter().find(|entry| entry.name == "s__echo_it").unwrap();
    let told: Value = serde_json::from_str(raw(&echo).get()).unwrap();
    assert_eq!(
        told,
        json!({"name": "s__echo_it", "originalName": "Echo It", "title": "Echo", "description": "Echoes.", "pack": "s",
            "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}, "timeoutMs": 7_000,
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "labels": ["mcp", "mcp:s", "side-effect"], "primary": false,
            "deferred": false, "requiresRoles": [], "profiles": [],
            "extra": {"icons": [{"src": "i"}], "_meta": {"k": 1}}})
    );
    assert!(!place.tools.get("s__echo_it").unwrap().tool.is_read_only(), "whatever it says of itself");
    let infos = place.servers.infos();
    let info: Value = serde_json::from_str(raw(infos.borrow().values().next().unwrap()).get()).unwrap();
    assert_eq!(
        info,
        json!({"name": "s", "capabilities": {"tools": {"listChanged": true}, "resources": {}},
            "instructions": "Be kind.", "protocol": "2025-11-25", "info": {"name": "fake", "icon": "x"}})
    );
}

#[tokio::test]
async fn a_result_arrives_as_it_was_sent_and_a_call_goes_with_all_that_came() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    let extra = Some(json!({"_meta": {"a/b": 1.10}, "task": {"ttl": 1}, "name": "x"}));
    let caller = Caller { extra, ..Caller::none("ada") };
    let output = place.call_for(&caller, "s__echo_it", json!({"n": 9_007_199_254_740_993_u64})).await.0.unwrap();
    assert!(output.is_error);
    assert_eq!(output.content.get(), r#"[{"type":"text","text":"echo"}]"#);
    assert_eq!(output.meta.unwrap().get(), r#"{"m":1.1}"#);
    assert_eq!(output.extra.unwrap().get(), r#"{"beyond":{"n":9007199254740993}}"#);
    let params: Value = serde_json::from_str(output.structured.unwrap().get()).unwrap();
    let params = &params["params"];
    assert_eq!((&params["name"], &params["task"]["ttl"]), (&json!("Echo It"), &json!(1)));
    assert_eq!(params["arguments"], json!({"n": 9_007_199_254_740_993_u64}));
    assert_eq!(params["_meta"]["a/b"], 1.1);
}

#[tokio::test]
async fn an_error_of_a_server_is_passed_on_whole() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    let failure = place.call("s__fail", json!({})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::InvalidArguments, Outcome::Completed));
    assert_eq!(failure.message, "that is wrong");
    let rpc: Value = serde_json::from_str(failure.rpc.unwrap().get()).unwrap();
    assert_eq!(rpc, json!({"code": -32602, "message": "that\u{202e} is wrong", "data": {"n": 1}}));
}

#[tokio::test]
async fn every_step_is_told_and_what_a_server_says_meanwhile_goes_to_the_client_of_the_call() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    place.servers.line().connected(false);
    let caller = Caller::client("ada", "2025-11-25", Some("m-1"));
    let (result, mut signs) = place.call_for(&caller, "s__progress", json!({})).await;
    result.unwrap();
    let mut steps = Vec::new();
    while let Ok(Sign::Progress(progress)) = signs.try_recv() {
        steps.push((progress.progress, progress.total, progress.message));
    }
    assert_eq!(steps, [1.0, 2.0, 3.0].map(|step| (step, Some(3.0), Some("on".to_owned()))));
    let told: Vec<_> = place.servers.line().take();
    let [FootToHub::Notify(note)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((note.server.as_str(), note.method.as_str()), ("s", "notifications/message"));
    assert_eq!(note.call.as_ref().map(ToString::to_string).as_deref(), Some("c-1"));
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_its_server_and_the_server_goes_on() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    place.servers.line().connected(false);
    let caller = Caller::client("ada", "2025-11-25", Some("m-1"));
    let before = place.state_for(&caller).await;
    let cancel = async {
        // The server hangs in this call: that it answers the next one says that it heard of the cancel.
        soon(place.servers.line().news()).await;
        caller.cancel.cancel();
    };
    let ((cancelled, _), ()) = tokio::join!(place.call_for(&caller, "s__hang", json!({})), cancel);
    assert_eq!(cancelled.unwrap_err().code, ErrorCode::Cancelled);
    let after = place.state_for(&Caller::client("ada", "2025-11-25", Some("m-1"))).await;
    assert_eq!(after["pid"], before["pid"]);
}

#[tokio::test]
async fn what_a_server_asks_goes_to_the_client_of_the_call() {
    let place = Place::with(&[fake("s", "session", "")]).await;
    place.servers.line().connected(false);
    let yes = json!({"action": "accept", "content": {"x": 1}});
    // With a session and without: to a client that has none, the hub brings the question its own way.
    for (protocol, session) in [("2025-11-25", Some("m-1")), ("2026-07-28", None)] {
        let caller = Caller::client("ada", protocol, session);
        let (called, asked) = tokio::join!(place.call_for(&caller, "s__ask", json!({})), place.answer(yes.clone()));
        assert_eq!(structured(called.0)["answer"], yes, "{protocol}");
        assert_eq!(asked, json!({"method": "elicitation/create", "params": {"message": "sure?"}}));
    }
    let declined = structured(place.call("s__ask", json!({})).await);
    assert_eq!(declined["answer"], json!({"action": "decline"}), "nobody is there");
    place.servers.line().disconnected();
    let away = place.call_for(&Caller::client("ada", "2025-11-25", Some("m-1")), "s__ask", json!({})).await.0;
    assert_eq!(structured(away)["answer"], json!({"action": "decline"}), "no hub is there");
}

#[tokio::test]
async fn a_server_without_sessions_that_asks_back_is_answered_for_clients_that_have_one() {
    let place = Place::with(&[fake("s", "stateless", "")]).await;
    place.servers.line().connected(false);
    let yes = json!({"action": "accept"});
    let caller = Caller::client("ada", "2025-11-25", Some("m-1"));
    let (called, asked) = tokio::join!(place.call_for(&caller, "s__ask", json!({})), place.answer(yes.clone()));
    let answered = structured(called.0);
    assert_eq!((&answered["answer"], &asked["params"]["message"]), (&yes, &json!("sure?")));
    assert_eq!(
        answered["capabilities"],
        json!({"elicitation": {"form": {}}}),
        "those of the client, with each request"
    );
    assert_eq!(structured(place.call("s__ask", json!({})).await)["answer"], json!({"action": "decline"}));

    let caller = Caller::client("ada", "2026-07-28", None);
    let output = place.call_for(&caller, "s__ask", json!({})).await.0.unwrap();
    assert_eq!((output.content.get(), &output.structured.is_none()), ("[]", &true));
    let extra: Value = serde_json::from_str(output.extra.unwrap().get()).unwrap();
    assert_eq!((&extra["resultType"], &extra["requestState"]), (&json!("input_required"), &json!("s1")));
    let extra = Some(json!({"inputResponses": {"q": {"action": "cancel"}}, "requestState": "s1"}));
    let again = place.call_for(&Caller { extra, ..caller }, "s__ask", json!({})).await.0;
    assert_eq!(structured(again)["answer"], json!({"action": "cancel"}), "such a client follows it itself");
}

#[tokio::test]
async fn a_shared_server_asks_nobody() {
    for kind in ["session", "stateless"] {
        let place = Place::with(&[fake("s", kind, "session: shared")]).await;
        place.servers.line().connected(false);
        for protocol in ["2025-11-25", "2026-07-28"] {
            let caller = Caller::client("ada", protocol, None);
            let answered = structured(place.call_for(&caller, "s__ask", json!({})).await.0);
            assert_eq!(answered["answer"], json!({"action": "decline"}), "{kind} {protocol}");
        }
    }
}

#[tokio::test]
async fn connections_are_shared_by_those_whom_the_owner_means() {
    let all = |subject| {
        [
            Caller::none(subject),
            Caller::client(subject, "2025-11-25", Some("m-1")),
            Caller::client(subject, "2025-11-25", Some("m-2")),
            Caller::client(subject, "2026-07-28", None),
        ]
    };
    for (mode, expected) in [("process", 5), ("subject", 4), ("shared", 1)] {
        let place = Place::with(&[fake("s", "session", &format!("session: {mode}"))]).await;
        let mut pids = std::collections::BTreeSet::new();
        for caller in all("ada").into_iter().chain([Caller::none("bob")]) {
            pids.insert(place.state_for(&caller).await["pid"].as_u64().unwrap());
        }
        assert_eq!(pids.len(), expected, "{mode}");
    }
    let place = Place::with(&[fake("s", "session", "")]).await;
    let can = async |caller: &Caller| place.state_for(caller).await["capabilities"].clone();
    assert_eq!(can(&Caller::none("ada")).await, json!({}));
    let client = Caller::client("ada", "2025-11-25", Some("m-1"));
    assert_eq!(can(&client).await, json!({"elicitation": {"form": {}}}), "just what the one client can");
    let many = can(&Caller::client("ada", "2025-11-25", None)).await;
    assert!(many["sampling"].is_object() && many["roots"].is_object(), "{many}");
}
