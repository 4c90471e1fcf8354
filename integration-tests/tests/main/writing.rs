//! Files of a foot are changed through the hub, and documents move there and back.

use std::sync::atomic::{AtomicUsize, Ordering};

use integration_tests::api::Api;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use serde_json::{Value, json};

use crate::TestResult;

/// Lets callers write without asking.
const WRITES: [&str; 1] = ["--allow-write"];

/// The structured answer of a call that succeeds.
async fn answer(api: &Api, tool: &str, arguments: Value) -> TestResult<Value> {
    Ok(api.invoke(tool, arguments).await?.ok()?.json()["structured"].take())
}

#[tokio::test]
async fn a_file_is_made_changed_and_deleted_through_the_hub() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &WRITES).await?;
    let api = hub.api()?.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
    let file = folder.path().join("src/a.txt");

    let made = json!({"path": "src/a.txt", "content": "one\r\ntwo\r\n", "createFolders": true, "ifAbsent": true});
    let written = answer(&api, "file_write", made.clone()).await?;
    assert_eq!((&written["created"], &written["bytes"]), (&json!(true), &json!(10)));
    assert_eq!(api.invoke("file_write", made).await?.code(), "already_exists");

    let read = answer(&api, "file_read", json!({"path": "src/a.txt"})).await?;
    assert_eq!(read["hash"], written["hash"], "what was written is what is read");
    let edit =
        json!({"path": "src/a.txt", "ifHash": read["hash"], "edits": [{"oldText": "one\n", "newText": "1\n1.5\n"}]});
    let edited = answer(&api, "file_edit", edit.clone()).await?;
    assert_eq!(edited["lines"], json!([{"from": 1, "to": 2}]));
    assert_eq!(std::fs::read_to_string(&file)?, "1\r\n1.5\r\ntwo\r\n");
    let stale = api.invoke("file_edit", edit).await?;
    assert_eq!(stale.code(), "file_changed");
    assert!(stale.text.contains(edited["hash"].as_str().ok_or("no hash")?), "{}", stale.text);

    let outside = api.invoke("file_write", json!({"path": "../x", "content": ""})).await?;
    assert_eq!(outside.code(), "path_denied");
    answer(&api, "file_delete", json!({"path": "src/a.txt", "ifHash": edited["hash"]})).await?;
    assert!(!file.exists());
    Ok(())
}

#[tokio::test]
async fn a_foot_that_may_not_write_offers_no_such_tool() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &[]).await?;
    let api = hub.api()?.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
    for tool in ["file_write", "file_edit", "file_delete"] {
        let call = json!({"path": "a", "content": "x", "edits": [{"oldText": "a", "newText": "b"}]});
        assert_eq!(api.invoke(tool, call).await?.code(), "unknown_tool", "{tool}");
    }
    hub.api()?.put("documents/documents/notes.md", "text").await?.ok()?;
    let push = api.invoke("file_push", json!({"document": "documents/notes.md", "path": "a"})).await?;
    assert_eq!(push.code(), "not_found");
    assert!(push.text.contains("no foot for you here that offers `file_write`"), "{}", push.text);
    assert!(!folder.path().join("a").exists());
    Ok(())
}

#[tokio::test]
async fn a_document_goes_to_a_file_and_back_unchanged() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &WRITES).await?;
    let admin = hub.api()?;
    let api = admin.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
    let text = "\u{feff}# Überschrift\r\n\n\u{1f600} no line end at the end".repeat(100);
    admin.put("documents/documents/notes.md", &text).await?.ok()?;

    let push = json!({"document": "documents/notes.md", "foot": "laptop", "path": "notes.md"});
    let pushed = answer(&api, "file_push", push.clone()).await?;
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.md"))?, text);
    assert_eq!((&pushed["created"], &pushed["bytes"]), (&json!(true), &json!(text.len())));
    assert_eq!(api.invoke("file_push", push.clone()).await?.code(), "already_exists");

    let pull = json!({"path": "notes.md", "document": "documents/copy.md"});
    let pulled = answer(&api, "file_pull", pull.clone()).await?;
    assert_eq!(pulled["hash"], pushed["hash"]);
    assert_eq!(admin.get("documents/documents/copy.md").await?.ok()?.text, text);
    assert_eq!(api.invoke("file_pull", pull.clone()).await?.code(), "version_mismatch");

    // With what is known of the other end, or at any rate.
    let with = |mut arguments: Value, key: &str, value: &Value| {
        arguments[key] = value.clone();
        arguments
    };
    std::fs::write(folder.path().join("notes.md"), "changed on the machine")?;
    assert_eq!(api.invoke("file_push", with(push.clone(), "ifHash", &pushed["hash"])).await?.code(), "file_changed");
    let pulled = answer(&api, "file_pull", with(pull.clone(), "etag", &pulled["etag"])).await?;
    assert_eq!(admin.get("documents/documents/copy.md").await?.ok()?.text, "changed on the machine");
    let pushed = answer(&api, "file_push", with(push.clone(), "ifHash", &pulled["hash"])).await?;
    assert_eq!(pushed["previousHash"], pulled["hash"]);
    answer(&api, "file_push", with(push, "overwrite", &json!(true))).await?;
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.md"))?, text);
    Ok(())
}

#[tokio::test]
async fn what_may_not_move_does_not() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("latin.txt"), b"caf\xe9")?;
    std::fs::write(folder.path().join("tool.yaml"), "type: doc_lookup\n")?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &WRITES).await?;
    let admin = hub.api()?;
    let (ann, bob) = (hub.token("ann", &["engine", "viewer"]).await?, hub.token("bob", &["engine", "viewer"]).await?);
    let (ann, bob) = (admin.with_token(&ann), admin.with_token(&bob));
    admin.put("documents/documents/notes.md", "text").await?.ok()?;

    for (tool, arguments, code) in [
        ("file_pull", json!({"path": "latin.txt", "document": "documents/b.md"}), "not_a_file"),
        ("file_pull", json!({"path": "none", "document": "documents/b.md"}), "not_found"),
        ("file_pull", json!({"path": "/etc/passwd", "document": "documents/b.md"}), "path_denied"),
        ("file_pull", json!({"path": "tool.yaml", "document": "server-tools/evil.yaml"}), "config_path"),
        ("file_push", json!({"document": "documents/none.md", "path": "b"}), "not_found"),
        ("file_push", json!({"document": "documents/notes.md", "path": "../b"}), "path_denied"),
        ("file_push", json!({"document": "documents/notes.md", "path": ".ssh/authorized_keys"}), "path_denied"),
        ("file_push", json!({"document": "documents/notes.md", "path": "none/b"}), "not_found"),
    ] {
        assert_eq!(ann.invoke(tool, arguments.clone()).await?.code(), code, "{tool} {arguments}");
    }
    assert!(!admin.get("documents/documents/b.md").await?.status.is_success());

    // A foot that is somebody else's, and one that is nowhere, cannot be told apart.
    let push = async |foot: &str| {
        bob.invoke("file_push", json!({"document": "documents/notes.md", "foot": foot, "path": "b"})).await
    };
    let (theirs, nobodys) = (push("laptop").await?, push("castle").await?);
    assert_eq!(theirs.code(), "not_found");
    assert_eq!(theirs.text.replace("laptop", "castle"), nobodys.text);
    assert!(!folder.path().join("b").exists());
    Ok(())
}

#[tokio::test]
async fn a_foot_that_is_killed_while_it_writes_leaves_whole_files() -> TestResult {
    const FILES: usize = 8;
    const WRITES_BEFORE: usize = 40;
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let mut foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &WRITES).await?;
    let api = hub.api()?.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
    let contents = ["a".repeat(20_000), "b".repeat(30_000)];
    let written = AtomicUsize::new(0);
    let rewrite = async |file: usize| -> TestResult<()> {
        for content in contents.iter().cycle() {
            answer(&api, "file_write", json!({"path": format!("{file}.txt"), "content": content})).await?;
            written.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let kill = async {
        eventually("the files are written again and again", || async {
            Ok((written.load(Ordering::Relaxed) >= WRITES_BEFORE).then_some(()))
        })
        .await?;
        foot.process.kill()
    };
    tokio::select! {
        ended = futures::future::try_join_all((0..FILES).map(rewrite)) => return Err(format!("too early: {ended:?}").into()),
        killed = kill => killed?,
    }
    for file in 0..FILES {
        let found = std::fs::read_to_string(folder.path().join(format!("{file}.txt")))?;
        assert!(contents.contains(&found), "{file}.txt has {} bytes", found.len());
    }
    Ok(())
}

/// Line ends, characters that JSON escapes, and long ones: as large as a document may be.
#[tokio::test]
async fn the_largest_document_goes_to_a_file_and_back_unchanged() -> TestResult {
    const DOCUMENT_BYTES: usize = 1024 * 1024;
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    let _foot = TestFoot::start(&hub, "ann", "laptop", folder.path(), &WRITES).await?;
    let admin = hub.api()?;
    let api = admin.with_token(&hub.token("ann", &["engine", "viewer"]).await?);
    let mut text = "\"quoted\"\t\u{1}\u{1f600}\r\n".repeat(DOCUMENT_BYTES / 16);
    text.truncate(text.floor_char_boundary(DOCUMENT_BYTES));
    text.extend(std::iter::repeat_n('x', DOCUMENT_BYTES - text.len()));
    admin.put("documents/documents/large.md", &text).await?.ok()?;

    answer(&api, "file_push", json!({"document": "documents/large.md", "path": "large.md"})).await?;
    assert!(std::fs::read_to_string(folder.path().join("large.md"))? == text, "what arrived is another text");
    answer(&api, "file_pull", json!({"path": "large.md", "document": "documents/back.md"})).await?;
    assert!(admin.get("documents/documents/back.md").await?.ok()?.text == text, "what came back is another text");
    Ok(())
}
