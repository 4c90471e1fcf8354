//! Requests to the MCP servers of feet, and the lists that the hub fetches from them.

use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::RpcError;
use footbridge_shared::limits::{MAX_FRAME_BYTES, RESUME_GRACE};
use footbridge_shared::message::{FootToHub, HubToFoot, Raw, Request, Share};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::harness::{Client, Heard, Hub, Identity, TestFoot, hear};
use super::servers::{say_long, with_servers};
use crate::domain::mcp::{ListKind, McpNote, McpServer};

const SECOND: Duration = Duration::from_secs(1);

/// A foot with the server `git`, which has these capabilities.
async fn stage(capabilities: Value) -> (Hub, TestFoot) {
    let hub = Hub::new().await;
    let servers = json!([{"name": "git", "capabilities": capabilities}]);
    let foot = hub.foot_as("ada", Identity::new("dev"), with_servers(servers)).await;
    (hub, foot)
}

/// A request in a task of its own. Dropped, nobody waits for it.
struct Asking {
    task: JoinSet<Result<Raw, RpcError>>,
    cancel: CancellationToken,
}

impl Asking {
    fn of(hub: &Hub, who: &str, server: Arc<dyn McpServer>, params: &str, client: Option<Arc<Client>>) -> Self {
        let (mut ctx, _) = hub.context(who, "outer");
        if let Some(client) = client {
            ctx.client = Some(client);
        }
        let (cancel, params) = (ctx.cancel.clone(), RawValue::from_string(params.to_owned()).unwrap());
        let mut task = JoinSet::new();
        task.spawn(async move { server.request(&ctx, "resources/read", params).await });
        Self { task, cancel }
    }

    async fn end(&mut self) -> Result<Raw, RpcError> {
        self.task.join_next().await.unwrap().unwrap()
    }

    /// The stable code of its error.
    async fn code(&mut self) -> String {
        let error = self.end().await.unwrap_err();
        let data: Value = serde_json::from_str(error.data.unwrap().get()).unwrap();
        data["code"].as_str().unwrap().to_owned()
    }
}

async fn read(hub: &Hub) -> Asking {
    Asking::of(hub, "ada", hub.server("ada", "git").await, r#"{"uri":"git://x"}"#, None)
}

async fn respond(foot: &mut TestFoot, request: &Request, answer: Value) {
    let mut response = json!({"type": "response", "call": request.call});
    response.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    foot.say_text(&response.to_string()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_reaches_the_server_and_its_answer_comes_as_it_is() {
    let (hub, mut foot) = stage(json!({})).await;
    let (client, mut questions) = Client::new();
    let server = hub.server("ada", "git").await;
    let mut asking = Asking::of(&hub, "ada", server, r#"{"uri":"git://x","n":1.10}"#, Some(client.clone()));
    let request = hear!(foot, Request);
    assert_eq!((request.server.as_str(), request.method.as_str()), ("git", "resources/read"));
    assert_eq!(request.params.get(), r#"{"uri":"git://x","n":1.10}"#);
    assert_eq!(request.caller.client.as_ref().and_then(|client| client.session.as_deref()), Some("m-1"));
    // While it runs its client can be asked and told.
    let upcall = json!({"type": "upcall", "call": request.call, "id": "q", "method": "roots/list", "params": {}, "timeoutMs": 9});
    foot.say_text(&upcall.to_string()).await;
    questions.recv().await.unwrap().answer(&json!({"roots": []}));
    assert_eq!(hear!(foot, UpcallResult).result.unwrap().get(), r#"{"roots":[]}"#);
    let notify = json!({"type": "notify", "call": request.call, "server": "git", "method": "notifications/message", "params": {}});
    foot.say_text(&notify.to_string()).await;
    foot.say_text(&format!(r#"{{"type":"response","call":"{}","result":{{"n": 1.10}}}}"#, request.call)).await;
    assert_eq!(asking.end().await.unwrap().get(), r#"{"n": 1.10}"#);
    assert_eq!(client.told.lock().len(), 1);

    let error = json!({"code": -32002, "message": "no such resource", "data": {"uri": "x"}});
    let mut asking = read(&hub).await;
    let request = hear!(foot, Request);
    respond(&mut foot, &request, json!({"error": error})).await;
    assert_eq!(serde_json::to_value(asking.end().await.unwrap_err()).unwrap(), error);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_an_error() {
    let (hub, mut foot) = stage(json!({})).await;
    for answer in [json!({}), json!({"result": {}, "error": {}}), json!({"error": "no"})] {
        let mut asking = read(&hub).await;
        let request = hear!(foot, Request);
        respond(&mut foot, &request, answer).await;
        assert_eq!(asking.code().await, "bad_answer");
    }
    let mut asking = read(&hub).await;
    let request = hear!(foot, Request);
    let failure = json!({"type": "failure", "call": request.call, "origin": "", "code": "payload_too_large", "message": "no",
        "outcome": "not_run"});
    foot.say_text(&failure.to_string()).await;
    assert_eq!(asking.code().await, "payload_too_large", "a foot may refuse what it cannot even read");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_taken_back_when_nobody_waits_for_it() {
    let (hub, mut foot) = stage(json!({})).await;
    let asking = read(&hub).await;
    let request = hear!(foot, Request);
    drop(asking);
    assert_eq!(hear!(foot, Cancel).call, request.call);
    respond(&mut foot, &request, json!({"result": {}})).await;

    let mut asking = read(&hub).await;
    let request = hear!(foot, Request);
    asking.cancel.cancel();
    assert_eq!(asking.code().await, "cancelled");
    assert_eq!(hear!(foot, Cancel).call, request.call);

    let mut asking = read(&hub).await;
    let request = hear!(foot, Request);
    let (code, cancelled) = tokio::join!(asking.code(), foot.hear());
    assert_eq!(code, "timeout");
    assert!(matches!(cancelled, Heard::Message(HubToFoot::Cancel(cancel)) if cancel.call == request.call));
}

#[tokio::test(start_paused = true)]
async fn a_request_does_not_wait_for_a_foot_that_went_away() {
    let (hub, mut foot) = stage(json!({})).await;
    let server = hub.server("ada", "git").await;
    let mut asking = read(&hub).await;
    let request = hear!(foot, Request);
    let (mut back, welcome) = foot.resume(&hub, "ada", &[]).await;
    assert!(welcome.resumed);
    assert_eq!(asking.code().await, "server_unavailable");
    respond(&mut back, &request, json!({"result": {}})).await;
    drop((foot, back));
    hub.settles(|counts| counts.connections == 0).await;
    let mut asking = Asking::of(&hub, "ada", server.clone(), "{}", None);
    assert_eq!(asking.code().await, "server_unavailable");
    tokio::time::sleep(2 * RESUME_GRACE).await;
    let mut asking = Asking::of(&hub, "ada", server, "{}", None);
    assert_eq!(asking.code().await, "server_unavailable");
    hub.ends_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_works_for_those_its_foot_works_for() {
    let (hub, mut foot) = stage(json!({})).await;
    let server = hub.server("ada", "git").await;
    let mut asking = Asking::of(&hub, "bob", server.clone(), "{}", None);
    assert_eq!(asking.code().await, "not_found");
    foot.say_text(r#"{"type":"servers","servers":[]}"#).await;
    foot.offer(1, &["x"]).await;
    let mut asking = Asking::of(&hub, "ada", server, "{}", None);
    assert_eq!(asking.code().await, "server_unavailable", "the server is gone");
}

#[tokio::test(start_paused = true)]
async fn long_requests_and_answers_travel_in_parts() {
    let (hub, mut foot) = stage(json!({})).await;
    let long = "x".repeat(3 * MAX_FRAME_BYTES);
    let params = json!({"uri": long}).to_string();
    let mut asking = Asking::of(&hub, "ada", hub.server("ada", "git").await, &params, None);
    let request = hear!(foot, Request);
    assert_eq!(request.params.get(), params);
    let response = format!(r#"{{"type":"response","call":"{}","result":{{"text":"{long}"}}}}"#, request.call);
    let id = request.call.to_bytes().unwrap();
    say_long(&mut foot, id, &FootToHub::decode(&response).unwrap().encode()).await;
    assert_eq!(asking.end().await.unwrap().get(), json!({"text": long}).to_string());
    assert_eq!(hub.registry.core.node.parts.used(), 0);
}

/// Hears a request for a list.
async fn hear_list(foot: &mut TestFoot, method: &str) -> Request {
    let request = hear!(foot, Request);
    assert_eq!((request.method.as_str(), request.caller.client.is_none()), (method, true));
    request
}

fn texts(list: &[Raw]) -> Vec<&str> {
    list.iter().map(|entry| entry.get()).collect()
}

#[tokio::test(start_paused = true)]
async fn lists_are_fetched_page_by_page_and_again_when_they_change() {
    let (hub, mut foot) = stage(json!({"resources": {}})).await;
    let server = hub.server("ada", "git").await;
    let mut notes = server.notes();
    let mut changes = hub.surfaces.follow();
    let first = hear_list(&mut foot, "resources/list").await;
    assert_eq!(first.params.get(), "{}");
    respond(&mut foot, &first, json!({"resources": 1, "result": {"resources": [{"uri": "a"}, 7], "nextCursor": "2"}}))
        .await;
    let second = hear_list(&mut foot, "resources/list").await;
    assert_eq!(second.params.get(), r#"{"cursor":"2"}"#);
    respond(&mut foot, &second, json!({"result": {"resources": [{"uri": "b"}]}})).await;
    let templates = hear_list(&mut foot, "resources/templates/list").await;
    respond(&mut foot, &templates, json!({"error": {"code": -32601, "message": "no"}})).await;
    assert!(matches!(notes.recv().await.unwrap(), McpNote::ListChanged));
    assert_eq!(texts(&server.listed(ListKind::Resources)), [r#"{"uri":"a"}"#, r#"{"uri":"b"}"#]);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();

    // However often it says so, it is asked once a second at most; prompts it has none.
    for list in ["resources", "prompts", "resources"] {
        let notify = json!({"type": "notify", "server": "git", "method": format!("notifications/{list}/list_changed"), "params": {}});
        foot.say_text(&notify.to_string()).await;
    }
    let again = hear_list(&mut foot, "resources/list").await;
    respond(&mut foot, &again, json!({"result": {"resources": [{"uri": "a"}, {"uri": "b"}]}})).await;
    let templates = hear_list(&mut foot, "resources/templates/list").await;
    respond(&mut foot, &templates, json!({"result": {"resourceTemplates": []}})).await;
    assert!(tokio::time::timeout(5 * SECOND, foot.hear()).await.is_err());
    assert!(!changes.has_changed().unwrap(), "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_none_and_the_last_one_stays() {
    let (hub, mut foot) = stage(json!({"prompts": {}})).await;
    let server = hub.server("ada", "git").await;
    let request = hear_list(&mut foot, "prompts/list").await;
    respond(&mut foot, &request, json!({"result": {"prompts": [{"name": "a"}]}})).await;
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(texts(&server.listed(ListKind::Prompts)), [r#"{"name":"a"}"#]);
    for answer in [json!({"prompts": [], "nextCursor": "1"}), json!({"prompts": 1})] {
        let text = r#"{"type":"notify","server":"git","method":"notifications/prompts/list_changed","params":{}}"#;
        foot.say_text(text).await;
        let pages = if answer["nextCursor"].is_null() { 1 } else { 2 };
        for _ in 0..pages {
            let request = hear_list(&mut foot, "prompts/list").await;
            respond(&mut foot, &request, json!({"result": answer})).await;
        }
        assert!(tokio::time::timeout(5 * SECOND, foot.hear()).await.is_err(), "no page is asked for twice");
        assert_eq!(texts(&server.listed(ListKind::Prompts)), [r#"{"name":"a"}"#]);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_take_too_much_are_bounded() {
    let hub = Hub::new().await;
    let servers = json!([{"name": "git", "capabilities": {"prompts": {}}}]);
    let mut foot = hub
        .foot_as("ada", Identity::new("dev"), |hello| {
            hello.share = Share::Project;
            with_servers(servers)(hello);
        })
        .await;
    let server = hub.server("bob", "git").await;
    for page in 0.. {
        let request = loop {
            match tokio::time::timeout(5 * SECOND, foot.hear()).await {
                Ok(Heard::Message(HubToFoot::Request(request))) => break Some(request),
                Ok(Heard::Message(HubToFoot::Credit(_))) => {}
                _ => break None,
            }
        };
        let Some(request) = request else { break };
        assert_eq!(request.caller.subject.as_str(), "ada", "the hub asks in the owner's name");
        let prompts: Vec<Value> = (0..1_500).map(|number| json!({"name": format!("p{page}x{number}")})).collect();
        respond(&mut foot, &request, json!({"result": {"prompts": prompts, "nextCursor": format!("{page}")}})).await;
    }
    assert_eq!(server.listed(ListKind::Prompts).len(), 10_000);
}
