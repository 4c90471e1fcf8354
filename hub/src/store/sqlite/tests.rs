//! What is true of this store alone: opening, closing, its files and its queries.

use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::join_all;
use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::clock::Clock;
use crate::clock::manual::ManualClock;
use crate::domain::document::MAX_VERSIONS;
use crate::store::StoreError;
use crate::store::contract::{Fixture, store_contract};

mod writing;

store_contract!(async |clock| {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path(), clock).unwrap();
    Fixture::keeping(Arc::new(store), dir)
});

/// One millisecond later each time it is asked, so that writes of one transaction bear the same time and others not.
#[derive(Default)]
struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.fetch_add(1, Ordering::Relaxed)).unwrap()
    }
}

fn open() -> (TempDir, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path(), Arc::new(TickingClock::default())).unwrap();
    (dir, store)
}

fn scope() -> Scope {
    Scope::new("acme".parse().unwrap(), "main".parse().unwrap())
}

fn path(path: &str) -> DocumentPath {
    DocumentPath::parse(path).unwrap()
}

async fn put(store: &SqliteStore, at: &str, text: &str, precondition: Precondition) -> StoreResult<Document> {
    store.put(&scope(), &path(at), text, "ada", precondition).await
}

#[tokio::test]
async fn reopening_brings_everything_back() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let store = SqliteStore::open(dir.path(), clock.clone()).unwrap();
    for number in 0..=MAX_VERSIONS {
        put(&store, "kept.md", &number.to_string(), Precondition::Any).await.unwrap();
    }
    put(&store, "gone.md", "one", Precondition::Any).await.unwrap();
    store.delete(&scope(), &path("gone.md"), "ada", Precondition::Any).await.unwrap();
    store.put_record("token", "kept", "{}", Precondition::Any).await.unwrap();
    store.put_record("token", "gone", "{}", Precondition::Any).await.unwrap();
    store.delete_record("token", "gone", Precondition::Any).await.unwrap();
    let (versions, revision) =
        (store.versions(&scope(), &path("kept.md")).await.unwrap(), store.revision(&scope()).await.unwrap());
    store.close().await.unwrap();
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [DATA_FILE], "the log went into the main file");

    let store = SqliteStore::open(dir.path(), clock).unwrap();
    assert_eq!(store.versions(&scope(), &path("kept.md")).await.unwrap(), versions);
    assert_eq!(store.revision(&scope()).await.unwrap(), revision);
    assert_eq!(store.get(&scope(), &path("gone.md")).await.unwrap(), None);
    assert_eq!(put(&store, "gone.md", "two", Precondition::Absent).await.unwrap().version, 2);
    assert_eq!(store.records("token", "").await.unwrap().len(), 1);
    assert_eq!(store.put_record("token", "gone", "{}", Precondition::Absent).await.unwrap().version, 2);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_without_an_ordered_end() {
    let (dir, store) = open();
    put(&store, "a.md", "one", Precondition::Any).await.unwrap();
    // The files as a kill would leave them: the log not yet in the main file.
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let store = SqliteStore::open(copy.path(), ManualClock::new()).unwrap();
    assert_eq!(store.get(&scope(), &path("a.md")).await.unwrap().unwrap().text, "one");
}

#[tokio::test]
async fn closing_lets_queued_writes_end_and_refuses_those_that_come_later() {
    let (dir, store) = open();
    let paths: Vec<_> = (0..20).map(|number| format!("{number}.md")).collect();
    let mut writes = Box::pin(join_all(paths.iter().map(|at| put(&store, at, "x", Precondition::Any))));
    assert!(futures::poll!(&mut writes).is_pending());
    store.close().await.unwrap();
    assert!(writes.await.iter().all(Result::is_ok));
    let late = put(&store, "late.md", "x", Precondition::Any).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    let late = store.get(&scope(), &path("0.md")).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");

    let store = SqliteStore::open(dir.path(), ManualClock::new()).unwrap();
    assert_eq!(store.list(&scope(), "", None, 100).await.unwrap().len(), 20);
}

#[tokio::test]
async fn listings_walk_an_index_and_sort_nothing() {
    let (dir, _store) = open();
    let connection = schema::open_reader(&dir.path().join(DATA_FILE)).unwrap();
    for (query, wanted) in [
        (reads::LIST, "SEARCH documents USING PRIMARY KEY (scope=? AND path>? AND path<?)"),
        (reads::READ_ALL, "SEARCH d USING PRIMARY KEY (scope=? AND path>? AND path<?)"),
        (reads::RECORDS, "SEARCH records USING PRIMARY KEY (kind=? AND key>? AND key<?)"),
        (calls::EXPIRED, "SEARCH calls USING INDEX calls_by_expiry (expires_at<?)"),
    ] {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
        let parameters = plan.parameter_count();
        let steps: Vec<String> = plan
            .query_map(rusqlite::params_from_iter(vec![rusqlite::types::Null; parameters]), |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(steps.iter().any(|step| step == wanted), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("SCAN") || step.contains("TEMP")), "{steps:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_but_the_owner_reads_the_files() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data");
    let store = SqliteStore::open(&folder, ManualClock::new()).unwrap();
    put(&store, "a.md", "one", Precondition::Any).await.unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "the file, its log and the log's index: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}
