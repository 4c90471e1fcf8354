//! The kernel alone: the rules serve every path there is, and what lies outside of the roots stays out of reach.
#![cfg(target_os = "linux")]

use footbridge_launcher::sandbox;

use super::*;
use crate::policy::Floor;
use crate::tools::context::detached;
use crate::tools::file_delete::FileDelete;
use crate::tools::file_edit::FileEdit;
use crate::tools::file_grep::FileGrep;
use crate::tools::file_list::FileList;
use crate::tools::file_read::FileRead;
use crate::tools::file_write::FileWrite;
use std::os::unix::fs::symlink;

struct Confined {
    dir: tempfile::TempDir,
    files: Arc<Files>,
}

/// `None` on a machine that cannot confine anything.
fn confined(write: bool) -> Option<Confined> {
    sandbox::probe().ok()?;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(dir.path().join("other")).unwrap();
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(dir.path().join("other/secret"), "secret").unwrap();
    std::fs::write(root.join("mine"), "mine").unwrap();
    symlink("../other/secret", root.join("link")).unwrap();
    symlink("../other", root.join("folder")).unwrap();
    let everything = Arc::new(Policy::new(&["/".into()], Floor::default()).unwrap());
    let files = Files::on(&everything, FileThreads::new(vec![root], write));
    Some(Confined { dir, files })
}

impl Confined {
    /// `ok`, or the code; a path is given from the folder around the root, or in full.
    fn outcome<T: FileTool>(&self, path: &str, more: Value) -> &'static str {
        let path = self.dir.path().join(path);
        let mut arguments = more;
        arguments["path"] = json!(path);
        let tool = self.files.tool::<T>();
        let (ctx, _told, _cancel) = detached();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let done = runtime.block_on(async {
            let plan = tool.plan(Arguments::new(raw(&arguments)), &ctx).await?;
            plan.run(ctx).await
        });
        done.map_or_else(|failure| failure.code.as_str(), |_| "ok")
    }
}

#[test]
fn what_lies_outside_is_neither_read_nor_listed() {
    let Some(confined) = confined(true) else { return };
    let by_proc = format!("/proc/self/root{}/other/secret", confined.dir.path().display());
    for (path, expected) in [
        ("root/mine", "ok"),
        ("other/secret", "path_denied"),
        ("root/link", "path_denied"),
        ("root/folder/secret", "path_denied"),
        ("/etc/passwd", "path_denied"),
        ("/proc/self/environ", "path_denied"),
        (&by_proc, "path_denied"),
    ] {
        assert_eq!(confined.outcome::<FileRead>(path, json!({})), expected, "{path}");
    }
    assert_eq!(confined.outcome::<FileList>("root", json!({})), "ok");
    assert_eq!(confined.outcome::<FileList>("other", json!({})), "path_denied");
    assert_eq!(confined.outcome::<FileGrep>("other/secret", json!({"pattern": "s"})), "path_denied");
}

#[test]
fn what_lies_outside_is_neither_written_nor_removed() {
    let Some(confined) = confined(true) else { return };
    let content = json!({"content": "x"});
    for path in ["other/secret", "other/new", "root/link", "root/folder/new"] {
        assert_eq!(confined.outcome::<FileWrite>(path, content.clone()), "path_denied", "{path}");
    }
    let edits = json!({"edits": [{"oldText": "secret", "newText": "x"}]});
    assert_eq!(confined.outcome::<FileEdit>("other/secret", edits), "path_denied");
    assert_eq!(confined.outcome::<FileDelete>("other/secret", json!({})), "path_denied");
    assert_eq!(std::fs::read_to_string(confined.dir.path().join("other/secret")).unwrap(), "secret");
    for path in ["root/mine", "root/new"] {
        assert_eq!(confined.outcome::<FileWrite>(path, content.clone()), "ok", "{path}");
    }
    let deep = json!({"content": "x", "createFolders": true});
    assert_eq!(confined.outcome::<FileWrite>("root/a/b/c", deep), "ok");
    assert_eq!(confined.outcome::<FileDelete>("root/mine", json!({})), "ok");
}

#[test]
fn another_name_of_a_file_outside_reads_and_writing_it_leaves_that_file_alone() {
    let Some(confined) = confined(true) else { return };
    let (secret, name) = (confined.dir.path().join("other/secret"), confined.dir.path().join("root/hard"));
    std::fs::hard_link(&secret, &name).unwrap();
    assert_eq!(confined.outcome::<FileWrite>("root/hard", json!({"content": "mine"})), "ok");
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(name).unwrap(), "mine");
}

#[test]
fn threads_that_may_not_write_write_nothing() {
    let Some(confined) = confined(false) else { return };
    assert_eq!(confined.outcome::<FileRead>("root/mine", json!({})), "ok");
    assert_eq!(confined.outcome::<FileWrite>("root/mine", json!({"content": "x"})), "tool_failed");
    assert_eq!(confined.outcome::<FileWrite>("root/new", json!({"content": "x"})), "tool_failed");
    assert_eq!(confined.outcome::<FileDelete>("root/mine", json!({})), "tool_failed");
    assert_eq!(std::fs::read_to_string(confined.dir.path().join("root/mine")).unwrap(), "mine");
}

#[test]
fn a_root_that_was_removed_and_made_again_is_served_again() {
    let Some(confined) = confined(true) else { return };
    let root = confined.dir.path().join("root");
    assert_eq!(confined.outcome::<FileRead>("root/mine", json!({})), "ok");
    // The old one is kept aside, so that the new one cannot get its number.
    std::fs::rename(&root, confined.dir.path().join("aside")).unwrap();
    std::fs::create_dir(&root).unwrap();
    assert_eq!(confined.outcome::<FileWrite>("root/again", json!({"content": "x"})), "ok");
    assert_eq!(confined.outcome::<FileRead>("root/again", json!({})), "ok");
    assert_eq!(confined.outcome::<FileRead>("aside/mine", json!({})), "path_denied");
}

#[test]
fn hints_say_what_a_tool_does_to_files() {
    let policy = Arc::new(Policy::new(&["/".into()], Floor::default()).unwrap());
    let files = Files::new(&policy, true);
    let hints = |tool: Arc<dyn Tool>| -> Value {
        assert_eq!(tool.is_read_only(), tool.entry().labels.contains(&READ_ONLY.to_owned()));
        assert_ne!(tool.is_read_only(), tool.entry().labels.contains(&WRITE.to_owned()));
        let annotations = tool.entry().annotations.unwrap();
        let all: Value = serde_json::from_str(annotations.get()).unwrap();
        json!([all["readOnlyHint"], all["destructiveHint"], all["idempotentHint"]])
    };
    assert_eq!(hints(files.tool::<FileRead>()), json!([true, null, null]));
    assert_eq!(hints(files.tool::<FileWrite>()), json!([false, true, true]));
    assert_eq!(hints(files.tool::<FileEdit>()), json!([false, true, false]));
    assert_eq!(hints(files.tool::<FileDelete>()), json!([false, true, true]));
}
