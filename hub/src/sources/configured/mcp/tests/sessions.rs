//! Who gets which connection, and who is asked and told what a server wants to know and says.

use super::*;

const SESSION: Version = Version::V2025_06_18;

#[tokio::test(start_paused = true)]
async fn a_question_reaches_the_client_whose_call_caused_it_and_nobody_else() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Subject);
    ready(&attachment).await;
    let ((ann, mut anns), (bob, mut bobs)) = (by("ann", SESSION, Some("1")), by("bob", SESSION, Some("2")));
    let cy = plain("cy");
    let calls = futures::join!(
        call(&attachment, "ask", json!({}), &ann),
        call(&attachment, "ask", json!({}), &bob),
        call(&attachment, "ask", json!({}), &cy),
    );
    let (a, b, c) = (structured(&calls.0.unwrap()), structured(&calls.1.unwrap()), structured(&calls.2.unwrap()));
    assert_eq!((&a["answer"]["content"]["name"], &b["answer"]["content"]["name"]), (&json!("ann"), &json!("bob")));
    assert_ne!(a["connection"], b["connection"]);
    assert_eq!(c["answer"], json!({"action": "decline"}), "nobody can be asked");
    for told in [&mut anns, &mut bobs] {
        assert_eq!(told.recv().await.unwrap(), r#"elicitation/create {"message":"who?","requestedSchema":{}}"#);
        assert!(told.try_recv().is_err());
    }
    let again = structured(&call(&attachment, "echo", json!({"n": "7"}), &ann).await.unwrap());
    assert_eq!(again, json!({"connection": a["connection"], "arguments": {"n": 7}}), "the same connection again");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn by_process_each_session_has_its_own_and_says_what_its_client_can_do() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Process);
    ready(&attachment).await;
    let of = |name, session| by(name, SESSION, session).0;
    let mut connections = Vec::new();
    let mut processes = (plain("ann"), plain("ann"));
    for (ctx, process) in [(&mut processes.0, "p1"), (&mut processes.1, "p2")] {
        let caller = Caller { process: Some(process.to_owned()), ..Caller::clone(&ctx.caller) };
        ctx.caller = Arc::new(caller);
    }
    let callers =
        [of("ann", Some("1")), of("ann", Some("2")), of("bob", Some("1")), of("ann", None), processes.0, processes.1];
    for ctx in callers.iter().chain(&callers) {
        let output = call(&attachment, "echo", json!({}), ctx).await.unwrap();
        connections.push(structured(&output)["connection"].as_u64().unwrap());
    }
    let (first, second) = connections.split_at(callers.len());
    assert_eq!(first, second);
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), callers.len(), "{first:?}");
    let clients = lab.fake.clients.lock().clone();
    let client = |n: usize| &clients[usize::try_from(first[n]).unwrap()];
    assert_eq!(client(0), &json!({"elicitation": {}, "name": "ann"}));
    assert_eq!(client(2), &json!({"elicitation": {}, "name": "bob"}));
    assert!(client(3)["sampling"].is_object(), "the connection of a subject may be asked anything");
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_connection_asks_nobody() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let (ann, mut told) = by("ann", SESSION, Some("1"));
    let answer = structured(&call(&attachment, "ask", json!({}), &ann).await.unwrap());
    assert_eq!(answer, json!({"connection": 0, "answer": {"action": "decline"}}));
    call(&attachment, "log", json!({}), &ann).await.unwrap();
    assert!(told.try_recv().is_err());
    assert_eq!(*lab.fake.clients.lock(), [json!({})]);
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn progress_and_messages_are_of_the_call_that_runs() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Subject);
    ready(&attachment).await;
    let mut notes = attachment.server().notes();
    let (tell, mut events) = mpsc::unbounded_channel();
    let (ann, mut told) = by("ann", SESSION, Some("1"));
    let mut ctx = plain_told("ann", Some(Arc::new(Events(tell))));
    ctx.client = ann.client.clone();
    call(&attachment, "log", json!({}), &ctx).await.unwrap();
    assert_eq!(told.recv().await.unwrap(), r#"notifications/message {"level":"info","data":"at work"}"#);
    let progress = CallEvent::Progress { progress: 1.0, total: Some(2.0), message: Some("half".to_owned()) };
    assert_eq!(events.recv().await.unwrap(), progress);
    // What comes while no call runs is for whoever the connection is for.
    // So is that a list changed: it may be what this connection alone is shown.
    for (said, told) in [("resources/updated", r#"{"uri":"x:y"}"#), ("tools/list_changed", "{}")] {
        let method = format!("notifications/{said}");
        let params: Json = serde_json::from_str(told).unwrap();
        lab.fake.say(1, json!({"jsonrpc": "2.0", "method": method, "params": params}));
        let Ok(McpNote::Told { audience, method: heard, params }) = notes.recv().await else { panic!("no note") };
        assert_eq!(audience, McpAudience::Subject(Subject::parse("ann").unwrap()));
        assert_eq!((heard, params.get()), (method, told));
    }
    assert!(matches!(notes.try_recv(), Err(broadcast::error::TryRecvError::Empty)));
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_server() {
    let mut lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let ctx = plain("ann");
    let waiting = call(&attachment, "wait", json!({}), &ctx);
    let (failure, (_, cancelled)) = futures::join!(waiting, async {
        lab.hears("tools/call").await;
        ctx.cancel.cancel();
        lab.hears("notifications/cancelled").await
    });
    let failure = failure.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Cancelled, Outcome::Unknown));
    assert!(cancelled["requestId"].is_number());
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_server_without_sessions_wants_to_know_is_asked_in_rounds() {
    let lab = Lab::with(|fake| fake.stateless = true);
    let attachment = lab.attach(SessionMode::Subject);
    ready(&attachment).await;
    let (ann, mut told) = by("ann", SESSION, Some("1"));
    let answer = structured(&call(&attachment, "ask", json!({}), &ann).await.unwrap());
    assert_eq!(answer["answer"]["content"]["name"], "ann");
    for _ in 0..2 {
        assert_eq!(told.recv().await.unwrap(), r#"elicitation/create {"message":"who?"}"#);
    }
    assert!(told.try_recv().is_err());
    let declined = structured(&call(&attachment, "ask", json!({}), &plain("cy")).await.unwrap());
    assert_eq!(declined["answer"], json!({"action": "decline"}));
    // A client that knows this way is asked this way.
    let (bob, mut told) = by("bob", Version::V2026_07_28, None);
    let output = call(&attachment, "ask", json!({}), &bob).await.unwrap();
    assert_eq!(output.content.get(), "[]");
    let extra: Json = serde_json::from_str(output.extra.unwrap().get()).unwrap();
    assert_eq!(extra["resultType"], "input_required");
    assert_eq!(extra["inputRequests"]["q"]["params"]["message"], "who?");
    assert_eq!(extra["requestState"], "1");
    assert!(told.try_recv().is_err());
    // One that cannot answer is not bothered; its own answer is the no of whoever stands for it.
    let (mut dan, _) = by("dan", Version::V2026_07_28, None);
    dan.client = Some(Arc::new(Incapable));
    let answer = structured(&call(&attachment, "ask", json!({}), &dan).await.unwrap());
    assert_eq!(answer["answer"], json!({"action": "decline"}));
    lab.end().await;
}
