use serde_json::json;

use super::*;
use crate::cli::out::tests::Kept;
use crate::cli::scripted_hub::{Asked, ScriptedHub};

const DONE: &str =
    "event: result\ndata: {\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"isError\":false,\"durationMs\":3}\n\n";
const CANCELLED: &str = "event: result\ndata: {\"content\":[],\"isError\":true,\"code\":\"cancelled\",\
                         \"outcome\":\"unknown\",\"durationMs\":3}\n\n";

fn reply(value: serde_json::Value) -> InvokeReply<'static> {
    serde_json::from_value(value).unwrap()
}

fn request() -> InvokeRequest {
    InvokeRequest { arguments: None, timeout_ms: None, max_timeout_ms: None }
}

async fn followed(client: &Client, interrupts: Interrupts) -> Result<Followed, CliError> {
    followed_with(client, None, interrupts).await
}

async fn followed_with(client: &Client, key: Option<&str>, interrupts: Interrupts) -> Result<Followed, CliError> {
    let invocation = client.invoke("slow", &request(), key).await?;
    follow(client, invocation, interrupts, Live::new("slow", Format::Json)).await
}

fn never() -> Interrupts {
    Interrupts::of(futures::stream::pending())
}

#[test]
fn people_see_texts_and_are_told_what_else_there_is() {
    let content = json!([
        { "type": "text", "text": "first" },
        { "type": "image", "mimeType": "image/png", "data": "A".repeat(4000) },
        { "type": "resource", "resource": { "uri": "file:///a", "text": "second\n" } },
        { "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA", "mimeType": "x/y" } },
        { "type": "resource_link", "uri": "file:///c", "name": "c" },
        { "type": "novelty", "x": 1 },
    ]);
    let kept = Kept::default();
    let exit = ended(
        "t",
        &reply(json!({ "content": content, "isError": false, "durationMs": 1 })),
        &mut kept.out(Format::Text, false),
    );
    assert_eq!(exit.unwrap(), Exit::Done);
    insta::assert_snapshot!(kept.text(), @r#"
    first
    [image image/png, 2.9 KiB]
    second
    [resource file:///b x/y, 3 B]
    [link c: file:///c]
    {
      "type": "novelty",
      "x": 1
    }
    "#);
}

#[test]
fn a_reply_without_content_shows_its_structure() {
    let kept = Kept::default();
    let value =
        json!({ "content": [], "structured": { "value": 12345678901234567_u64 }, "isError": false, "durationMs": 1 });
    ended("t", &reply(value), &mut kept.out(Format::Text, false)).unwrap();
    assert_eq!(kept.text(), "{\n  \"value\": 12345678901234567\n}\n");
}

#[test]
fn a_failed_tool_is_exit_code_6_and_programs_get_the_whole_reply() {
    let failed = json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true, "code": "tool_failed",
        "outcome": "completed", "hint": "look", "durationMs": 1 });
    let (people, programs) = (Kept::default(), Kept::default());
    assert_eq!(ended("t", &reply(failed.clone()), &mut people.out(Format::Text, false)).unwrap(), Exit::ToolFailed);
    assert_eq!(people.text(), "", "nothing of a failure stands where a result is looked for");
    assert_eq!(ended("t", &reply(failed.clone()), &mut programs.out(Format::Json, false)).unwrap(), Exit::ToolFailed);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&programs.text()).unwrap(), failed);
    assert_eq!(failure("t", &reply(failed)), "error: t failed [tool_failed]\nhint: look");
}

#[tokio::test]
async fn a_call_is_followed_to_its_result() {
    let hub = ScriptedHub::start(|next| {
        let mut call = next();
        call.begin_events();
        call.say(": still here\n\nevent: progress\ndata: {\"progress\":1,\"total\":2}\n\nevent: out");
        call.say("put\ndata: {\"stream\":\"stdout\",\"data\":\"x\"}\n\nevent: novelty\ndata: {}\n\n");
        call.say(DONE);
        call.close()
    });
    let mut invocation = hub.client.invoke("slow", &request(), None).await.unwrap();
    assert_eq!(invocation.id.as_deref(), Some("call-1"));
    assert!(matches!(invocation.next().await.unwrap(), Update::Progress(p) if p.total == Some(2.0)));
    assert!(matches!(invocation.next().await.unwrap(), Update::Output(o) if o.data == "x" && o.skipped_bytes == 0));
    assert!(matches!(invocation.next().await.unwrap(), Update::Ended(reply) if !reply.is_error));
    let asked = hub.ended();
    assert!(asked.starts_with("POST /v1/local/main/tools/slow/invoke "), "{asked}");
    assert!(asked.contains("accept: text/event-stream\r\n"), "{asked}");
}

#[tokio::test]
async fn words_are_read_by_the_tools_own_schema() {
    let detail = json!({ "name": "t", "source": "client", "state": "active", "description": "", "labels": [],
        "primary": false, "inputSchema": { "properties": { "path": { "type": "string" } } }, "requiresRoles": [],
        "profiles": [], "timeoutMs": 1, "maxTimeoutMs": 1 });
    let hub = ScriptedHub::start(move |next| {
        next().answer("200 OK", "content-type: application/json\r\n", &detail.to_string());
        let problem = r#"{"type":"t","title":"t","status":403,"code":"forbidden","detail":"no"}"#;
        next().answer("403 Forbidden", "content-type: application/problem+json\r\n", problem)
    });
    let words: Vec<Word> = vec!["path=5".parse().unwrap()];
    let json = typed(&hub.client, "t", &words).await.map(|raw| raw.get().to_owned());
    assert_eq!(json.unwrap(), r#"{"path":"5"}"#);
    let json = typed(&hub.client, "t", &words).await.map(|raw| raw.get().to_owned());
    assert_eq!(json.unwrap(), r#"{"path":5}"#, "a schema that may not be read does not keep the call from being made");
    let forced: Vec<Word> = vec!["path:=5".parse().unwrap()];
    let asked = hub.client.clone();
    hub.ended();
    let json = typed(&asked, "t", &forced).await.map(|raw| raw.get().to_owned());
    assert_eq!(json.unwrap(), r#"{"path":5}"#, "no schema is needed, so none is asked for");
}

#[tokio::test]
async fn a_hub_that_does_not_stream_is_understood() {
    let body = r#"{"content":[],"isError":false,"durationMs":1}"#;
    let hub = ScriptedHub::start(|next| next().answer("200 OK", "content-type: application/json\r\n", body));
    assert!(!followed(&hub.client, never()).await.unwrap().reply.is_error);
    hub.ended();
}

#[tokio::test]
async fn an_error_event_is_the_hubs_problem() {
    let hub = ScriptedHub::start(|next| {
        let mut call = next();
        call.begin_events();
        call.say("event: error\ndata: {\"type\":\"t\",\"title\":\"t\",\"status\":503,\"code\":\"foot_unavailable\",\"detail\":\"gone\"}\n\n");
        call.close()
    });
    let error = followed(&hub.client, never()).await.map(|_| ()).unwrap_err();
    assert_eq!((error.exit(), error.to_string().as_str()), (Exit::ToolFailed, "gone"));
    hub.ended();
}

#[tokio::test]
async fn a_broken_stream_leaves_the_fate_unknown_and_says_where_to_look() {
    let hub = ScriptedHub::start(|next| {
        let mut call = next();
        call.begin_events();
        call.say("event: progress\ndata: {\"progress\":1}\n\n");
        call.close()
    });
    let error = followed(&hub.client, never()).await.map(|_| ()).unwrap_err();
    let told = error.told(Format::Text);
    assert!(told.contains("unknown") && told.contains("footbridge calls get call-1"), "{told}");
    hub.ended();
}

#[tokio::test]
async fn a_keyed_call_is_taken_up_again_behind_what_was_seen() {
    let hub = ScriptedHub::start(|next| {
        let mut call = next();
        assert!(call.request.contains("idempotency-key: k\r\n"), "{}", call.request);
        call.begin_events();
        call.say("id: 4\nevent: progress\ndata: {\"progress\":1}\n\nid: 5\nevent: pro");
        call.close();
        // A proxy says that the hub is not back yet.
        next().answer("502 Bad Gateway", "content-type: text/html\r\n", "<h1>soon</h1>");
        let mut again = next();
        again.begin_events();
        again.say(DONE);
        again.close()
    });
    let Followed { reply, .. } = followed_with(&hub.client, Some("k"), never()).await.unwrap();
    assert!(!reply.is_error);
    let asked = hub.ended();
    assert!(asked.starts_with("POST /v1/local/main/tools/slow/invoke "), "{asked}");
    assert!(asked.contains("idempotency-key: k\r\n"), "{asked}");
    assert!(asked.contains("last-event-id: 4\r\n"), "half an event was not seen: {asked}");
}

#[tokio::test]
async fn a_keyed_call_that_broke_before_it_was_answered_is_sent_again() {
    let hub = ScriptedHub::start(|next| {
        next().close();
        let mut again = next();
        assert!(again.request.contains("idempotency-key: k\r\n"), "{}", again.request);
        again.begin_events();
        again.say(DONE);
        again.close()
    });
    let Followed { reply, .. } = followed_with(&hub.client, Some("k"), never()).await.unwrap();
    assert!(!reply.is_error);
    hub.ended();
}

#[tokio::test]
async fn a_keyed_call_that_the_hub_refuses_by_now_is_not_sent_for_ever() {
    let hub = ScriptedHub::start(|next| {
        let mut call = next();
        call.begin_events();
        call.close();
        let problem = r#"{"type":"t","title":"t","status":404,"code":"not_found","detail":"no such call"}"#;
        next().answer("404 Not Found", "content-type: application/problem+json\r\n", problem)
    });
    let error = followed_with(&hub.client, Some("k"), never()).await.map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "no such call");
    hub.ended();
}

#[tokio::test]
async fn a_name_that_is_no_tool_is_answered_with_the_one_that_was_probably_meant() {
    let list = json!({ "tools": [{ "name": "file_read", "source": "client", "state": "active", "description": "", "labels": [],
        "primary": false }] });
    let hub = ScriptedHub::start(move |next| {
        next().answer("200 OK", "content-type: application/json\r\n", &list.to_string());
        next().answer("200 OK", "content-type: application/json\r\n", &list.to_string())
    });
    let problem: Problem =
        serde_json::from_value(json!({ "type": "t", "title": "t", "status": 404, "code": "unknown_tool",
        "detail": "no", "hint": "list them" }))
        .unwrap();
    let close = guessed(&hub.client, "file_raed", Box::new(problem.clone())).await;
    assert_eq!(close.hint.as_deref(), Some("did you mean `file_read`?"));
    let far = guessed(&hub.client, "xyz", Box::new(problem)).await;
    assert_eq!(far.hint.as_deref(), Some("list them"));
    hub.ended();
}

/// Waits until the call was cancelled, and answers that.
fn cancelled(next: &mut dyn FnMut() -> Asked, running: &str) {
    let view = json!({ "call": "call-1", "tool": "slow", "source": "client", "subject": "me",
        "startedAt": "2026-01-01T00:00:00Z", "state": running, "elapsedMs": 1 });
    let asked = next().answer("200 OK", "content-type: application/json\r\n", &view.to_string());
    assert!(asked.starts_with("DELETE /v1/local/main/calls/call-1 "), "{asked}");
}

#[tokio::test]
async fn ctrl_c_cancels_the_call_and_waits_for_its_end() {
    for (end, code) in [(CANCELLED, Some(ErrorCode::Cancelled)), (DONE, None)] {
        let hub = ScriptedHub::start(move |next| {
            let mut call = next();
            call.begin_events();
            cancelled(next, "running");
            call.say(end);
            call.close()
        });
        let once = Interrupts::of(futures::stream::iter([()]));
        let Followed { reply, cancelled } = followed(&hub.client, once).await.unwrap();
        assert!(cancelled);
        assert_eq!(reply.code, code, "a call that ended before it heard of this keeps its result");
        hub.ended();
    }
}

#[tokio::test]
async fn a_second_ctrl_c_does_not_wait() {
    let hub = ScriptedHub::start(|next| {
        let mut call = next();
        call.begin_events();
        // Neither the call nor the cancel is ever answered.
        (call, next())
    });
    let twice = Interrupts::of(futures::stream::iter([(), ()]));
    let error = tokio::time::timeout(CANCEL_PATIENCE / 2, followed(&hub.client, twice)).await.unwrap();
    assert_eq!(error.map(|_| ()).unwrap_err().exit(), Exit::Interrupted);
}
