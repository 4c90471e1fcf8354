use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use footbridge_shared::ErrorCode;

use crate::clock::SystemClock;
use crate::documents::change::DocumentChange;
use crate::documents::tests::{World, doc, scope, write};
use crate::documents::{Bundled, DocumentParts, Documents, FolderError, FolderProblem};
use crate::domain::document::Layer;
use crate::lifecycle::Lifecycle;
use crate::store::memory::MemoryStore;

/// Far longer than a change takes to be noticed; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

impl World {
    /// Waits for the watcher, which nobody asks to look.
    async fn noticed(&self, act: impl FnOnce(&std::path::Path)) -> DocumentChange {
        let mut changes = self.documents.subscribe();
        act(self.dir.path());
        tokio::time::timeout(PATIENCE, changes.recv()).await.unwrap().unwrap()
    }

    fn problems(&self) -> Vec<String> {
        let problems = self.documents.folder_problems().into_iter();
        problems.map(|FolderProblem { place, reason }| format!("{place}: {reason}")).collect()
    }
}

#[tokio::test]
async fn files_are_noticed_however_they_come() {
    let world = World::new().await;
    let own = scope("t", "main");
    let path = doc("documents/new.md");
    let change = DocumentChange::Document { scope: own.clone(), path };
    // In folders that did not exist before.
    assert_eq!(world.noticed(|dir| write(dir, "t/main/documents/new.md", "1")).await, change);
    assert_eq!(world.text(&own, "documents/new.md").await, Ok(Some("1".to_owned())));
    // Written beside and renamed over, as editors do.
    let renamed = world.noticed(|dir| {
        write(dir, "t/main/documents/.new.md.swp", "2");
        fs::rename(dir.join("t/main/documents/.new.md.swp"), dir.join("t/main/documents/new.md")).unwrap();
    });
    assert_eq!(renamed.await, change);
    assert_eq!(world.text(&own, "documents/new.md").await, Ok(Some("2".to_owned())));
    // In place.
    assert_eq!(world.noticed(|dir| write(dir, "t/main/documents/new.md", "3")).await, change);
    assert_eq!(world.text(&own, "documents/new.md").await, Ok(Some("3".to_owned())));
    assert_eq!(world.noticed(|dir| fs::remove_file(dir.join("t/main/documents/new.md")).unwrap()).await, change);
    assert_eq!(world.text(&own, "documents/new.md").await, Ok(None));
    // An empty folder makes a scope.
    let (other, place) = (scope("t", "other"), "t/other");
    let change = DocumentChange::Scope(other.clone());
    assert_eq!(world.noticed(|dir| fs::create_dir(dir.join(place)).unwrap()).await, change);
    assert_eq!(world.documents.folder_scopes(), [own.clone(), other]);
    assert_eq!(world.noticed(|dir| fs::remove_dir(dir.join(place)).unwrap()).await, change);
    assert_eq!(world.documents.folder_scopes(), [own]);
}

#[tokio::test]
async fn what_leaves_the_scopes_folder_is_not_read() {
    let world = World::new().await;
    let outside = tempfile::TempDir::new().unwrap();
    write(outside.path(), "secret.md", "outside");
    let dir = world.dir.path();
    write(dir, "t/main/documents/a..b.md", "fine");
    write(dir, "t/other/documents/theirs.md", "other project");
    write(dir, "t/_tenant/documents/tenant.md", "tenant");
    write(dir, "u/main/documents/theirs.md", "other tenant");
    let link = |to: &std::path::Path, name: &str| symlink(to, dir.join("t/main/documents").join(name)).unwrap();
    link(&outside.path().join("secret.md"), "out.md");
    link(std::path::Path::new("/etc/hostname"), "etc.md");
    link(std::path::Path::new("../../other/documents/theirs.md"), "other.md");
    link(&dir.join("u/main/documents/theirs.md"), "tenant-u.md");
    link(std::path::Path::new("../../_tenant/documents/tenant.md"), "up.md");
    link(std::path::Path::new("nowhere.md"), "dangling.md");
    link(std::path::Path::new("loop.md"), "loop.md");
    link(std::path::Path::new("a..b.md"), "inside.md");
    world.documents.rescan_folder().await.unwrap();

    let own = scope("t", "main");
    assert_eq!(world.text(&own, "documents/a..b.md").await, Ok(Some("fine".to_owned())));
    assert_eq!(world.text(&own, "documents/inside.md").await, Ok(Some("fine".to_owned())));
    for name in ["out", "etc", "other", "tenant-u", "up", "dangling", "loop"] {
        let found = world.documents.resolve(&own, &doc(&format!("documents/{name}.md"))).await;
        let error = found.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidPath, "{name}");
        let message = error.to_string();
        for place in [dir, outside.path(), std::path::Path::new("/etc/")] {
            assert!(!message.contains(&place.display().to_string()), "{message}");
        }
    }
    assert_eq!(world.problems().len(), 7, "{:?}", world.problems());
}

#[tokio::test]
async fn a_folder_that_cannot_be_looked_into_hides_what_lies_below() {
    let world = World::new().await;
    let dir = world.dir.path();
    let outside = tempfile::TempDir::new().unwrap();
    write(outside.path(), "documents/a.md", "outside");
    // However a link stands for a folder, it is not followed, and no lower layer shines through.
    fs::create_dir_all(dir.join("t/deep")).unwrap();
    symlink(outside.path().join("documents"), dir.join("t/deep/documents")).unwrap();
    fs::create_dir_all(dir.join("t/dangling")).unwrap();
    symlink("nowhere", dir.join("t/dangling/documents")).unwrap();
    symlink(outside.path(), dir.join("t/linked")).unwrap();
    symlink(dir.join("t"), dir.join("u")).unwrap();
    world.documents.rescan_folder().await.unwrap();

    for linked in
        [scope("t", "deep"), scope("t", "dangling"), scope("t", "linked"), scope("u", "main"), scope("u", "_tenant")]
    {
        assert_eq!(world.text(&linked, "documents/a.md").await, Err(ErrorCode::InvalidPath), "{linked}");
        let page = world.documents.list(&linked, "documents/", None, 10).await.unwrap();
        assert!(page.documents.iter().all(|entry| entry.error.is_some()), "{linked}: {page:?}");
        let all = world.documents.all(&linked, "documents/a").await.unwrap();
        assert!(all.documents[0].1[0].content.is_err(), "{linked}");
    }
    // Elsewhere nothing is affected.
    assert_eq!(world.text(&scope("t", "deep"), "manuals/x.md").await, Ok(None));
    assert_eq!(world.text(&scope("t", "main"), "documents/a.md").await, Ok(Some("bundled".to_owned())));
    assert_eq!(
        world.problems(),
        [
            "t/dangling/documents: it is a link that leads nowhere",
            "t/deep/documents: a link is not followed to a folder",
            "t/linked: a link is not followed to a folder",
            "u: a link is not followed to a folder"
        ]
    );

    fs::remove_file(dir.join("u")).unwrap();
    let before = world.documents.revision(&scope("u", "main")).await.unwrap();
    world.documents.rescan_folder().await.unwrap();
    assert_ne!(world.documents.revision(&scope("u", "main")).await.unwrap(), before);
    assert_eq!(world.text(&scope("u", "main"), "documents/a.md").await, Ok(Some("bundled".to_owned())));
}

#[tokio::test]
async fn an_unreadable_file_is_an_error_for_its_path_alone() {
    let world = World::new().await;
    let dir = world.dir.path();
    let own = scope("t", "main");
    write(dir, "t/main/documents/z.md", b"latin \xe9");
    write(dir, "t/main/documents/large.md", vec![b'x'; crate::domain::document::MAX_DOCUMENT_BYTES + 1]);
    write(dir, "t/main/documents/ok.md", vec![b'x'; crate::domain::document::MAX_DOCUMENT_BYTES]);
    let fifo = dir.join("t/main/documents/a.md");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    world.documents.rescan_folder().await.unwrap();
    for path in ["documents/z.md", "documents/large.md", "documents/a.md"] {
        assert_eq!(world.text(&own, path).await, Err(ErrorCode::InvalidDocument), "{path}");
    }
    assert!(matches!(world.text(&own, "documents/ok.md").await, Ok(Some(_))));
    fs::remove_file(fifo).unwrap();
    world.file("t/main/documents/z.md", "utf-8 é").await;
    assert_eq!(world.text(&own, "documents/a.md").await, Ok(Some("bundled".to_owned())));
    assert_eq!(world.text(&own, "documents/z.md").await, Ok(Some("utf-8 é".to_owned())));
}

#[tokio::test]
async fn what_no_scope_or_path_can_be_called_is_reported_and_skipped() {
    let world = World::new().await;
    let dir = world.dir.path();
    for place in [
        "README.md",
        "Acme/main/documents/x.md",
        "tokens/main/x.md",
        "t/notes.txt",
        "t/My_Project/x.md",
        "t/main/back\\slash.md",
    ] {
        write(dir, place, "x");
    }
    for left_behind in
        [".git/config", "t/main/.hidden", "t/main/a.md~", "t/main/#a.md#", "t/main/a.md.swp", "t/main/.#a.md"]
    {
        write(dir, left_behind, "x");
    }
    world.file("t/main/a.md", "good").await;
    let own = scope("t", "main");
    let page = world.documents.list(&own, "", None, 100).await.unwrap();
    let from_folder: Vec<_> = page.documents.iter().filter(|d| d.layer == Layer::ProjectFolder).collect();
    assert_eq!(from_folder.iter().map(|d| d.path.as_str()).collect::<Vec<_>>(), ["a.md"]);
    assert_eq!(world.documents.folder_scopes(), [own]);
    let places: Vec<String> = world.documents.folder_problems().into_iter().map(|p| p.place).collect();
    assert_eq!(places, ["Acme", "README.md", "t/My_Project", "t/main/back\\slash.md", "t/notes.txt", "tokens"]);
}

#[tokio::test]
async fn a_fresh_file_is_read_again_even_if_it_looks_the_same() {
    let world = World::new().await;
    let own = scope("t", "main");
    // Same length, and within the time that clocks of file systems need to tick.
    for text in ["one", "two", "six"] {
        world.file("t/main/documents/new.md", text).await;
        assert_eq!(world.text(&own, "documents/new.md").await, Ok(Some(text.to_owned())));
    }
}

#[tokio::test]
async fn a_replaced_folder_is_followed_and_a_missing_one_keeps_what_it_held() {
    let parent = tempfile::TempDir::new().unwrap();
    let root = parent.path().join("docs");
    write(&root, "t/main/documents/a.md", "old");
    let clock: crate::clock::SharedClock = std::sync::Arc::new(SystemClock);
    let lifecycle = Lifecycle::new();
    let parts = DocumentParts {
        store: std::sync::Arc::new(MemoryStore::new(clock.clone())),
        folder: Some(root.clone()),
        bundled: Bundled::default(),
        validators: Vec::new(),
        clock,
    };
    let documents = Documents::open(parts, &lifecycle).await.unwrap();
    let text = async || {
        let found = documents.resolve(&scope("t", "main"), &doc("documents/a.md")).await.unwrap();
        found.map(|found| found.text).unwrap_or_default()
    };
    fs::rename(&root, parent.path().join("aside")).unwrap();
    assert!(matches!(documents.rescan_folder().await, Err(FolderError::Missing)));
    assert_eq!(text().await, "old");
    write(&root, "t/main/documents/a.md", "new");
    documents.rescan_folder().await.unwrap();
    assert_eq!(text().await, "new");
    assert_eq!(lifecycle.shut_down(PATIENCE).await, 0, "the watcher ends with the hub");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error_at_start() {
    let dir = tempfile::TempDir::new().unwrap();
    write(dir.path(), "file", "x");
    let open = async |root: std::path::PathBuf| {
        let clock: crate::clock::SharedClock = std::sync::Arc::new(SystemClock);
        let parts = DocumentParts {
            store: std::sync::Arc::new(MemoryStore::new(clock.clone())),
            folder: Some(root),
            bundled: Bundled::default(),
            validators: Vec::new(),
            clock,
        };
        Documents::open(parts, &Lifecycle::new()).await.map(|_| ())
    };
    assert!(matches!(open(dir.path().join("missing")).await, Err(FolderError::Missing)));
    assert!(matches!(open(dir.path().join("file")).await, Err(FolderError::NotAFolder)));
}

#[tokio::test]
async fn a_folder_that_cannot_be_looked_into_is_said_for_what_lies_wholly_in_it() {
    let world = World::new().await;
    let dir = world.dir.path();
    write(dir, "t/main/server-tools/a.yaml", "a");
    fs::create_dir_all(dir.join("t/linked")).unwrap();
    symlink(dir.join("t/main/server-tools"), dir.join("t/linked/server-tools")).unwrap();
    symlink(dir.join("t/main/server-tools"), dir.join("t/main/server-tools/deep")).unwrap();
    fs::create_dir_all(dir.join("v")).unwrap();
    symlink(dir.join("t/main"), dir.join("v/_tenant")).unwrap();
    world.documents.rescan_folder().await.unwrap();
    for (tenant, project, blind) in [
        ("t", "linked", Some(Layer::ProjectFolder)),
        ("t", "main", None),
        ("v", "any", Some(Layer::TenantFolder)),
        ("w", "any", None),
    ] {
        let all = world.documents.all(&scope(tenant, project), "server-tools/").await.unwrap();
        assert_eq!(all.blind.map(|(layer, _)| layer), blind, "{tenant}/{project}");
    }
}
