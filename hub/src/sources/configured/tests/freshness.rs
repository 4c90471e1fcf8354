//! When a change is in force.

use std::sync::atomic::{AtomicUsize, Ordering};

use footbridge_shared::id::CallId;
use jiff::Timestamp;
use tokio::sync::broadcast;

use super::layers::lookup;
use super::*;
use crate::domain::document::Document;
use crate::store::{Change, DocumentMeta, Record, StoreResult, StoredCall};

#[tokio::test]
async fn what_was_written_is_in_the_next_listing() {
    let world = World::new(&[]).await;
    let (own, tenant) = (scope("acme", "main"), scope("acme", "_tenant"));
    for round in 0..20 {
        let writer = if round % 2 == 0 { &own } else { &tenant };
        let name = format!("t{round}");
        world.put(writer, &name, &lookup("documents/x.md")).await.unwrap();
        assert!(world.listing(&own).await.tools.contains_key(name.as_str()), "{round}");
        world
            .documents
            .delete(writer, &path(&format!("server-tools/{name}.yaml")), "ann", &WriteCondition::Any)
            .await
            .unwrap();
        assert!(!world.listing(&own).await.tools.contains_key(name.as_str()), "{round}");
    }
}

#[tokio::test]
async fn what_did_not_change_is_not_compiled_again() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    world.put(&own, "page", &lookup("documents/x.md")).await.unwrap();
    world.feet.set("ann", "box", &["file_read"]);
    world.put(&own, "pack", "type: foot\ndescription: d\nparameters: {foot: box}").await.unwrap();
    world.put_unchecked(&own, "server-tools/odd.yaml", "type: [").await;
    let before = world.listing(&own).await;
    world.put(&own, "other", &lookup("documents/x.md")).await.unwrap();
    let after = world.listing(&own).await;
    assert!(Arc::ptr_eq(&before.tools["page"], &after.tools["page"]));
    assert!(after.tools.contains_key("pack__file_read") && after.tools.contains_key("other"));
    assert_eq!(state(&before, "odd"), state(&after, "odd"));
    // The same name, another text.
    world.put(&own, "page", &lookup("documents/y.md")).await.unwrap();
    assert!(!Arc::ptr_eq(&before.tools["page"], &world.listing(&own).await.tools["page"]));
}

/// Agents write notes all the time; that is no reason to look at tools again.
#[tokio::test]
async fn a_document_that_is_no_tool_leaves_the_catalog_in_force() {
    let store = Arc::new(Wrapped::new());
    let world = World::over(store.clone(), &[]).await;
    let own = scope("acme", "main");
    world.put(&own, "page", &lookup("documents/x.md")).await.unwrap();
    let before = world.listing(&own).await;
    let asked = store.asked.load(Ordering::Relaxed);
    let note = path("documents/note.md");
    world.documents.put(&own, &note, "x", "ann", &WriteCondition::Any).await.unwrap();
    assert!(Arc::ptr_eq(&before, &world.listing(&own).await));
    assert_eq!(store.asked.load(Ordering::Relaxed), asked, "the store was not even asked");
    // Written while the tools are read, it does not make the catalog that was read too old to be used.
    store.meddle(&scope("acme", "_tenant"), &own, "documents/note.md", "y");
    world.put(&own, "other", &lookup("documents/x.md")).await.unwrap();
    let read = store.read.load(Ordering::Relaxed);
    let after = world.listing(&own).await;
    assert_eq!(store.read.load(Ordering::Relaxed) - read, 2, "both layers, once each");
    assert!(Arc::ptr_eq(&after, &world.listing(&own).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_and_readers_at_once_never_see_an_older_state_than_their_own() {
    let world = Arc::new(World::new(&[]).await);
    let own = scope("acme", "main");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let (world, own) = (world.clone(), own.clone());
        writers.spawn(async move {
            for round in 0..25 {
                let name = format!("t{writer}_{round}");
                world.put(&own, &name, &lookup("documents/x.md")).await.unwrap();
                let listing = world.listing(&own).await;
                for earlier in 0..=round {
                    assert!(listing.tools.contains_key(format!("t{writer}_{earlier}").as_str()), "{writer} {round}");
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    assert_eq!(world.listing(&own).await.tools.len(), 200);
}

#[tokio::test]
async fn a_file_is_in_force_as_soon_as_its_change_is_announced() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    assert!(world.listing(&own).await.tools.is_empty());
    let mut changes = world.documents.subscribe();
    world.file("acme/main/server-tools/page.yaml", lookup("documents/x.md"));
    let change = tokio::time::timeout(Duration::from_secs(10), changes.recv()).await.unwrap().unwrap();
    assert!(change.touches(&own));
    assert!(world.listing(&own).await.tools.contains_key("page"));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_announced_is_found_by_the_poll() {
    let store = Arc::new(Wrapped::new());
    let world = World::over(store.clone(), &[]).await;
    let own = scope("acme", "main");
    assert!(world.listing(&own).await.tools.is_empty());
    world.put_unchecked(&own, "server-tools/page.yaml", &lookup("documents/x.md")).await;
    assert!(world.listing(&own).await.tools.is_empty(), "another hub's write, not announced here");
    tokio::time::sleep(watch::POLL_INTERVAL * 2).await;
    assert!(world.listing(&own).await.tools.contains_key("page"));
}

#[tokio::test]
async fn a_state_that_was_overtaken_while_it_was_read_is_not_put_in_force() {
    let store = Arc::new(Wrapped::new());
    let world = World::over(store.clone(), &[]).await;
    let (own, tenant) = (scope("acme", "main"), scope("acme", "_tenant"));
    for (name, changed) in [("own", &own), ("inherited", &tenant)] {
        store.meddle(&tenant, changed, &format!("server-tools/{name}.yaml"), &lookup("documents/x.md"));
        world.put(&own, "page", &lookup("documents/x.md")).await.unwrap();
        let listing = world.listing(&own).await;
        assert!(listing.tools.contains_key(name), "{name}: {:?}", listing.tools.keys());
        assert!(Arc::ptr_eq(&listing, &world.listing(&own).await), "it is in force now");
    }
}

/// A store that announces nothing, and into which somebody writes while it is read.
struct Wrapped {
    store: MemoryStore,
    silence: broadcast::Sender<Change>,
    meddler: Mutex<Option<Meddler>>,
    /// How often it was asked for a revision, and for texts.
    asked: AtomicUsize,
    read: AtomicUsize,
}

/// Once `after` was read, writes to `scope`.
struct Meddler {
    after: Scope,
    scope: Scope,
    path: DocumentPath,
    text: String,
}

impl Wrapped {
    fn new() -> Self {
        let store = MemoryStore::new(Arc::new(SystemClock));
        Self {
            store,
            silence: broadcast::Sender::new(1),
            meddler: Mutex::default(),
            asked: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        }
    }

    fn meddle(&self, after: &Scope, scope: &Scope, place: &str, text: &str) {
        let (after, scope) = (after.clone(), scope.clone());
        *self.meddler.lock().unwrap() = Some(Meddler { after, scope, path: path(place), text: text.to_owned() });
    }
}

#[async_trait]
impl Store for Wrapped {
    async fn read_all(&self, scope: &Scope, prefix: &str) -> StoreResult<Vec<Document>> {
        self.read.fetch_add(1, Ordering::Relaxed);
        let read = self.store.read_all(scope, prefix).await;
        let meddler = self.meddler.lock().unwrap().take_if(|meddler| meddler.after == *scope);
        if let Some(Meddler { scope, path, text, .. }) = meddler {
            self.store.put(&scope, &path, &text, "eve", Precondition::Any).await?;
        }
        read
    }
    fn changes(&self) -> broadcast::Receiver<Change> {
        self.silence.subscribe()
    }
    async fn get(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Option<Document>> {
        self.store.get(scope, path).await
    }
    async fn put(
        &self,
        s: &Scope,
        p: &DocumentPath,
        text: &str,
        author: &str,
        c: Precondition,
    ) -> StoreResult<Document> {
        self.store.put(s, p, text, author, c).await
    }
    async fn delete(&self, s: &Scope, p: &DocumentPath, author: &str, c: Precondition) -> StoreResult<()> {
        self.store.delete(s, p, author, c).await
    }
    async fn versions(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Vec<Document>> {
        self.store.versions(scope, path).await
    }
    async fn list(&self, s: &Scope, p: &str, after: Option<&DocumentPath>, n: usize) -> StoreResult<Vec<DocumentMeta>> {
        self.store.list(s, p, after, n).await
    }
    async fn revision(&self, scope: &Scope) -> StoreResult<u64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.store.revision(scope).await
    }
    async fn record(&self, kind: &str, key: &str) -> StoreResult<Option<Record>> {
        self.store.record(kind, key).await
    }
    async fn put_record(&self, kind: &str, key: &str, value: &str, c: Precondition) -> StoreResult<Record> {
        self.store.put_record(kind, key, value, c).await
    }
    async fn delete_record(&self, kind: &str, key: &str, c: Precondition) -> StoreResult<()> {
        self.store.delete_record(kind, key, c).await
    }
    async fn records(&self, kind: &str, prefix: &str) -> StoreResult<Vec<Record>> {
        self.store.records(kind, prefix).await
    }
    async fn insert_call(&self, call: &CallId, head: &str, until: Timestamp) -> StoreResult<Option<StoredCall>> {
        self.store.insert_call(call, head, until).await
    }
    async fn call(&self, call: &CallId) -> StoreResult<Option<StoredCall>> {
        self.store.call(call).await
    }
    async fn end_call(&self, call: &CallId, end: &str) -> StoreResult<bool> {
        self.store.end_call(call, end).await
    }
    async fn remove_call(&self, call: &CallId) -> StoreResult<()> {
        self.store.remove_call(call).await
    }
    async fn purge_calls(&self, limit: usize) -> StoreResult<usize> {
        self.store.purge_calls(limit).await
    }
    async fn close(&self) -> StoreResult<()> {
        self.store.close().await
    }
}
