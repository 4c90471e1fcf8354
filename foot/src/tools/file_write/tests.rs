use super::MAX_BYTES;
use crate::failure::Failure;
use crate::tools::ToolOutput;
use crate::tools::testing::{Tree, structured};
use footbridge_shared::content::ContentHash;
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn write(tree: &Tree, more: Value) -> Result<ToolOutput, Failure> {
    let mut arguments = json!({"path": "a.txt", "content": "new"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tree.run("file_write", &arguments)
}

fn code(result: Result<ToolOutput, Failure>) -> &'static str {
    result.map_or_else(|failure| failure.code.as_str(), |_| "ok")
}

#[test]
fn a_file_is_made_and_then_replaced() {
    let tree = Tree::new(&[]);
    let hash = ContentHash::of(b"new");
    let made = structured(&write(&tree, json!({})).unwrap());
    assert_eq!(made, json!({"path": "a.txt", "bytes": 3, "hash": hash, "created": true}));
    let again = structured(&write(&tree, json!({"content": "newer"})).unwrap());
    assert_eq!((&again["created"], &again["previousHash"]), (&json!(false), &json!(hash)));
    assert_eq!(std::fs::read_to_string(tree.path("a.txt")).unwrap(), "newer");
}

#[test]
fn a_condition_that_does_not_hold_writes_nothing() {
    let tree = Tree::new(&[("a.txt", "old")]);
    let old = ContentHash::of(b"old");
    for (condition, expected) in [
        (json!({"ifAbsent": true}), "already_exists"),
        (json!({"ifHash": ContentHash::of(b"other")}), "file_changed"),
        (json!({"ifHash": old, "ifAbsent": true}), "invalid_arguments"),
        (json!({"ifHash": "abc"}), "invalid_arguments"),
        (json!({"path": "none/b", "ifHash": old, "createFolders": true}), "not_found"),
        (json!({"path": "b", "ifHash": old}), "file_changed"),
    ] {
        assert_eq!(code(write(&tree, condition.clone())), expected, "{condition}");
    }
    assert_eq!(std::fs::read_to_string(tree.path("a.txt")).unwrap(), "old");
    assert!(!tree.path("none").exists());
    assert_eq!(code(write(&tree, json!({"ifHash": old.to_string().to_uppercase()}))), "ok");
    assert_eq!(code(write(&tree, json!({"path": "b", "ifAbsent": true}))), "ok");
}

#[test]
fn only_files_under_the_roots_are_written() {
    let tree = Tree::with_root("root", &[("root/dir/x", ""), ("root/file", ""), ("other/y", "theirs")]);
    symlink("../other", tree.path("root/out")).unwrap();
    symlink("../other/y", tree.path("root/link_out")).unwrap();
    symlink("none", tree.path("root/dangling")).unwrap();
    symlink("/proc/self/root", tree.path("root/proc")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tree.path("root/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for (path, expected) in [
        (".", "not_a_file"),
        ("dir", "not_a_file"),
        ("new/", "not_a_file"),
        ("pipe", "not_a_file"),
        ("file/x", "not_a_file"),
        ("none/x", "not_found"),
        ("../other/y", "path_denied"),
        ("out/y", "path_denied"),
        ("out/new", "path_denied"),
        ("link_out", "path_denied"),
        ("proc/tmp/x", "path_denied"),
        ("/etc/passwd", "path_denied"),
        ("a\0b", "path_denied"),
        (".ssh/config", "path_denied"),
        (".footbridge-tmp-x", "path_denied"),
        ("dangling", "ok"),
    ] {
        assert_eq!(code(write(&tree, json!({"path": path}))), expected, "{path:?}");
    }
    assert_eq!(std::fs::read_to_string(tree.path("other/y")).unwrap(), "theirs");
    assert!(tree.path("root/dangling").is_symlink(), "a link stays, and its target is what is written");
    assert_eq!(std::fs::read_to_string(tree.path("root/none")).unwrap(), "new");
}

#[test]
fn folders_are_made_when_that_is_asked_for() {
    let tree = Tree::with_root("root", &[]);
    let failure = write(&tree, json!({"path": "b/c/d"})).unwrap_err();
    assert!(failure.hint.is_some_and(|hint| hint.contains("createFolders")));
    assert_eq!(code(write(&tree, json!({"path": "b/c/d", "createFolders": true}))), "ok");
    assert!(tree.path("root/b/c/d").is_file());
    assert_eq!(code(write(&tree, json!({"path": "../b/c/d", "createFolders": true}))), "path_denied");
    assert_eq!(code(write(&tree, json!({"path": "b/.ssh/d", "createFolders": true}))), "path_denied");
    assert!(!tree.path("b").exists() && !tree.path("root/b/.ssh").exists());
}

#[test]
fn what_is_still_being_written_is_nobodys_to_see() {
    let tree = Tree::new(&[("a.txt", "x"), (".footbridge-tmp-x", "x"), ("dir/.footbridge-tmp-y", "x")]);
    let listed = structured(&tree.run("file_list", &json!({"path": "."})).unwrap()).to_string();
    let found = structured(&tree.run("file_grep", &json!({"path": ".", "pattern": "x"})).unwrap()).to_string();
    for answer in [listed, found] {
        assert!(answer.contains("a.txt") && !answer.contains("footbridge-tmp"), "{answer}");
    }
}

#[test]
fn bytes_and_modes_come_as_they_are_given() {
    let tree = Tree::new(&[]);
    let given = json!({"content": "AP8K", "encoding": "base64", "mode": "750"});
    assert_eq!(structured(&write(&tree, given).unwrap())["bytes"], 3);
    assert_eq!(std::fs::read(tree.path("a.txt")).unwrap(), b"\0\xff\n");
    let mode = std::fs::metadata(tree.path("a.txt")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o750);
    for bad in [json!({"content": "a-b_", "encoding": "base64"}), json!({"mode": "4755"}), json!({"mode": "rwx"})] {
        assert_eq!(code(write(&tree, bad.clone())), "invalid_arguments", "{bad}");
    }
}

#[test]
fn a_file_has_a_size_it_may_have() {
    let tree = Tree::new(&[]);
    let failure = write(&tree, json!({"content": "x".repeat(MAX_BYTES + 1)})).unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::PayloadTooLarge, Outcome::NotRun));
    assert!(!tree.path("a.txt").exists());
}
