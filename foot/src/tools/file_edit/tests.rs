use crate::failure::Failure;
use crate::tools::ToolOutput;
use crate::tools::testing::{Tree, structured, texts};
use footbridge_shared::content::ContentHash;
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::{Value, json};

fn edit(tree: &Tree, edits: Value) -> Result<ToolOutput, Failure> {
    tree.run("file_edit", &json!({"path": "a.txt", "edits": edits}))
}

fn one(tree: &Tree, old: &str, new: &str) -> Result<ToolOutput, Failure> {
    edit(tree, json!([{"oldText": old, "newText": new}]))
}

fn content(tree: &Tree) -> String {
    std::fs::read_to_string(tree.path("a.txt")).unwrap()
}

#[test]
fn the_answer_tells_lines_hashes_and_shows_the_change() {
    let tree = Tree::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let output = one(&tree, "two\n", "2\n2.5\n").unwrap();
    let (old, new) = ("one\ntwo\nthree\n", "one\n2\n2.5\nthree\n");
    assert_eq!(content(&tree), new);
    let expected = json!({"path": "a.txt", "bytes": new.len(), "hash": ContentHash::of(new.as_bytes()),
        "previousHash": ContentHash::of(old.as_bytes()), "replaced": 1, "lines": [{"from": 2, "to": 3}]});
    assert_eq!(structured(&output), expected);
    assert_eq!(texts(&output)[1], "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three\n");
}

#[test]
fn edits_follow_each_other_all_or_none() {
    let tree = Tree::new(&[("a.txt", "a b")]);
    edit(&tree, json!([{"oldText": "a", "newText": "b"}, {"oldText": "b b", "newText": "c"}])).unwrap();
    assert_eq!(content(&tree), "c");
    let failure = edit(&tree, json!([{"oldText": "c", "newText": "d"}, {"oldText": "c", "newText": "e"}])).unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::NoMatch, Outcome::NotRun));
    assert!(failure.message.starts_with("edit 2:"), "{}", failure.message);
    assert_eq!(content(&tree), "c");
}

#[test]
fn several_places_are_refused_with_their_lines_unless_all_are_meant() {
    let tree = Tree::new(&[("a.txt", "x\naaa\nx\n")]);
    let failure = one(&tree, "x\n", "y\n").unwrap_err();
    assert_eq!(failure.code, ErrorCode::NoMatch);
    assert!(failure.message.contains("2 times, in the lines 1, 3"), "{}", failure.message);
    assert!(one(&tree, "aa", "b").is_err(), "places that overlap are two");
    let all = edit(&tree, json!([{"oldText": "x", "newText": "y", "replaceAll": true}])).unwrap();
    assert_eq!(structured(&all)["replaced"], 2);
    assert_eq!(content(&tree), "y\naaa\ny\n");
}

#[test]
fn line_ends_and_marks_of_the_file_are_kept() {
    for (before, old, new, after) in [
        ("\u{feff}one\r\ntwo\r\n", "one\ntwo", "1\n2", "\u{feff}1\r\n2\r\n"),
        ("one\r\ntwo", "two", "2\n3", "one\r\n2\r\n3"),
        ("one\r\ntwo\r\n", "one\r\n", "1\r\n", "1\r\ntwo\r\n"),
        ("one\ntwo", "two", "2", "one\n2"),
        ("one\ntwo", "one\n", "", "two"),
    ] {
        let tree = Tree::new(&[("a.txt", before)]);
        one(&tree, old, new).unwrap();
        assert_eq!(content(&tree), after, "{before:?}");
    }
}

#[test]
fn what_does_not_match_is_told_why() {
    let tree = Tree::new(&[("a.txt", "if x {\n\treturn;\n}\n")]);
    let hint = |old: &str| one(&tree, old, "").unwrap_err().hint.unwrap();
    assert!(
        hint("x {\n    return;").contains("but for white space it stands in line 1"),
        "{}",
        hint("x {\n    return;")
    );
    assert!(hint("{\r\n\treturn").contains("line 1 with other line ends"), "{}", hint("{\r\n\treturn"));
    assert!(hint("nothing").contains("read the file"));
}

#[test]
fn a_file_that_changed_is_left_alone_and_its_hash_is_told() {
    let tree = Tree::new(&[("a.txt", "theirs")]);
    let edits = json!([{"oldText": "theirs", "newText": "mine"}]);
    let with = |hash: ContentHash| tree.run("file_edit", &json!({"path": "a.txt", "edits": edits, "ifHash": hash}));
    let failure = with(ContentHash::of(b"old")).unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::FileChanged, Outcome::NotRun));
    assert!(failure.message.contains(&ContentHash::of(b"theirs").to_string()), "{}", failure.message);
    assert_eq!(content(&tree), "theirs");
    with(ContentHash::of(b"theirs")).unwrap();
    assert_eq!(content(&tree), "mine");
}

#[test]
fn what_is_no_text_is_not_edited() {
    let tree = Tree::new(&[]);
    std::fs::write(tree.path("a.txt"), b"a\xff\n").unwrap();
    let failure = one(&tree, "a", "b").unwrap_err();
    assert!(failure.code == ErrorCode::NotAFile && failure.message.contains("byte 1"), "{failure}");
    assert_eq!(std::fs::read(tree.path("a.txt")).unwrap(), b"a\xff\n");
}

#[test]
fn edits_of_one_file_at_once_lose_nothing() {
    let tree = Tree::new(&[("a.txt", "")]);
    let words: Vec<String> = (0..12).map(|n| format!("<{n}>")).collect();
    tree.write("a.txt", &words.concat());
    std::thread::scope(|scope| {
        for word in &words {
            scope.spawn(|| one(&tree, word, &word.replace('<', "[")).unwrap());
        }
    });
    assert_eq!(content(&tree), words.concat().replace('<', "["));
}
