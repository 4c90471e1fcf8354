use super::*;
use footbridge_shared::message::{Ping, ToolsAck};

fn call(text: &str) -> Arc<CallFrame> {
    Arc::new(CallFrame::new(&CallId::from_bytes([1; 16]), text.to_owned()))
}

fn texts(outbox: &Outbox) -> Vec<String> {
    std::iter::from_fn(|| outbox.pop())
        .map(|frame| match frame {
            Frame::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn control_goes_before_small_and_small_before_bulk() {
    let outbox = Outbox::new(8);
    let bulk = "b".repeat(BULK_BYTES);
    assert_eq!(outbox.call(call(&bulk)), Ok(()));
    assert_eq!(outbox.call(call("small")), Ok(()));
    outbox.ack(CallId::parse("c").unwrap());
    outbox.control(Ping { sent_ms: 1 });
    assert_eq!(
        texts(&outbox),
        [r#"{"type":"ping","sentMs":1}"#, r#"{"type":"ack","call":"c"}"#, "small", bulk.as_str()]
    );
    assert_eq!(outbox.waiting(), Waiting::Nothing);
}

#[test]
fn an_acknowledgement_that_returns_bulk_does_not_wait() {
    let outbox = Outbox::new(8);
    let id = CallId::from_bytes([1; 16]);
    outbox.owe([1; 16], 1_000);
    outbox.ack(id.clone());
    assert_eq!(outbox.waiting(), Waiting::Acks);
    outbox.owe([1; 16], CREDIT_GROUP_BYTES);
    outbox.ack(id);
    assert_eq!(outbox.waiting(), Waiting::Frames);
    outbox.repay();
    assert_eq!(texts(&outbox).len(), 2, "no credit on top");
    outbox.ack(CallId::from_bytes([2; 16]));
    assert_eq!(outbox.waiting(), Waiting::Acks);
}

#[test]
fn a_full_outbox_refuses_calls_and_a_withdrawn_call_is_never_written() {
    let outbox = Outbox::new(2);
    let (first, second) = (call("1"), call("2"));
    assert_eq!(outbox.call(first.clone()), Ok(()));
    assert_eq!(outbox.call(second.clone()), Ok(()));
    assert_eq!(outbox.call(call("3")), Err(Full));
    assert!(first.withdraw());
    assert_eq!(texts(&outbox), ["2"]);
    assert!(second.was_written() && !second.withdraw());
    assert_eq!(outbox.call(call("4")), Ok(()));
}

#[test]
fn a_reader_that_stops_reading_ends_the_connection_and_frees_what_waited() {
    let outbox = Outbox::new(4);
    for revision in 0..100 {
        outbox.answer(ToolsAck { revision, rejected: Vec::new() });
    }
    assert!(outbox.ended() && outbox.waiting() == Waiting::Nothing);
    assert_eq!(outbox.take_ending(), Some(not_reading()));

    let outbox = Outbox::new(4);
    for _ in 0..100 {
        outbox.ack(CallId::parse("c").unwrap());
    }
    assert!(outbox.ended());
}

#[test]
fn the_first_reason_to_end_counts() {
    let outbox = Outbox::new(4);
    outbox.end(Ending::superseded());
    outbox.end(Ending::drained());
    assert_eq!(outbox.take_ending(), Some(Ending::superseded()));
    assert_eq!(outbox.call(call("late")), Err(Full));
}
