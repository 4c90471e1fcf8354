use proptest::prelude::*;

use super::*;
use crate::Fields;

fn raw(text: &str) -> Raw {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// JSON as texts may write it, with what a reader that takes it apart would lose.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.10".to_owned()),
        Just("9007199254740993".to_owned()),
        Just("1e400".to_owned()),
        Just("-0".to_owned()),
        Just("\"\\u00e9\\/\"".to_owned()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let key = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec((key, inner), 0..5).prop_map(|fields| {
                let fields: Vec<_> = fields.into_iter().map(|(name, value)| format!("{name} :{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(|number| RequestId::of(&number.to_string()).unwrap()),
        any::<String>().prop_map(|text| RequestId::of(&serde_json::to_string(&text).unwrap()).unwrap()),
        Just(RequestId::of("\"\\u0061\"").unwrap()),
    ]
}

fn params() -> impl Strategy<Value = Option<Raw>> {
    prop::option::of(json().prop_filter("null says nothing", |text| text != "null").prop_map(|text| raw(&text)))
}

fn message() -> impl Strategy<Value = Message> {
    let error = (any::<i64>(), any::<String>(), prop::option::of(json())).prop_map(|(code, message, data)| RpcError {
        code,
        message,
        data: data.map(|data| raw(&data)),
    });
    prop_oneof![
        (id(), any::<String>(), params()).prop_map(|(id, method, params)| Message::Request { id, method, params }),
        (any::<String>(), params()).prop_map(|(method, params)| Message::Notification { method, params }),
        (id(), json()).prop_map(|(id, result)| Message::Response { id: Some(id), outcome: Ok(raw(&result)) }),
        (prop::option::of(id()), error).prop_map(|(id, error)| Message::Response { id, outcome: Err(error) }),
    ]
}

proptest! {
    #[test]
    fn every_message_comes_back_as_it_was(message in message()) {
        let text = message.to_text();
        prop_assert!(!text.contains('\n'));
        let back = Message::parse(&text).unwrap();
        prop_assert_eq!(format!("{back:?}"), format!("{message:?}"));
        prop_assert_eq!(back.to_text(), text);
    }

    #[test]
    fn what_is_not_touched_of_an_object_keeps_its_text(fields in prop::collection::vec(("[a-z]{1,4}", json()), 0..40)) {
        let text: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\": {value} ")).collect();
        let object = Fields::of(&raw(&format!("{{{}}}", text.join(",")))).unwrap();
        for (name, value) in object.iter() {
            let last = fields.iter().rev().find(|(field, _)| field == name).unwrap();
            prop_assert_eq!(value.get(), last.1.as_str());
        }
        let names: Vec<_> = object.iter().map(|(name, _)| name).collect();
        let mut firsts: Vec<&str> = Vec::new();
        for (name, _) in &fields {
            if !firsts.contains(&name.as_str()) {
                firsts.push(name);
            }
        }
        prop_assert_eq!(names, firsts);
    }

    #[test]
    fn nothing_breaks_the_reader(text: String) {
        let _ = Message::parse_all(&text);
    }
}

#[test]
fn what_a_message_carries_stays_the_text_that_came() {
    let params = r#"{"z":1.10,"a":9007199254740993,"e":"\u00e9","big":1e400}"#;
    let Message::Request { params: Some(read), id, .. } =
        Message::parse(&format!(r#"{{"method":"m","params":{params},"id":"\u0031","jsonrpc":"2.0"}}"#)).unwrap()
    else {
        panic!()
    };
    assert_eq!((read.get(), id.as_json()), (params, r#""\u0031""#));
}

#[test]
fn line_ends_between_values_are_spaces_on_the_line() {
    let message =
        Message::Notification { method: "m".to_owned(), params: Some(raw("{\n  \"a\": \"x\\ny\",\r\n \"b\":1}")) };
    assert_eq!(message.to_text(), r#"{"jsonrpc":"2.0","method":"m","params":{   "a": "x\ny",   "b":1}}"#);
}

#[test]
fn what_is_no_message_is_refused_with_its_code() {
    for (text, code) in [
        ("", PARSE_ERROR),
        ("{", PARSE_ERROR),
        (r#"{"jsonrpc":"2.0","method":"m"} {}"#, PARSE_ERROR),
        ("7", INVALID_REQUEST),
        ("{}", INVALID_REQUEST),
        (r#"{"jsonrpc":"1.0","method":"m"}"#, INVALID_REQUEST),
        (r#"{"method":"m"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":7}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":"m","id":null}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":"m","id":{}}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":"m","id":true}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":"m","method":"n"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","method":"m","result":{}}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","result":{}}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
        ("[]", INVALID_REQUEST),
        (r#"[{"jsonrpc":"2.0","method":"m"},7]"#, INVALID_REQUEST),
    ] {
        let refused = Message::parse_all(text).unwrap_err();
        assert_eq!(refused.code, code, "{text}: {refused}");
    }
}

#[test]
fn an_id_that_is_very_long_is_none() {
    let read = |bytes: usize| RequestId::of(&format!(r#""{}""#, "x".repeat(bytes - 2)));
    assert!(read(MAX_ID_BYTES).is_some() && read(MAX_ID_BYTES + 1).is_none());
    assert!(NO_ID.contains(&MAX_ID_BYTES.to_string()));
}

#[test]
fn a_batch_is_several_messages_and_a_null_result_is_one() {
    let batch = r#" [{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","id":1,"result":null}]"#;
    let messages = Message::parse_all(batch).unwrap();
    assert!(matches!(&messages[0], Message::Notification { params: None, .. }));
    assert!(matches!(&messages[1], Message::Response { outcome: Ok(result), .. } if result.get() == "null"));
}

#[test]
fn ids_that_servers_wrote_otherwise_are_still_ours() {
    for json in ["7", "\"7\"", "7.0"] {
        assert_eq!(RequestId::of(json).unwrap().as_number(), Some(7), "{json}");
    }
    for json in ["-7", "\"x\"", "7.5", "\"\""] {
        assert_eq!(RequestId::of(json).unwrap().as_number(), None, "{json}");
    }
}

#[test]
fn a_batch_has_so_many_messages_at_most() {
    let batch = |messages| format!("[{}]", vec![r#"{"jsonrpc":"2.0","method":"m"}"#; messages].join(","));
    assert_eq!(Message::parse_all(&batch(MAX_BATCH_MESSAGES)).unwrap().len(), MAX_BATCH_MESSAGES);
    let refused = Message::parse_all(&batch(MAX_BATCH_MESSAGES + 1)).unwrap_err();
    assert!(refused.code == INVALID_REQUEST && refused.message.contains("at most"), "{refused}");
    assert_eq!(Message::parse_all("[1]x").unwrap_err().code, PARSE_ERROR);
}

#[test]
fn of_a_batch_that_is_too_long_those_messages_count_that_can_be_read() {
    let id = RequestId::number;
    let all = Outlined::all(br#" [{"id":1,"result":{}},{"id":2,"method":"m"},{"method":"n"},{"id":3,"res"#);
    assert_eq!(all, [Outlined::Response(id(1)), Outlined::Request(id(2)), Outlined::Other]);
    assert_eq!(Outlined::all(br#"{"id":1,"result":{}}"#), [Outlined::Response(id(1))]);
    assert_eq!(Outlined::all(b"[1]"), []);
}
