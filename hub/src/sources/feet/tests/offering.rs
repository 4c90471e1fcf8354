//! H03: what a foot offers is judged entry by entry.

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::MAX_FRAME_BYTES;
use footbridge_shared::message::{HubToFoot, RejectedTool};
use serde_json::{Value, json};

use super::harness::{Hub, hear, tool};

fn codes(rejected: &[RejectedTool]) -> Vec<(&str, ErrorCode)> {
    rejected.iter().map(|rejection| (rejection.tool.as_str(), rejection.code)).collect()
}

fn described(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

fn with_schema(name: &str, schema: Value) -> Value {
    json!({"name": name, "description": "", "inputSchema": schema})
}

#[tokio::test(start_paused = true)]
async fn reserved_look_alike_and_poisoned_tools() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "laptop-1").await;
    let poisoned = "Free space.\u{e0041}\u{e0042}\u{202e}\u{1b}[2J";
    let offered = json!([
        described("tool_list", "mine now"),
        described("web_search", "shadow"),
        described("read\u{200b}_file", "zero width"),
        described("disk_free", poisoned),
    ]);
    let ack = foot.change(1, offered, &[]).await;
    assert_eq!(
        codes(&ack.rejected),
        [
            ("tool_list", ErrorCode::ReservedName),
            ("web_search", ErrorCode::Shadowed),
            ("read\\u{200b}_file", ErrorCode::InvalidToolName),
        ]
    );
    assert_eq!(hub.names("ada").await, ["disk_free", "laptop_1__disk_free"]);
    let spec = &hub.tool("ada", "disk_free").await.unwrap().spec;
    assert_eq!(spec.description, "Free space.[2J");
    let mut call = hub.call("ada", "disk_free", json!({})).await;
    let asked = hear!(foot, Call);
    foot.answer(&asked, "plenty").await;
    assert_eq!(call.text().await, "plenty");
}

#[tokio::test(start_paused = true)]
async fn names_follow_their_rule() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let long = "x".repeat(65);
    for bad in ["", "A", "1a", "a-b", "a__b__c", "a___b", "__x", "x__", "аdmin", "tool_list__x", "whoami__x", &long] {
        let ack = foot.change(1, json!([tool(bad)]), &[]).await;
        assert_eq!(ack.rejected.len(), 1, "{bad}");
        foot.identity = foot.identity.restarted();
        foot = hub.foot_as("ada", foot.identity.clone(), |_| {}).await;
    }
    let ack = foot.offer(1, &["a", "git__log", "a_b1"]).await;
    assert!(ack.rejected.is_empty());
}

#[tokio::test(start_paused = true)]
async fn times_that_no_call_can_keep_are_rejected() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let timed = |name: &str, idle: Value, hard: Value| json!({"name": name, "description": "", "inputSchema": {"type": "object"}, "timeoutMs": idle, "maxTimeoutMs": hard});
    let null = Value::Null;
    let offered = json!([
        timed("no_time", json!(0), null.clone()),
        timed("no_hard_time", null.clone(), json!(0)),
        timed("for_ever", null.clone(), json!(u64::MAX)),
        timed("too_patient", json!(3_600_001), null.clone()),
        timed("beyond_its_end", json!(11), json!(10)),
        timed("longest", json!(3_600_000), json!(86_400_000)),
        timed("shortest", json!(1), json!(1)),
        timed("usual", null.clone(), null),
    ]);
    let ack = foot.change(1, offered, &[]).await;
    let bad = ["no_time", "no_hard_time", "for_ever", "too_patient", "beyond_its_end"];
    assert_eq!(codes(&ack.rejected), bad.map(|name| (name, ErrorCode::BadRequest)));
    assert_eq!(hub.names("ada").await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn schemas_describe_objects_and_fetch_nothing() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let bad = [
        json!(true),
        json!([]),
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["object", "null"]}),
        json!({"type": "object", "properties": 7}),
        json!({"type": "object", "properties": {"x": {"$ref": "https://example.invalid/x.json"}}}),
        json!({"type": "object", "properties": {"x": {"pattern": "("}}}),
        json!({"type": "object", "properties": {"x": {"pattern": "a".repeat(1025)}}}),
        json!({"type": "object", "patternProperties": {"a".repeat(1025): {}}}),
        json!({"type": "object", "allOf": vec![json!({"properties": {"x": {"pattern": "a"}}}); 101]}),
    ];
    let mut offered: Vec<Value> =
        bad.iter().enumerate().map(|(i, schema)| with_schema(&format!("odd{i}"), schema.clone())).collect();
    let recursive = json!({"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}},
        "$defs": {"t": {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}}}});
    offered.push(with_schema("tree", recursive.clone()));
    let word = json!({"type": "string", "pattern": "a".repeat(1024)});
    offered.push(with_schema("words", json!({"type": "object", "properties": {"pattern": word}})));
    let ack = foot.change(1, json!(offered), &[]).await;
    let expected: Vec<_> = (0..bad.len()).map(|i| format!("odd{i}")).collect();
    let expected: Vec<_> = expected.iter().map(|name| (name.as_str(), ErrorCode::InvalidToolSchema)).collect();
    assert_eq!(codes(&ack.rejected), expected);
    let kept = &hub.tool("ada", "tree").await.unwrap().spec.input_schema;
    assert_eq!(kept.get(), recursive.to_string(), "as it came");
}

#[tokio::test(start_paused = true)]
async fn hidden_text_in_a_schema_is_cleaned_where_it_is_text() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let schema = json!({"type": "object", "title": "Ti\u{200b}tle", "properties": {
        "description": {"type": "string", "description": "what\u{202e}", "enum": ["a\u{200b}"]}}});
    let ack = foot.change(1, json!([with_schema("note", schema)]), &[]).await;
    assert!(ack.rejected.is_empty());
    let kept: Value = serde_json::from_str(hub.tool("ada", "note").await.unwrap().spec.input_schema.get()).unwrap();
    let expected = json!({"type": "object", "title": "Title", "properties": {
        "description": {"type": "string", "description": "what", "enum": ["a\u{200b}"]}}});
    assert_eq!(kept, expected, "texts are cleaned, data is not");
}

#[tokio::test(start_paused = true)]
async fn changes_are_incremental_and_old_news_is_no_news() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["a", "b"]).await;
    foot.change(2, json!([tool("c")]), &["a"]).await;
    assert_eq!(hub.names("ada").await, ["b", "c", "dev__b", "dev__c"]);
    let before = hub.revision();
    for stale in [1, 2] {
        assert_eq!(foot.change(stale, json!([tool("z")]), &["b"]).await.revision, stale);
    }
    foot.change(3, json!([tool("b")]), &["nothing"]).await;
    assert_eq!(hub.revision(), before, "nothing changed");
    assert_eq!(hub.names("ada").await, ["b", "c", "dev__b", "dev__c"]);
    foot.change(4, json!([described("b", "new")]), &[]).await;
    assert_eq!(hub.revision(), before + 1);
    assert_eq!(hub.tool("ada", "dev__b").await.unwrap().spec.description, "new");
    // Removed and offered again in one message: it is there.
    foot.change(5, json!([tool("c")]), &["c"]).await;
    assert_eq!(hub.names("ada").await, ["b", "c", "dev__b", "dev__c"]);
}

#[tokio::test(start_paused = true)]
async fn a_bad_new_form_takes_the_old_one_along() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    foot.offer(1, &["a", "b"]).await;
    let ack = foot.change(2, json!([with_schema("a", json!(7))]), &[]).await;
    assert_eq!(codes(&ack.rejected), [("a", ErrorCode::InvalidToolSchema)]);
    assert_eq!(hub.names("ada").await, ["b", "dev__b"], "what is listed is what would run");
    let ack = foot.change(3, json!([tool("c"), described("c", "again"), {"name": "d", "labels": 1}]), &[]).await;
    assert_eq!(codes(&ack.rejected), [("d", ErrorCode::BadRequest), ("c", ErrorCode::AlreadyExists)]);
    assert_eq!(hub.tool("ada", "c").await.unwrap().spec.description, "Does c.", "the first one counts");
}

#[tokio::test(start_paused = true)]
async fn a_foot_offers_ten_thousand_tools_and_no_more() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let mut rejected = Vec::new();
    for (revision, start) in (0_u64..).zip((0..10_100).step_by(404)) {
        let names: Vec<String> = (start..start + 404).map(|i| format!("t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        rejected.extend(foot.offer(revision + 1, &names).await.rejected);
    }
    assert_eq!(rejected.len(), 100);
    assert!(rejected.iter().all(|rejection| rejection.code == ErrorCode::TooManyTools));
    assert_eq!(hub.names("ada").await.len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_many_bad_tools_fits_a_frame() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let offered: Vec<Value> = (0..1_000).map(|_| json!({"name": "", "description": "", "inputSchema": 1})).collect();
    let ack = foot.change(1, json!(offered), &[]).await;
    assert!(ack.rejected.len() < 1_000);
    assert!(ack.rejected.last().is_some_and(|last| last.message.contains("more tools were rejected")));
    assert!(HubToFoot::from(ack).encode().len() <= MAX_FRAME_BYTES);
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_rejection_quotes_little() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let odd = json!({"name": "odd", "description": "", "inputSchema": {}, "labels": "\u{202e}x".repeat(10_000)});
    let ack = foot.change(1, json!([odd]), &[]).await;
    let message = &ack.rejected[0].message;
    assert!(message.chars().count() <= 200 && !message.contains('\u{202e}'), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_spec_says_what_the_foot_said() {
    let hub = Hub::new().await;
    let mut foot = hub.foot("ada", "dev").await;
    let entry = json!({"name": "git__log", "originalName": "git.log", "title": "Log", "description": "Shows it.",
        "searchHint": "history", "promptHint": "Use git.", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "labels": ["b", "a", "b"],
        "primary": true, "requiresRoles": ["dev"], "profiles": ["cli"], "timeoutMs": 5, "maxTimeoutMs": 9});
    foot.change(1, json!([entry]), &[]).await;
    let bare = hub.tool("ada", "git__log").await.unwrap();
    assert_eq!(bare.spec.original_name.as_deref(), Some("git.log"));
    assert_eq!((bare.spec.title.as_deref(), bare.spec.search_hint.as_deref()), (Some("Log"), Some("history")));
    assert_eq!((bare.spec.prompt_hint.as_deref(), bare.spec.labels.join(" ")), (Some("Use git."), "a b".to_owned()));
    assert_eq!((&bare.spec.requires_roles, &bare.spec.profiles), (&vec!["dev".to_owned()], &vec!["cli".to_owned()]));
    assert_eq!((bare.spec.timeout.unwrap().as_millis(), bare.spec.max_timeout.unwrap().as_millis()), (5, 9));
    assert!(bare.spec.output_schema.is_some() && bare.spec.annotations.is_some() && bare.schema.is_none());
    assert!(bare.spec.primary && !bare.spec.deferred);
    let qualified = hub.tool("ada", "dev__git__log").await.unwrap();
    assert!(!qualified.spec.primary && qualified.spec.deferred);
}
