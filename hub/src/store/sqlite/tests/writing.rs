//! The writer thread: groups, failures, and what goes on beside it.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use futures::future::join_all;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::*;
use crate::store::sqlite::failure::WriteError;
use crate::store::sqlite::writer::Write;

/// What a test does on the writer's own connection.
struct OnWriter<F>(F);

impl<T: Send, F> Write for OnWriter<F>
where
    F: Fn(&Connection) -> Result<T, WriteError> + Send + 'static,
{
    type Output = T;

    fn apply(&self, connection: &Connection, _now: Timestamp) -> Result<(T, Option<Change>), WriteError> {
        Ok((self.0(connection)?, Some(Change::Record { kind: "test".to_owned(), key: String::new() })))
    }
}

/// Keeps the writer within a transaction, after `first` was done in it, while `meanwhile` goes on.
async fn while_the_writer_is_busy<T>(
    store: &SqliteStore,
    first: impl Fn(&Connection) + Send + 'static,
    meanwhile: impl AsyncFnOnce() -> T,
) -> T {
    let (entered, at_the_gate) = oneshot::channel();
    let (open, gate) = mpsc::channel::<()>();
    let entered = std::cell::Cell::new(Some(entered));
    let mut blocker = Box::pin(store.writer.write(OnWriter(move |connection: &Connection| {
        first(connection);
        entered.take().map(|entered| entered.send(()));
        Ok(gate.recv().is_ok())
    })));
    assert!(futures::poll!(&mut blocker).is_pending());
    at_the_gate.await.unwrap();
    let result = meanwhile().await;
    open.send(()).unwrap();
    assert!(blocker.await.unwrap());
    result
}

/// Queues writes while the writer is busy, so that it finds all of them at once.
async fn in_one_group<T>(store: &SqliteStore, writes: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut queued = Box::pin(join_all(writes));
    while_the_writer_is_busy(store, |_| {}, async || assert!(futures::poll!(&mut queued).is_pending())).await;
    queued.await
}

#[tokio::test]
async fn writes_that_wait_share_a_commit_and_a_refused_one_undoes_only_itself() {
    let (_dir, store) = open();
    put(&store, "b.md", "there", Precondition::Any).await.unwrap();
    let written = in_one_group(
        &store,
        vec![
            put(&store, "a.md", "a", Precondition::Absent),
            put(&store, "b.md", "lost", Precondition::Absent),
            put(&store, "c.md", "c", Precondition::Absent),
        ],
    )
    .await;
    let time = |index: usize| written[index].as_ref().unwrap().updated_at;
    assert_eq!(time(0), time(2), "one transaction");
    assert!(matches!(written[1], Err(StoreError::VersionMismatch { current: Some(1) })), "{:?}", written[1]);
    assert_eq!(store.get(&scope(), &path("b.md")).await.unwrap().unwrap().text, "there");
    assert_eq!(store.list(&scope(), "", None, 10).await.unwrap().len(), 3);
    assert_eq!(store.revision(&scope()).await.unwrap(), 3);
}

#[tokio::test]
async fn what_a_refused_write_had_done_is_undone() {
    let (_dir, store) = open();
    put(&store, "a.md", "one", Precondition::Any).await.unwrap();
    let refused = store.writer.write(OnWriter(|connection: &Connection| -> Result<(), WriteError> {
        assert_eq!(connection.execute("UPDATE versions SET text = 'two'", [])?, 1);
        Err(StoreError::NotFound.into())
    }));
    assert!(matches!(refused.await, Err(StoreError::NotFound)));
    assert_eq!(store.get(&scope(), &path("a.md")).await.unwrap().unwrap().text, "one");
}

#[tokio::test]
async fn a_write_on_which_the_database_fails_takes_no_other_with_it() {
    let (_dir, store) = open();
    put(&store, "before.md", "one", Precondition::Any).await.unwrap();
    let pages = store.writer.write(OnWriter(page_count)).await.unwrap();
    limit_pages(&store, pages + 8).await;
    let large = "x".repeat(512 * 1024);
    let mut changes = store.changes();
    let written = in_one_group(
        &store,
        vec![
            put(&store, "a.md", "a", Precondition::Any),
            put(&store, "large.md", &large, Precondition::Any),
            put(&store, "c.md", "c", Precondition::Any),
        ],
    )
    .await;
    assert!(written[0].is_ok() && written[2].is_ok(), "{written:?}");
    assert!(matches!(written[1], Err(StoreError::Full)), "{:?}", written[1]);
    assert_eq!(store.list(&scope(), "", None, 10).await.unwrap().len(), 3);
    // The gate's own, and those of the two that were written: none of the attempt that was undone.
    assert_eq!(std::iter::from_fn(|| changes.try_recv().ok()).count(), 3);
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_nothing_else_until_there_is_room() {
    let (_dir, store) = open();
    put(&store, "a.md", "one", Precondition::Any).await.unwrap();
    let pages = store.writer.write(OnWriter(page_count)).await.unwrap();
    limit_pages(&store, pages).await;

    let large = "x".repeat(512 * 1024);
    for _ in 0..3 {
        let full = put(&store, "a.md", &large, Precondition::Version(1)).await;
        assert!(matches!(full, Err(StoreError::Full)), "{full:?}");
        let full = store.put_record("token", "t", &large, Precondition::Any).await;
        assert!(matches!(full, Err(StoreError::Full)), "{full:?}");
    }
    assert_eq!(store.get(&scope(), &path("a.md")).await.unwrap().unwrap().text, "one");
    assert_eq!((store.versions(&scope(), &path("a.md")).await.unwrap().len(), 1), (1, 1));
    assert_eq!(store.revision(&scope()).await.unwrap(), 1);
    assert_eq!(store.record("token", "t").await.unwrap(), None);
    let stale = put(&store, "a.md", "lost", Precondition::Version(7)).await;
    assert!(matches!(stale, Err(StoreError::VersionMismatch { .. })), "a refusal needs no room: {stale:?}");

    limit_pages(&store, pages + 1_000).await;
    assert_eq!(put(&store, "a.md", &large, Precondition::Version(1)).await.unwrap().version, 2);
}

fn page_count(connection: &Connection) -> Result<i64, WriteError> {
    Ok(connection.pragma_query_value(None, "page_count", |row| row.get(0))?)
}

/// Lets the file grow to so many pages, as a disk would.
async fn limit_pages(store: &SqliteStore, pages: i64) {
    let set = move |connection: &Connection| {
        Ok(connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, i64>(0))?)
    };
    assert_eq!(store.writer.write(OnWriter(set)).await.unwrap(), pages);
}

#[tokio::test]
async fn another_process_that_keeps_the_file_costs_one_wait_not_one_for_each_write() {
    const WRITES: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let attempts = Arc::new(TickingClock::default());
    let store = SqliteStore::open(dir.path(), attempts.clone()).unwrap();
    let wait = |connection: &Connection| Ok(connection.busy_timeout(Duration::from_millis(50))?);
    store.writer.write(OnWriter(wait)).await.unwrap();
    let shell = Connection::open(dir.path().join(DATA_FILE)).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();

    let before = attempts.0.load(Ordering::Relaxed);
    let paths: Vec<_> = (0..WRITES).map(|number| format!("{number}.md")).collect();
    for written in join_all(paths.iter().map(|at| put(&store, at, "x", Precondition::Any))).await {
        assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    }
    // The first alone, and those that queued up meanwhile together.
    assert!(attempts.0.load(Ordering::Relaxed) - before < 10);
    assert_eq!(store.list(&scope(), "", None, 10).await.unwrap(), [], "reading goes on");

    shell.execute_batch("ROLLBACK").unwrap();
    put(&store, "0.md", "x", Precondition::Absent).await.unwrap();
}

#[tokio::test]
async fn readers_neither_wait_for_the_writer_nor_see_what_is_not_committed() {
    let (_dir, store) = open();
    put(&store, "a.md", "one", Precondition::Any).await.unwrap();
    let rewrite = |connection: &Connection| {
        assert_eq!(connection.execute("UPDATE versions SET text = 'two'", []).unwrap(), 1);
    };
    let text = async || store.get(&scope(), &path("a.md")).await.unwrap().unwrap().text;
    assert_eq!(while_the_writer_is_busy(&store, rewrite, &text).await, "one");
    assert_eq!(text().await, "two");
}

#[tokio::test]
async fn a_caller_that_stops_waiting_does_not_take_its_write_back() {
    let (_dir, store) = open();
    while_the_writer_is_busy(
        &store,
        |_| {},
        async || {
            let mut write = Box::pin(put(&store, "a.md", "one", Precondition::Any));
            assert!(futures::poll!(&mut write).is_pending());
        },
    )
    .await;
    put(&store, "b.md", "two", Precondition::Any).await.unwrap();
    assert_eq!(store.get(&scope(), &path("a.md")).await.unwrap().unwrap().text, "one");
}
