use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "limit": { "type": "integer" },
            "ratio": { "type": "number" },
            "recursive": { "type": "boolean" },
            "filter": { "type": "object" },
            "labels": { "type": "array", "items": { "type": "string" } },
            "rows": { "type": "array", "items": { "$ref": "#/$defs/count" } },
            "count": { "$ref": "#/$defs/count" },
            "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "version": { "type": ["string", "number"] },
            "mode": { "enum": ["a", "b"] },
            "level": { "enum": [1, 2] },
            "loop": { "$ref": "#/properties/loop" },
            "free": {},
        },
        "$defs": { "count": { "allOf": [{ "description": "how many" }, { "type": "integer", "minimum": 0 }] } },
    })
}

fn with(schema: Option<&Value>, words: &[&str]) -> Result<String, String> {
    let words: Result<Vec<Word>, String> = words.iter().map(|word| word.parse()).collect();
    object(&words?, schema).map(|raw| raw.get().to_owned()).map_err(|error| error.to_string())
}

#[test]
fn a_value_is_read_as_the_schema_wants_it() {
    for (word, json) in [
        ("path=README.md", r#"{"path":"README.md"}"#),
        ("path=42", r#"{"path":"42"}"#),
        ("path=a=b", r#"{"path":"a=b"}"#),
        ("path=", r#"{"path":""}"#),
        (r#"path="quoted""#, r#"{"path":"\"quoted\""}"#),
        ("limit=10", r#"{"limit":10}"#),
        ("limit=5.0", r#"{"limit":5.0}"#),
        ("limit=123456789012345678901234567890", r#"{"limit":123456789012345678901234567890}"#),
        ("ratio=1.50", r#"{"ratio":1.50}"#),
        ("ratio=3", r#"{"ratio":3}"#),
        ("recursive=true", r#"{"recursive":true}"#),
        (r#"filter={"a":[1]}"#, r#"{"filter":{"a":[1]}}"#),
        ("labels=web", r#"{"labels":["web"]}"#),
        (r#"labels=["a","b"]"#, r#"{"labels":["a","b"]}"#),
        ("rows=7", r#"{"rows":[7]}"#),
        ("count=7", r#"{"count":7}"#),
        ("maybe=null", r#"{"maybe":null}"#),
        ("version=1.10", r#"{"version":"1.10"}"#),
        ("version:=1.10", r#"{"version":1.10}"#),
        ("mode=a", r#"{"mode":"a"}"#),
        ("level=2", r#"{"level":2}"#),
        ("free=5", r#"{"free":5}"#),
        ("free=five", r#"{"free":"five"}"#),
        ("loop=x", r#"{"loop":"x"}"#),
        ("unknown=true", r#"{"unknown":true}"#),
        ("unknown=[1,", r#"{"unknown":"[1,"}"#),
    ] {
        assert_eq!(with(Some(&schema()), &[word]).as_deref(), Ok(json), "{word}");
    }
}

#[test]
fn what_cannot_be_what_the_schema_wants_is_refused_by_name() {
    for (word, error) in [
        ("limit=ten", "`limit` takes a whole number, and `ten` is not"),
        ("limit=1.5", "`limit` takes a whole number, and `1.5` is not"),
        ("recursive=yes", "`recursive` takes true or false, and `yes` is not"),
        ("filter=[1]", "`filter` takes a JSON object, and `[1]` is not"),
        ("rows=x", "`rows` takes a whole number, and `x` is not"),
        ("maybe=x", "`maybe` takes a whole number or null, and `x` is not"),
        ("limit:=ten", "the value of `limit` is no JSON: expected ident at line 1 column 2"),
        ("README.md", "`README.md` is no `key=value`; use `key=value` or `key:=json`"),
        ("=x", "`=x` has no key before its `=`"),
        (":=x", "`:=x` has no key before its `=`"),
    ] {
        assert_eq!(with(Some(&schema()), &[word]), Err(error.to_owned()));
    }
}

#[test]
fn a_key_may_stand_again_for_a_list_only() {
    let schema = schema();
    assert_eq!(
        with(Some(&schema), &["labels=a", "path=x", "labels=b", r#"labels=["c"]"#]).as_deref(),
        Ok(r#"{"labels":["a","b","c"],"path":"x"}"#)
    );
    assert_eq!(
        with(Some(&schema), &["path=x", "path=y"]),
        Err("`path` stands more than once, and takes one value".into())
    );
    assert!(with(None, &["x=1", "x=2"]).is_err());
}

#[test]
fn without_a_schema_json_is_json_and_the_rest_is_text() {
    assert_eq!(with(None, &["a=1", "b=x", "c=null"]).as_deref(), Ok(r#"{"a":1,"b":"x","c":null}"#));
    assert_eq!(with(Some(&json!(true)), &["a=1"]).as_deref(), Ok(r#"{"a":1}"#));
    assert_eq!(with(None, &[]).as_deref(), Ok("{}"));
}

#[test]
fn a_whole_object_passes_as_it_is() {
    let digits = r#"{"n": 12345678901234567890123}"#;
    assert_eq!(whole(digits).unwrap().get(), digits);
    assert!(whole("[1]").is_err());
    assert!(whole("{").is_err());
}
