//! What the MCP servers of feet ask the clients of calls, and tell them.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::limits::{
    BULK_BYTES, DEFAULT_MAX_TIMEOUT, MAX_FRAME_BYTES, MAX_UPCALLS_PER_FOOT, PART_FRAME_BYTES,
};
use footbridge_shared::message::{Call, Credit, FootToHub, HubToFoot, InFlightState, UpcallResult};
use footbridge_shared::part::{HEADER_BYTES, Part};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::harness::{Client, Heard, Hub, Identity, Put, Running, TestFoot, hear, principal, subject};
use super::servers::{say_long, with_servers};
use crate::domain::call::Expired;
use crate::domain::mcp::{McpAudience, McpNote};
use crate::sources::feet::{FeetConfig, Frame};

const SECOND: Duration = Duration::from_secs(1);

/// A foot with a server, and a call that runs there for an MCP client.
struct Stage {
    hub: Hub,
    foot: TestFoot,
    client: Arc<Client>,
    questions: UnboundedReceiver<Put>,
    running: Running,
    call: Call,
}

async fn stage() -> Stage {
    stage_with(FeetConfig::default()).await
}

async fn stage_with(config: FeetConfig) -> Stage {
    let hub = Hub::with(config).await;
    let servers = json!([{"name": "git", "capabilities": {}}]);
    let mut foot = hub.foot_as("ada", Identity::new("dev"), with_servers(servers)).await;
    foot.offer(1, &["git__log", "uptime"]).await;
    let (client, questions) = Client::new();
    let running = hub.call_for("ada", "git__log", client.clone(), None).await;
    let call = hear!(foot, Call);
    Stage { hub, foot, client, questions, running, call }
}

impl Stage {
    async fn ask(&mut self, id: &str, message: &str) {
        ask(&mut self.foot, &self.call, id, message).await;
    }
}

fn upcall(call: &Call, id: &str, message: &str) -> String {
    json!({"type": "upcall", "call": call.call, "id": id, "method": "elicitation/create",
        "params": {"message": message}, "timeoutMs": 3_600_000})
    .to_string()
}

async fn ask(foot: &mut TestFoot, call: &Call, id: &str, message: &str) {
    foot.say_text(&upcall(call, id, message)).await;
}

fn said(answer: &UpcallResult) -> Value {
    let raw = answer.result.as_ref().or(answer.error.as_ref()).unwrap();
    serde_json::from_str(raw.get()).unwrap()
}

/// Nothing comes for a while.
async fn is_silent(foot: &mut TestFoot) {
    let heard = tokio::time::timeout(SECOND / 2, foot.hear()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_to_the_client_of_its_call_and_the_answer_back() {
    let mut stage = stage().await;
    let caller = stage.call.caller.client.take().unwrap();
    assert_eq!((caller.protocol.as_str(), caller.session.as_deref()), ("2025-11-25", Some("m-1")));
    assert_eq!(caller.capabilities.get(), r#"{"elicitation":{}}"#);
    stage.ask("q-1", "Which?").await;
    stage.ask("q-2", "Who?").await;
    let first = stage.questions.recv().await.unwrap();
    let second = stage.questions.recv().await.unwrap();
    assert_eq!((first.method.as_str(), first.params.get()), ("elicitation/create", r#"{"message":"Which?"}"#));
    second.answer(&json!({"action": "accept", "content": {"n": 1}}));
    let answer = hear!(stage.foot, UpcallResult);
    assert_eq!((answer.id.as_str(), said(&answer)["content"]["n"].as_i64()), ("q-2", Some(1)));
    first.answer(&json!({"action": "cancel"}));
    assert_eq!(hear!(stage.foot, UpcallResult).id, "q-1");
    stage.foot.answer(&stage.call, "done").await;
    assert_eq!(stage.running.text().await, "done");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_be_asked_the_answer_is_no_at_once() {
    let mut stage = stage().await;
    let (alone, _) = (stage.hub.call("ada", "uptime", json!({})).await, ());
    let call = hear!(stage.foot, Call);
    assert!(call.caller.client.is_none());
    ask(&mut stage.foot, &call, "q", "Which?").await;
    assert_eq!(said(&hear!(stage.foot, UpcallResult)), json!({"action": "decline"}));
    let text = upcall(&call, "q", "").replace("elicitation/create", "sampling/createMessage");
    stage.foot.say_text(&text).await;
    assert_eq!(said(&hear!(stage.foot, UpcallResult))["code"], -32601);
    let text = upcall(&call, "q", "").replace(call.call.as_str(), "nobody");
    stage.foot.say_text(&text).await;
    assert_eq!(said(&hear!(stage.foot, UpcallResult)), json!({"action": "decline"}));
    assert!(stage.questions.try_recv().is_err());
    drop(alone);
}

/// H18: what a foot asks takes as long as it takes.
#[tokio::test(start_paused = true)]
async fn a_question_that_takes_long_disturbs_neither_heartbeats_nor_other_calls() {
    let quick = FeetConfig { heartbeat_interval: SECOND, heartbeat_misses: 1, ..FeetConfig::default() };
    let mut stage = stage_with(quick).await;
    stage.ask("q", "Which?").await;
    let put = stage.questions.recv().await.unwrap();
    let started = Instant::now();
    while started.elapsed() < 5 * SECOND {
        is_silent(&mut stage.foot).await;
        let mut quick = stage.hub.call("ada", "uptime", json!({})).await;
        let now = Instant::now();
        let asked = hear!(stage.foot, Call);
        stage.foot.answer(&asked, "up").await;
        assert_eq!(quick.text().await, "up");
        assert_eq!(now.elapsed(), Duration::ZERO, "at once");
        hear!(stage.foot, Ack);
    }
    put.answer(&json!({"action": "accept"}));
    assert_eq!(said(&hear!(stage.foot, UpcallResult))["action"], "accept");
    stage.foot.answer(&stage.call, "done").await;
    assert_eq!(stage.running.text().await, "done");
    assert_eq!(stage.hub.registry.metrics().connected, 1, "over one connection");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_thinks_is_not_idle_and_still_ends() {
    let mut stage = stage().await;
    stage.ask("q", "Which?").await;
    let _put = stage.questions.recv().await.unwrap();
    let started = Instant::now();
    let clock = stage.running.clock.clone();
    let expired = tokio::select! {
        expired = clock.expired() => expired,
        heard = stage.foot.hear() => panic!("{heard:?}"),
    };
    assert_eq!((expired, started.elapsed() >= DEFAULT_MAX_TIMEOUT - SECOND), (Expired::Hard, true));
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_time_with_its_call_and_by_the_word_of_the_foot() {
    let mut stage = stage().await;
    let text = upcall(&stage.call, "short", "").replace("3600000", "1000");
    stage.foot.say_text(&text).await;
    let put = stage.questions.recv().await.unwrap();
    let answer = hear!(stage.foot, UpcallResult);
    assert_eq!((answer.id.as_str(), said(&answer)["code"].as_i64()), ("short", Some(-32603)));
    assert!(put.answer.is_closed(), "it was withdrawn");

    stage.ask("taken back", "Which?").await;
    let mut put = stage.questions.recv().await.unwrap();
    stage
        .foot
        .say_text(&json!({"type": "upcallCancel", "call": stage.call.call, "id": "taken back"}).to_string())
        .await;
    put.answer.closed().await;

    stage.ask("cancelled", "Which?").await;
    let mut put = stage.questions.recv().await.unwrap();
    stage.running.cancel.cancel();
    put.answer.closed().await;
    let (mut cancelled, mut answered) = (false, false);
    while !(cancelled && answered) {
        match stage.foot.hear().await {
            Heard::Message(HubToFoot::Cancel(cancel)) => cancelled = cancel.call == stage.call.call,
            Heard::Message(HubToFoot::UpcallResult(answer)) => answered = answer.id == "cancelled",
            other => panic!("{other:?}"),
        }
    }

    let mut stage = self::stage().await;
    stage.ask("open", "Which?").await;
    let mut put = stage.questions.recv().await.unwrap();
    stage.foot.answer(&stage.call, "done").await;
    assert_eq!(stage.running.text().await, "done");
    put.answer.closed().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_questions_are_answered_at_once() {
    let mut stage = stage().await;
    let mut open = Vec::new();
    for number in 0..MAX_UPCALLS_PER_FOOT {
        stage.ask(&format!("q{number}"), "Which?").await;
        open.push(stage.questions.recv().await.unwrap());
    }
    stage.ask("more", "Which?").await;
    let answer = hear!(stage.foot, UpcallResult);
    assert_eq!((answer.id.as_str(), answer.result.is_none()), ("more", true));
    open.pop().unwrap().answer(&json!({}));
    hear!(stage.foot, UpcallResult);
    stage.ask("again", "Which?").await;
    assert!(stage.questions.recv().await.is_some(), "there is room again");

    stage.ask(&"x".repeat(129), "Which?").await;
    assert_eq!(hear!(stage.foot, Error).code, ErrorCode::BadFrame);
}

#[tokio::test(start_paused = true)]
async fn a_question_outlives_its_connection_and_its_client_is_asked_once() {
    let mut stage = stage().await;
    stage.ask("slow", "Which?").await;
    stage.ask("quick", "Who?").await;
    let slow = stage.questions.recv().await.unwrap();
    let quick = stage.questions.recv().await.unwrap();
    let Stage { hub, foot, call, mut questions, mut running, .. } = stage;
    let TestFoot { identity, session, to_hub, from_hub, .. } = foot;
    drop((to_hub, from_hub));
    hub.settles(|counts| counts.connections == 0).await;
    quick.answer(&json!({"answer": "quick"}));
    let mut foot = hub.dial(principal("ada"), identity);
    foot.session = session;
    let (mut foot, welcome) = foot.resume(&hub, "ada", &[(&call, InFlightState::Running)]).await;
    assert!(welcome.resumed);
    is_silent(&mut foot).await;
    for id in ["slow", "quick"] {
        ask(&mut foot, &call, id, "as before").await;
    }
    let answer = hear!(foot, UpcallResult);
    assert_eq!((answer.id.as_str(), said(&answer)), ("quick", json!({"answer": "quick"})));
    slow.answer(&json!({"answer": "slow"}));
    assert_eq!(said(&hear!(foot, UpcallResult)), json!({"answer": "slow"}));
    assert!(questions.try_recv().is_err(), "no question came twice");
    foot.answer(&call, "done").await;
    assert_eq!(running.text().await, "done");
}

#[tokio::test(start_paused = true)]
async fn long_questions_and_answers_travel_in_parts_of_their_own() {
    let mut stage = stage().await;
    let long = "x".repeat(3 * MAX_FRAME_BYTES);
    let text = FootToHub::decode(&upcall(&stage.call, "q", &long)).unwrap().encode();
    say_long(&mut stage.foot, [7; 16], &text).await;
    let put = stage.questions.recv().await.unwrap();
    assert!(put.params.get().contains(&long));
    put.answer(&json!({"text": long}));
    let answer = next_answer(&mut stage.foot).await;
    assert_eq!(said(&answer), json!({"text": long}));
    // One that fits a frame is bulk of its call.
    stage.ask("bulk", "Which?").await;
    let text = "y".repeat(2 * BULK_BYTES);
    stage.questions.recv().await.unwrap().answer(&json!({"text": text}));
    assert_eq!(said(&next_answer(&mut stage.foot).await), json!({"text": text}));
    stage.foot.answer(&stage.call, "done").await;
    assert_eq!(stage.running.text().await, "done");
    assert_eq!(stage.hub.registry.core.node.parts.used(), 0);
}

/// The next answer, after receipts.
async fn next_answer(foot: &mut TestFoot) -> UpcallResult {
    loop {
        match foot.hear().await {
            Heard::Message(HubToFoot::UpcallResult(answer)) => return answer,
            Heard::Message(HubToFoot::Credit(Credit { hold: false, .. })) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_comes_in_part_goes_with_its_connection() {
    let mut stage = stage().await;
    let long = "x".repeat(3 * MAX_FRAME_BYTES);
    let text = FootToHub::decode(&upcall(&stage.call, "q", &long)).unwrap().encode();
    let data = &text.as_bytes()[..PART_FRAME_BYTES - HEADER_BYTES];
    let part = Part { id: [7; 16], seq: 0, last: false, data };
    stage.foot.say_frame(Frame::Binary(part.encode().unwrap().into())).await;
    hear!(stage.foot, Credit);
    assert!(stage.hub.registry.core.node.parts.used() > 0);
    let (mut foot, _) = stage.foot.resume(&stage.hub, "ada", &[(&stage.call, InFlightState::Running)]).await;
    assert_eq!(stage.hub.registry.core.node.parts.used(), 0);
    is_silent(&mut foot).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_server_tells_goes_to_those_it_is_for() {
    let mut stage = stage().await;
    let mut notes = stage.hub.server("ada", "git").await.notes();
    let notify = |more: Value| {
        let mut notify =
            json!({"type": "notify", "server": "git", "method": "notifications/message", "params": {"n": 1}});
        notify.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        notify.to_string()
    };
    let dropped = [
        json!({"audience": {"subject": "bob"}}),
        json!({"audience": {"subject": "ada", "session": "m".repeat(300)}}),
        json!({"audience": {"subject": "ada"}, "server": "other"}),
        json!({"audience": {"subject": "ada"}, "method": "elicitation/create"}),
        json!({"audience": {"subject": "ada"}, "method": "notifications/cancelled"}),
        json!({"audience": {"subject": "ada"}, "params": [1]}),
        json!({"call": "nobody"}),
        json!({"call": stage.call.call, "method": "notifications/cancelled"}),
        json!({}),
    ];
    for more in dropped {
        stage.foot.say_text(&notify(more)).await;
    }
    stage.foot.say_text(&notify(json!({"call": stage.call.call}))).await;
    stage.foot.say_text(&notify(json!({"audience": {"subject": "ada"}}))).await;
    stage.foot.say_text(&notify(json!({"audience": {"subject": "ada", "session": "m-1"}}))).await;
    let changed = "notifications/tools/list_changed";
    stage.foot.say_text(&notify(json!({"audience": {"subject": "ada"}, "method": changed}))).await;
    let updated = "notifications/resources/updated";
    stage.foot.say_text(&notify(json!({"method": updated}))).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        let McpNote::Told { audience, method, params } = notes.recv().await.unwrap() else { panic!() };
        assert_eq!(params.get(), r#"{"n":1}"#);
        heard.push((audience, method));
    }
    let (ada, message) = (subject("ada"), "notifications/message".to_owned());
    let expected = [
        (McpAudience::Subject(ada.clone()), message.clone()),
        (McpAudience::Session(ada.clone(), "m-1".to_owned()), message),
        (McpAudience::Subject(ada), changed.to_owned()),
        (McpAudience::Everybody, updated.to_owned()),
    ];
    assert_eq!(heard, expected);
    let told = stage.client.told.lock().clone();
    assert_eq!(told, [("notifications/message".to_owned(), r#"{"n":1}"#.to_owned())], "and nothing else");
}

#[tokio::test(start_paused = true)]
async fn what_a_client_sends_and_a_server_answers_beside_the_rest_passes_as_it_came() {
    let mut stage = stage().await;
    let extra = r#"{"_meta":{"n":1.10},"requestState":"s"}"#;
    let mut running = stage.hub.call_for("ada", "git__log", stage.client.clone(), Some(extra)).await;
    let call = hear!(stage.foot, Call);
    assert_eq!(call.extra.as_ref().unwrap().get(), extra);
    let result = r#"{"resultType":"input_required","requestState":"s2","x":1.10}"#;
    let text = format!(r#"{{"type":"result","call":"{}","origin":"hub","content":[],"extra":{result}}}"#, call.call);
    stage.foot.say_text(&text).await;
    assert_eq!(running.end().await.unwrap().extra.unwrap().get(), result);

    let error = json!({"code": -32042, "message": "no", "data": [1]});
    let failure = json!({"type": "failure", "call": stage.call.call, "origin": "hub", "code": "tool_failed", "message": "no",
        "outcome": "completed", "retryable": false, "rpc": error});
    stage.foot.say_text(&failure.to_string()).await;
    let failure = stage.running.failure().await;
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ToolFailed, Outcome::Completed));
    assert_eq!(serde_json::to_value(failure.rpc.unwrap()).unwrap(), error);
}
