//! What an older or newer peer may do without breaking this build, and what nobody may do.

use footbridge_shared::limits::MAX_FRAME_BYTES;
use footbridge_shared::message::{DecodeError, FootToHub, HubToFoot, InFlightState, Share, Tools};
use footbridge_shared::{ErrorCode, Outcome};

fn hello(extra: &str) -> String {
    let key = "A".repeat(43);
    format!(
        r#"{{"proof":"p","foot":{{"name":"dev","id":"{key}","instance":"i","version":"1","os":"o","arch":"a","hostname":"h"}},
            "tenant":"acme","project":"shop","maxConcurrent":4,"type":"hello"{extra}}}"#
    )
}

#[test]
fn a_hello_may_leave_out_what_has_a_default_and_name_its_type_last() {
    let Ok(FootToHub::Hello(hello)) = FootToHub::decode(&hello("")) else { panic!() };
    assert_eq!(hello.share, Share::Owner);
    assert!(hello.resume.is_none() && hello.in_flight.is_empty() && hello.servers.is_empty());
}

#[test]
fn fields_and_words_of_the_future_are_read_over() {
    let extra = r#","colour":{"a":[1]},"inFlight":[{"call":"c","state":"dreaming","origin":"o"}]"#;
    let Ok(FootToHub::Hello(hello)) = FootToHub::decode(&hello(extra)) else { panic!() };
    assert_eq!(hello.in_flight[0].state, InFlightState::Running, "the hub waits for what it does not understand");

    let failure = r#"{"type":"failure","call":"c","origin":"o","code":"brand_new","message":"m","outcome":"maybe"}"#;
    let Ok(FootToHub::Failure(failure)) = FootToHub::decode(failure) else { panic!() };
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Internal, Outcome::Unknown));
}

#[test]
fn a_share_that_is_not_understood_shares_nothing() {
    assert!(FootToHub::decode(&hello(r#","share":"everybody""#)).is_err());
}

#[test]
fn an_unknown_type_is_no_error_but_has_to_be_json() {
    for frame in [r#"{"type":"dance","step":1}"#, r#"{"step":1, "type" : "dance"}"#, r#"{"type":"d\u0061nce"}"#] {
        let Ok(HubToFoot::Unknown(kind)) = HubToFoot::decode(frame) else { panic!("{frame}") };
        assert_eq!(kind, "dance");
    }
    let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(1000));
    assert!(matches!(FootToHub::decode(&long), Ok(FootToHub::Unknown(kind)) if kind.len() == 64));
    for frame in ["", "null", "[]", r#"{"type":1}"#, r#"{"typ":"ping"}"#, r#"{"type":"dance""#, r#"{"type":"ping"}"#] {
        assert!(matches!(FootToHub::decode(frame), Err(DecodeError::Malformed(_))), "{frame}");
    }
}

#[test]
fn an_escaped_type_is_the_same_type() {
    assert!(matches!(FootToHub::decode(r#"{"type":"p\u0069ng","sentMs":1}"#), Ok(FootToHub::Ping(_))));
}

#[test]
fn a_frame_has_a_largest_size() {
    let frame = |bytes: usize| {
        let empty = r#"{"type":"bye","reason":""}"#;
        format!(r#"{{"type":"bye","reason":"{}"}}"#, "x".repeat(bytes - empty.len()))
    };
    assert!(FootToHub::decode_frame(&frame(MAX_FRAME_BYTES)).is_ok());
    assert!(matches!(FootToHub::decode_frame(&frame(MAX_FRAME_BYTES + 1)), Err(DecodeError::TooLarge(_))));
    assert!(FootToHub::decode(&frame(MAX_FRAME_BYTES + 1)).is_ok(), "from parts");
}

#[test]
fn one_odd_tool_entry_does_not_cost_the_others() {
    let good = r#"{"name":"uptime","description":"d","inputSchema":{"type":"object"}}"#;
    let frame = format!(
        r#"{{"type":"tools","revision":3,"upsert":[{{"name":"odd\u200b","labels":7}},{good},5],"remove":["x"]}}"#
    );
    assert!(FootToHub::decode(&frame).is_err());
    let Some((tools, rejected)) = Tools::decode_each(&frame) else { panic!() };
    assert_eq!((tools.revision, tools.upsert.len(), tools.remove.len()), (3, 1, 1));
    assert_eq!(tools.upsert[0].name, "uptime");
    assert_eq!(rejected.iter().map(|r| r.tool.as_str()).collect::<Vec<_>>(), ["odd\\u{200b}", ""]);
    assert!(rejected.iter().all(|r| r.code == ErrorCode::BadRequest));

    assert!(Tools::decode_each(r#"{"type":"bye","revision":3}"#).is_none());
    assert!(Tools::decode_each(r#"{"type":"tools","revision":"x"}"#).is_none());
}
