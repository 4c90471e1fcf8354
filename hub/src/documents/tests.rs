use std::fs;
use std::path::Path;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::TenantName;
use tempfile::TempDir;

use super::*;
use crate::clock::SystemClock;
use crate::store::memory::MemoryStore;

/// Documents over an empty store, a folder and two bundled documents.
pub(super) struct World {
    pub(super) documents: Documents,
    pub(super) dir: TempDir,
    pub(super) lifecycle: Lifecycle,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Vec::new()).await
    }

    async fn with(validators: Vec<Arc<dyn DocumentValidator>>) -> Self {
        let dir = TempDir::new().unwrap();
        let lifecycle = Lifecycle::new();
        let clock: SharedClock = Arc::new(SystemClock);
        let parts = DocumentParts {
            store: Arc::new(MemoryStore::new(clock.clone())),
            folder: Some(dir.path().to_owned()),
            bundled: Bundled::from_texts([("documents/a.md", "bundled"), ("documents/z.md", "z")]).unwrap(),
            validators,
            clock,
        };
        let documents = Documents::open(parts, &lifecycle).await.unwrap();
        Self { documents, dir, lifecycle }
    }

    /// Puts a file into the folder, and has it read.
    pub(super) async fn file(&self, place: &str, text: impl AsRef<[u8]>) {
        write(self.dir.path(), place, text);
        self.documents.rescan_folder().await.unwrap();
    }

    pub(super) async fn text(&self, scope: &Scope, path: &str) -> Result<Option<String>, ErrorCode> {
        let found = self.documents.resolve(scope, &doc(path)).await;
        found.map(|found| found.map(|found| found.text)).map_err(|error| error.code())
    }

    async fn put(&self, scope: &Scope, text: &str, condition: WriteCondition) -> Result<String, ErrorCode> {
        let put = self.documents.put(scope, &doc("documents/a.md"), text, "ann", &condition).await;
        put.map(|written| written.etag).map_err(|error| error.code())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.lifecycle.soft().cancel();
        self.lifecycle.hard().cancel();
    }
}

pub(super) fn write(dir: &Path, place: &str, text: impl AsRef<[u8]>) {
    let file = dir.join(place);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

pub(super) fn doc(path: &str) -> DocumentPath {
    DocumentPath::parse(path).unwrap()
}

pub(super) fn scope(tenant: &str, project: &str) -> Scope {
    Scope::new(TenantName::parse(tenant).unwrap(), ProjectName::parse(project).unwrap())
}

#[tokio::test]
async fn the_innermost_layer_wins_in_every_combination() {
    use Layer::{Bundled, Project, ProjectFolder, Tenant, TenantFolder};
    let world = World::new().await;
    let order = [ProjectFolder, Project, TenantFolder, Tenant, Bundled];
    for combination in 0..16_u32 {
        let (own, tenant) = (scope(&format!("t{combination}"), "main"), scope(&format!("t{combination}"), "_tenant"));
        // The bundled document is there in every combination.
        let present: Vec<Layer> = order
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| *bit == 4 || combination >> bit & 1 == 1)
            .map(|(_, l)| l)
            .collect();
        for layer in &present {
            let text = layer.as_str();
            match layer {
                ProjectFolder => write(world.dir.path(), &format!("{own}/documents/a.md"), text),
                TenantFolder => write(world.dir.path(), &format!("{tenant}/documents/a.md"), text),
                Project => drop(world.put(&own, text, WriteCondition::Any).await.unwrap()),
                Tenant => drop(world.put(&tenant, text, WriteCondition::Any).await.unwrap()),
                Bundled => {}
            }
        }
        world.documents.rescan_folder().await.unwrap();

        let layers = world.documents.layers(&own, &doc("documents/a.md")).await.unwrap();
        assert_eq!(layers.iter().map(|l| l.layer).collect::<Vec<_>>(), present);
        let found = world.documents.resolve(&own, &doc("documents/a.md")).await.unwrap().unwrap();
        assert_eq!((found.layer, found.text.as_str()), (present[0], present[0].as_str()));
        assert!(found.etag.starts_with(present[0].as_str()), "{}", found.etag);

        let all = world.documents.all(&own, "documents/").await.unwrap();
        let (path, all_layers) = &all.documents[0];
        assert_eq!((path.as_str(), all_layers), ("documents/a.md", &layers));
        let page = world.documents.list(&own, "documents/a", None, 10).await.unwrap();
        assert_eq!((page.documents[0].layer, &page.documents[0].etag), (present[0], &found.etag));

        // The tenant's own scope sees nothing of the project.
        let outer: Vec<Layer> = present.iter().copied().filter(|l| *l >= TenantFolder).collect();
        let layers = world.documents.layers(&tenant, &doc("documents/a.md")).await.unwrap();
        assert_eq!(layers.iter().map(|l| l.layer).collect::<Vec<_>>(), outer);
    }
}

#[tokio::test]
async fn a_write_over_an_inherited_document_makes_the_override() {
    let world = World::new().await;
    let (own, tenant) = (scope("t", "main"), scope("t", "_tenant"));
    assert_eq!(world.put(&tenant, "tenant", WriteCondition::Any).await.unwrap(), "tenant-1");
    // The condition is about what is seen here, which comes from the tenant.
    let stale = WriteCondition::Matches(vec!["tenant-9".to_owned()]);
    assert_eq!(world.put(&own, "x", stale).await, Err(ErrorCode::VersionMismatch));
    let seen = WriteCondition::Matches(vec!["other".to_owned(), "tenant-1".to_owned()]);
    assert_eq!(world.put(&own, "mine", seen.clone()).await.unwrap(), "project-1");
    // It is the project's now.
    assert_eq!(world.put(&own, "x", seen).await, Err(ErrorCode::VersionMismatch));
    let own_etag = |version: u64| WriteCondition::Matches(vec![format!("project-{version}")]);
    assert_eq!(world.put(&own, "mine 2", own_etag(1)).await.unwrap(), "project-2");
    assert_eq!(world.put(&own, "x", own_etag(1)).await, Err(ErrorCode::VersionMismatch));
    assert_eq!(world.text(&own, "documents/a.md").await, Ok(Some("mine 2".to_owned())));
    assert_eq!(world.text(&tenant, "documents/a.md").await, Ok(Some("tenant".to_owned())));

    let path = doc("documents/a.md");
    let delete = async |condition: &WriteCondition| world.documents.delete(&own, &path, "ann", condition).await;
    assert!(
        matches!(delete(&own_etag(1)).await, Err(DocumentsError::Precondition { current: Some(e) }) if e == "project-2")
    );
    delete(&own_etag(2)).await.unwrap();
    assert_eq!(world.text(&own, "documents/a.md").await, Ok(Some("tenant".to_owned())));
    let gone = delete(&WriteCondition::Any).await;
    assert!(matches!(gone, Err(DocumentsError::NotFound { inherited: Some(Layer::Tenant), .. })), "{gone:?}");
    // An ETag never comes again.
    assert_eq!(world.put(&own, "again", WriteCondition::Absent).await.unwrap(), "project-3");
}

#[tokio::test]
async fn if_none_match_asks_for_the_own_layer_and_if_match_star_for_any() {
    let world = World::new().await;
    let own = scope("t", "main");
    assert_eq!(world.put(&own, "1", WriteCondition::Absent).await.unwrap(), "project-1", "bundled does not count");
    assert_eq!(world.put(&own, "2", WriteCondition::Absent).await, Err(ErrorCode::VersionMismatch));
    assert!(world.put(&scope("u", "main"), "1", WriteCondition::Present).await.is_ok(), "bundled counts");
    let new = doc("documents/new.md");
    let refused = world.documents.put(&own, &new, "x", "ann", &WriteCondition::Present).await;
    assert!(matches!(refused, Err(DocumentsError::Precondition { current: None })));
    let versions = world.documents.versions(&own, &doc("documents/a.md")).await.unwrap();
    assert_eq!(versions.iter().map(|v| (v.version, v.created_by.as_str())).collect::<Vec<_>>(), [(1, "ann")]);
}

#[tokio::test]
async fn where_a_file_lies_above_nothing_is_written_or_deleted() {
    let world = World::new().await;
    let own = scope("t", "main");
    world.put(&own, "stored", WriteCondition::Any).await.unwrap();
    world.file("t/main/documents/a.md", "file").await;
    assert_eq!(world.put(&own, "x", WriteCondition::Any).await, Err(ErrorCode::LayerReadOnly));
    let deleted = world.documents.delete(&own, &doc("documents/a.md"), "ann", &WriteCondition::Any).await;
    assert_eq!(deleted.unwrap_err().code(), ErrorCode::LayerReadOnly);
    // A tenant's file lies below what the project writes.
    world.file("u/_tenant/documents/a.md", "file").await;
    assert_eq!(world.put(&scope("u", "main"), "x", WriteCondition::Any).await.unwrap(), "project-1");
    assert_eq!(world.put(&scope("u", "_tenant"), "x", WriteCondition::Any).await, Err(ErrorCode::LayerReadOnly));
}

#[tokio::test]
async fn texts_that_are_too_large_or_refused_are_not_written() {
    struct NoX;
    impl DocumentValidator for NoX {
        fn check(&self, layer: Layer, path: &DocumentPath, text: &str) -> Result<(), Vec<DocumentError>> {
            use crate::yaml::{KeyPath, Position, Problem};
            let problem = Problem::new(Position::START, KeyPath::root(), "no x");
            if text == "x" { Err(vec![problem.in_document(path, Some(layer))]) } else { Ok(()) }
        }
    }
    let world = World::with(vec![Arc::new(NoX)]).await;
    let own = scope("t", "main");
    assert_eq!(world.put(&own, "x", WriteCondition::Any).await, Err(ErrorCode::InvalidDocument));
    let large = "l".repeat(crate::domain::document::MAX_DOCUMENT_BYTES + 1);
    assert_eq!(world.put(&own, &large, WriteCondition::Any).await, Err(ErrorCode::PayloadTooLarge));
    assert_eq!(world.put(&own, &large[1..], WriteCondition::Any).await.unwrap(), "project-1");
    let error = world.documents.check(&own, &doc("documents/a.md"), "x").await.unwrap_err();
    assert_eq!(error.to_string(), "documents/a.md (project), line 1, column 1: no x");
}

#[tokio::test]
async fn a_listing_is_merged_and_paged_in_byte_order() {
    let world = World::new().await;
    let (own, tenant) = (scope("t", "main"), scope("t", "_tenant"));
    for (scope, path) in
        [(&own, "documents/b.md"), (&tenant, "documents/B.md"), (&own, "scripts/x.js"), (&tenant, "documents/b.md")]
    {
        world.documents.put(scope, &doc(path), "text", "ann", &WriteCondition::Any).await.unwrap();
    }
    write(world.dir.path(), "t/_tenant/documents/é.md", "file");
    world.file("t/main/documents/c.md", b"\xff\xfe").await;
    let mut cursor = None;
    let mut seen = Vec::new();
    loop {
        let page = world.documents.list(&own, "documents/", cursor.as_deref(), 2).await.unwrap();
        assert!(page.documents.len() <= 2);
        seen.extend(
            page.documents.into_iter().map(|d| format!("{} {} {}", d.path, d.etag, d.error.unwrap_or_default())),
        );
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(
        seen.iter().map(|line| line.split("-folder-").next().unwrap()).collect::<Vec<_>>(),
        [
            "documents/B.md tenant-1 ",
            "documents/a.md bundled-9610e339fb8f3caa ",
            "documents/b.md project-1 ",
            "documents/c.md project",
            "documents/z.md bundled-1104908ab930e671 ",
            "documents/é.md tenant",
        ]
    );
    assert!(seen[3].contains("UTF-8"), "{}", seen[3]);
    let bad = world.documents.list(&own, "", Some("../x"), 2).await;
    assert_eq!(bad.unwrap_err().code(), ErrorCode::BadRequest);
}

#[tokio::test]
async fn a_write_has_counted_when_it_returns_and_touches_those_below() {
    let world = World::new().await;
    let (own, other, tenant) = (scope("t", "main"), scope("t", "other"), scope("t", "_tenant"));
    let state =
        async |scope: &Scope| (world.documents.tool_generation(scope), world.documents.revision(scope).await.unwrap());
    let (mut own_before, mut other_before) = (state(&own).await, state(&other).await);
    let mut changed = async || {
        let (own_now, other_now) = (state(&own).await, state(&other).await);
        let changed = (
            own_now.0 != own_before.0,
            own_now.1 != own_before.1,
            other_now.0 != other_before.0,
            other_now.1 != other_before.1,
        );
        (own_before, other_before) = (own_now, other_now);
        changed
    };
    let path = doc("server-tools/a.yaml");
    world.documents.put(&own, &path, "x", "ann", &WriteCondition::Any).await.unwrap();
    let (own_generation, own_revision, _, other_revision) = changed().await;
    assert!(own_generation && own_revision && !other_revision);
    world.documents.put(&tenant, &path, "x", "ann", &WriteCondition::Any).await.unwrap();
    let (own_generation, own_revision, other_generation, other_revision) = changed().await;
    assert!(own_generation && own_revision && other_generation && other_revision);
    world.documents.delete(&own, &path, "ann", &WriteCondition::Any).await.unwrap();
    let (own_generation, own_revision, ..) = changed().await;
    assert!(own_generation && own_revision);
    world.file("t/_tenant/server-tools/a.yaml", "file").await;
    assert_eq!(changed().await, (true, true, true, true));
    // What is no tool changes the scope, and no tool.
    world.documents.put(&own, &doc("documents/a.md"), "x", "ann", &WriteCondition::Any).await.unwrap();
    let (own_generation, own_revision, ..) = changed().await;
    assert!(!own_generation && own_revision);
    world.file("t/_tenant/documents/a.md", "file").await;
    assert_eq!(changed().await, (false, true, false, true));
    fs::remove_dir_all(world.dir.path().join("t")).unwrap();
    world.documents.rescan_folder().await.unwrap();
    assert_eq!(changed().await, (true, true, true, true));
}

#[tokio::test]
async fn subscribers_hear_of_writes_in_both_layers() {
    let world = World::new().await;
    let mut changes = world.documents.subscribe();
    let (own, path) = (scope("t", "main"), doc("documents/a.md"));
    world.documents.put(&own, &path, "x", "ann", &WriteCondition::Any).await.unwrap();
    let change = changes.recv().await.unwrap();
    assert_eq!(change, DocumentChange::Document { scope: own.clone(), path: path.clone() });
    assert!(change.touches(&own) && !change.touches(&scope("t", "other")) && !change.touches(&scope("u", "main")));

    world.file("t/_tenant/documents/a.md", "file").await;
    let change = changes.recv().await.unwrap();
    assert_eq!(change, DocumentChange::Document { scope: scope("t", "_tenant"), path });
    assert!(change.touches(&own) && change.touches(&scope("t", "other")) && !change.touches(&scope("u", "main")));
}
