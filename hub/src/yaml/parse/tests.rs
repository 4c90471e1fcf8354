use proptest::prelude::*;
use serde_json::json;

use super::*;

fn json_of(text: &str) -> serde_json::Value {
    match parse(text) {
        Ok(node) => node.to_json(),
        Err(problem) => panic!("{problem:?}"),
    }
}

fn problem(text: &str) -> (u32, u32, String, String) {
    match parse(text) {
        Ok(node) => panic!("{text:?} was read as {node:?}"),
        Err(p) => (p.at.line, p.at.column, p.key.to_string(), p.message),
    }
}

#[test]
fn scalars_are_never_retyped() {
    let value = json_of(
        "a: no\nb: on\nc: True\nd: 010\ne: 1_000\nf: 0x1f\ng: .inf\nh: +1\ni: 1.\nj: 12:30:00\nk: 2026-11-29\nl: NULL\n",
    );
    for (key, text) in [
        ("a", "no"),
        ("b", "on"),
        ("c", "True"),
        ("d", "010"),
        ("e", "1_000"),
        ("f", "0x1f"),
        ("g", ".inf"),
        ("h", "+1"),
        ("i", "1."),
        ("j", "12:30:00"),
        ("k", "2026-11-29"),
        ("l", "NULL"),
    ] {
        assert_eq!(value[key], text, "{key}");
    }
    assert_eq!(
        json_of("[true, false, null, ~, -0, 0, 12, 1.5e3]"),
        json!([true, false, null, null, -0.0, 0, 12, 1.5e3])
    );
    assert_eq!(json_of("a:\nb: '1'\nc: \"true\"\n"), json!({"a": null, "b": "1", "c": "true"}));
    assert_eq!(json_of("1.10: x\nno: y\n"), json!({"1.10": "x", "no": "y"}));
    assert_eq!(json_of("18446744073709551615"), json!(u64::MAX));
}

#[test]
fn a_number_remembers_how_it_is_written() {
    let node = parse("version: 1.10").ok().and_then(|n| n.get("version").map(Node::describe));
    assert_eq!(node.as_deref(), Some("the number `1.10`"));
}

#[test]
fn a_key_that_stands_twice_is_an_error_wherever_it_stands() {
    let nested = "type: rest\nparameters:\n  headers: { X-Mode: dry, X-Mode: real }\n";
    let (line, column, key, message) = problem(nested);
    assert_eq!((line, column, key.as_str()), (3, 27, "parameters.headers.X-Mode"));
    assert!(message.contains("twice") && message.contains("line 3"), "{message}");

    let (line, column, key, _) = problem("enabled: false\ntype: rest\nenabled: true\n");
    assert_eq!((line, column, key.as_str()), (3, 1, "enabled"));
    // In JSON too, and however the key is quoted.
    assert_eq!(problem("{\"a\": 1,\n \"a\": 2}").0, 2);
    assert_eq!(problem("a: 1\n\"a\": 2").2, "a");
    assert_eq!(problem("l:\n - x: 1\n - y: 1\n   y: 2\n").2, "l[1].y");
}

#[test]
fn what_yaml_can_hide_things_in_is_refused() {
    for (text, line, word) in [
        ("a: &x 1\nb: *x", 1, "anchor"),
        ("a: 1\nb: *nothing", 2, "alias"),
        ("base: {}\nb:\n  <<: {a: 1}", 3, "merge key"),
        ("a: !!str 1.10", 1, "tag"),
        ("a: !Ref x", 1, "tag"),
        ("---\na: 1\n---\nb: 2", 3, "second document"),
        ("\u{feff}a: 1", 1, "byte order mark"),
        ("%YAML 1.1\n---\na: no", 1, "directive"),
        ("? [a, b]\n: 1", 1, "key must be a text"),
        (": 1", 1, "key is missing"),
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("a: 123456789012345678901234567890", 1, "digits"),
        ("a: 1e999", 1, "too large"),
        ("a:\n\tb: 1", 2, "tab"),
        ("a: [1, 2", 1, "well-formed"),
        ("a: \"x", 1, "well-formed"),
        ("a: b: c", 1, "well-formed"),
    ] {
        let (at, _, _, message) = problem(text);
        assert!(message.to_lowercase().contains(word), "{text:?}: {message}");
        assert!(at >= line, "{text:?}: line {at}");
    }
}

#[test]
fn size_depth_and_number_of_values_are_bounded() {
    assert!(problem(&"x".repeat(MAX_DOCUMENT_BYTES + 1)).3.contains("bytes"));
    assert!(problem(&"[".repeat(100_000)).0 == 1);
    let deep = (0..100).map(|n| format!("{}k:\n", " ".repeat(n))).collect::<String>();
    assert!(!problem(&deep).3.is_empty());
    assert!(problem(&format!("[{}]", "1,".repeat(MAX_NODES))).3.contains("values"));
}

#[test]
fn json_is_read_as_json() {
    let text = "{\n\t\"name\": \"x\\/y \\ud83d\\ude00\",\n\t\"list\": [1, -2.5e3, true, null, {}],\n\t\"deep\": {\"a\": {\"b\": []}}\n}\n";
    assert_eq!(
        json_of(text),
        json!({"name": "x/y 😀", "list": [1, -2500.0, true, null, {}], "deep": {"a": {"b": []}}})
    );
    let windows = "type: scripted\r\nparameters:\r\n  source: |\r\n    a\r\n    b\r\n";
    assert_eq!(json_of(windows)["parameters"]["source"], "a\nb\n");
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[ -~é漢\n\t]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[ -~]{0,8}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever comes in: a tree or a place, never a panic.
    #[test]
    fn any_text_gives_a_tree_or_a_place(text in "\\PC{0,200}|[-:{}\\[\\],&*!|>'\"#%@`\n\t a-c0-9.~<?]{0,200}") {
        if let Err(problem) = parse(&text) {
            prop_assert!(problem.at.line >= 1 && problem.at.column >= 1);
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
            prop_assert!(problem.at.line as usize <= lines + 1, "line {} of {lines}", problem.at.line);
        }
    }

    /// JSON means the same here as to a JSON reader, compact and indented.
    #[test]
    fn json_survives(value in any_json()) {
        let compact = value.to_string();
        let pretty = serde_json::to_string_pretty(&value)?;
        for text in [compact, pretty] {
            match parse(&text) {
                Ok(node) => prop_assert_eq!(node.to_json(), value.clone(), "{}", text),
                Err(problem) => prop_assert!(false, "{text}: {problem:?}"),
            }
        }
    }
}
