use footbridge_mcp::Version;

use super::accepted::MAX_ACCEPTED;
use super::*;

fn raw(text: &str) -> Raw {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn description() -> McpDescription {
    McpDescription { version: Version::LATEST, info: raw("{}"), capabilities: raw("{}"), instructions: None }
}

struct Listings {
    listed: Listed,
    accepted: Accepted,
}

impl Listings {
    fn new() -> Self {
        Self { listed: Listed::default(), accepted: Accepted::default() }
    }

    fn list(&mut self, tools: &[&str], accept: bool) -> bool {
        self.list_with(tools, [vec![], vec![], vec![]], accept)
    }

    fn list_with(&mut self, tools: &[&str], others: [Vec<Raw>; 3], accept: bool) -> bool {
        let (server, pack) = (Weak::new(), EntryName::parse("lab").unwrap());
        let making = Making { server: &server, pack: &pack, timeout: None };
        let entries = Entries { tools: tools.iter().map(|tool| raw(tool)).collect(), others: others.map(Ok) };
        let listed = assemble(&making, description(), entries, &self.listed, &mut self.accepted, accept);
        let same = unchanged(&self.listed, &listed);
        self.listed = listed;
        !same
    }

    fn shown(&self) -> Vec<String> {
        let mark = |tool: &Tool| if tool.spec.changed { "!" } else { "" };
        let tools = self.listed.tools.iter();
        tools.map(|tool| format!("{}{}", tool.spec.original_name.as_deref().unwrap_or_default(), mark(tool))).collect()
    }
}

const A: &str = r#"{"name":"a","description":"reads","inputSchema":{"type":"object"}}"#;
const A_OTHERWISE: &str = r#"{"name":"a","description":"reads and deletes","inputSchema":{"type":"object"}}"#;
const B: &str = r#"{"name":"b","inputSchema":{"type":"object"},"icons":[1.10],"_meta":{"x":1},"title":"B","annotations":{"readOnlyHint":true},"outputSchema":{"type":"object"}}"#;

#[test]
fn what_did_not_change_is_the_same() {
    let mut listings = Listings::new();
    assert!(listings.list(&[A, B], false));
    let before = listings.listed.clone();
    assert!(!listings.list(&[A, B], false));
    assert!(Arc::ptr_eq(&before.tools, &listings.listed.tools));
    assert!(listings.list(&[B, A], false), "another order is another listing");
    assert!(Arc::ptr_eq(&before.tools[1], &listings.listed.tools[0]), "of the same tools");
    assert_eq!(listings.shown(), ["b", "a"]);
}

#[test]
fn a_tool_that_changed_is_marked_until_somebody_has_looked() {
    let mut listings = Listings::new();
    listings.list(&[A], false);
    listings.list(&[A_OTHERWISE, B], false);
    assert_eq!(listings.shown(), ["a!", "b"], "a new tool is not a changed one");
    listings.list(&[], false);
    listings.list(&[A_OTHERWISE], false);
    assert_eq!(listings.shown(), ["a!"], "nor is it another one for having been away");
    listings.list(&[A], false);
    assert_eq!(listings.shown(), ["a"], "it is again what it was");
    listings.list(&[A_OTHERWISE], true);
    assert_eq!(listings.shown(), ["a"]);
    listings.list(&[A], false);
    assert_eq!(listings.shown(), ["a!"]);
}

#[test]
fn an_odd_entry_costs_itself() {
    let mut listings = Listings::new();
    let long = format!(r#"{{"name":"{}","inputSchema":{{}}}}"#, "x".repeat(600));
    let odd = ["1", "{}", r#"{"name":""}"#, r#"{"name":"c"}"#, r#"{"name":"d","inputSchema":[]}"#, A_OTHERWISE, &long];
    let entries: Vec<&str> = [A].into_iter().chain(odd).chain([B]).collect();
    listings.list(&entries, false);
    assert_eq!(listings.shown(), ["a", "b"]);
    assert_eq!(listings.listed.left_out, odd.len());
    assert!(listings.listed.odd.contains(&"`a` stands twice".to_owned()), "{:?}", listings.listed.odd);
    assert!(listings.listed.odd.contains(&"`c` has no input schema".to_owned()));
}

#[test]
fn an_entry_with_a_part_that_is_too_large_costs_itself() {
    let mut listings = Listings::new();
    let large = "x".repeat(MAX_PART_BYTES);
    let with = |name: &str, part: &str| format!(r#"{{"name":"{name}","inputSchema":{{}},{part}}}"#);
    let odd = [
        format!(r#"{{"name":"i","inputSchema":{{"title":"{large}"}}}}"#),
        with("o", &format!(r#""outputSchema":{{"title":"{large}"}}"#)),
        with("n", &format!(r#""annotations":{{"title":"{large}"}}"#)),
        with("m", &format!(r#""_meta":{{"a":"{large}"}}"#)),
        with("c", &format!(r#""icons":["{large}"]"#)),
    ];
    let entries: Vec<&str> = odd.iter().map(String::as_str).chain([A]).collect();
    let other = || vec![raw(&format!(r#"{{"uri":"{large}"}}"#)), raw(r#"{"uri":"x:y"}"#)];
    listings.list_with(&entries, [other(), other(), other()], false);
    assert_eq!(listings.shown(), ["a"]);
    for kind in ListKind::ALL {
        let shown: Vec<&str> = listings.listed.of(kind).iter().map(|entry| entry.get()).collect();
        assert_eq!(shown, [r#"{"uri":"x:y"}"#], "{kind:?}");
    }
    assert_eq!(listings.listed.left_out, odd.len() + 3);
    assert!(listings.listed.odd.contains(&"`o` is too large: its output schema".to_owned()));
    assert!(listings.listed.odd.contains(&"an entry of `prompts` is too large".to_owned()));
}

#[test]
fn everything_of_a_tool_is_kept() {
    let mut listings = Listings::new();
    listings.list(&[B], false);
    let spec = &listings.listed.tools[0].spec;
    assert_eq!(spec.title.as_deref(), Some("B"));
    assert_eq!(spec.annotations.as_ref().unwrap().get(), r#"{"readOnlyHint":true}"#);
    assert_eq!(spec.output_schema.as_ref().unwrap().get(), r#"{"type":"object"}"#);
    assert_eq!(spec.extra.as_ref().unwrap().get(), r#"{"icons":[1.10],"_meta":{"x":1}}"#);
    assert_eq!(spec.labels, ["mcp", "mcp:lab", "side-effect"]);
}

#[test]
fn what_is_remembered_of_tools_is_bounded_and_what_was_forgotten_is_not_trusted() {
    let (mut accepted, hash) = (Accepted::default(), blake3::hash(b"what it was"));
    let name = |n: usize| format!("tool {n}");
    for n in 0..=MAX_ACCEPTED {
        assert!(!accepted.changed(&name(n), hash, false), "a new tool is not a changed one");
    }
    let listed = [name(1)];
    accepted.forget(listed.iter());
    assert_eq!(accepted.known.len(), 1);
    assert!(!accepted.changed(&name(1), hash, false));
    assert!(accepted.changed(&name(2), hash, false), "it may have been another one");
    assert!(!accepted.changed(&name(2), hash, true));
    assert!(!accepted.changed(&name(2), hash, false), "somebody has looked");
}
