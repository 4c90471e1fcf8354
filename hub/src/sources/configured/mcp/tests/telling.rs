//! What a server says by itself: whom it reaches.

use footbridge_mcp::{Events as _, Tag};
use serde_json::value::RawValue;

use super::super::events::{Hearing, RunningCalls};
use super::*;

const SESSION: Version = Version::V2025_06_18;

/// A connection of a server as HTTP has it: each message names the call on whose stream it came.
struct Stream {
    hearing: Hearing,
    calls: Arc<RunningCalls>,
}

impl Stream {
    fn of(attachment: &Attachment, audience: Option<McpAudience>) -> Self {
        let calls = Arc::new(RunningCalls::default());
        let server = Arc::downgrade(attachment.server());
        Self { hearing: Hearing { server, audience, calls: calls.clone() }, calls }
    }

    fn say(&self, tag: Option<Tag>, method: &str, params: &str) {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        self.hearing.notification(tag, &format!("notifications/{method}"), Some(params));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_on_a_calls_own_stream_reaches_its_client_on_a_shared_connection_too() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let stream = Stream::of(&attachment, None);
    let ((ann, mut anns), (bob, mut bobs)) = (by("ann", SESSION, Some("1")), by("bob", SESSION, Some("2")));
    let (of_ann, _of_bob) = (stream.calls.begin(&ann), stream.calls.begin(&bob));
    stream.say(Some(of_ann.tag), "message", r#"{"data":"for ann"}"#);
    stream.say(None, "message", r#"{"data":"for nobody"}"#);
    assert_eq!(anns.recv().await.unwrap(), r#"notifications/message {"data":"for ann"}"#);
    assert!(anns.try_recv().is_err() && bobs.try_recv().is_err());
    lab.end().await;
}

#[tokio::test(start_paused = true)]
async fn word_of_a_resource_reaches_those_who_follow_it_whatever_call_it_came_with() {
    let lab = Lab::new();
    let attachment = lab.attach(SessionMode::Shared);
    ready(&attachment).await;
    let mut notes = attachment.server().notes();
    let (ann, mut told) = by("ann", SESSION, Some("1"));
    for audience in [None, Some(McpAudience::Subject(Subject::parse("ann").unwrap()))] {
        let stream = Stream::of(&attachment, audience.clone());
        let call = stream.calls.begin(&ann);
        stream.say(Some(call.tag), "resources/updated", r#"{"uri":"x:y"}"#);
        let Ok(McpNote::Told { audience: told, params, .. }) = notes.recv().await else { panic!("no note") };
        assert_eq!((told, params.get()), (audience.unwrap_or(McpAudience::Everybody), r#"{"uri":"x:y"}"#));
    }
    assert!(told.try_recv().is_err());
    lab.end().await;
}
