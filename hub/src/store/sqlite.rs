//! SQLite: one file in the data folder. The default.
//!
//! A write-ahead log with a sync at each commit: what was acknowledged survives a kill of the process and a loss of
//! power. One thread writes, readers have connections of their own. The caller holds the
//! [`DataLock`](super::lock::DataLock) of the folder: change notices reach only those who listen in this process.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::id::CallId;
use jiff::Timestamp;
use tokio::sync::broadcast;

use self::calls::{EndCall, InsertCall, PurgeCalls, RemoveCall};
use self::failure::unavailable;
use self::readers::Readers;
pub use self::schema::OpenError;
use self::writer::Writer;
use self::writes::{DeleteDocument, DeleteRecord, PutDocument, PutRecord};
use super::folder::{private_file_if_absent, private_folder};
use super::rules::{KeyRange, write_time};
use super::{CHANGE_QUEUE, Change, DocumentMeta, Precondition, Record, Store, StoreResult, StoredCall};
use crate::clock::SharedClock;
use crate::domain::document::{Document, DocumentPath};
use crate::domain::scope::Scope;

mod calls;
mod failure;
mod readers;
mod reads;
mod schema;
#[cfg(test)]
mod tests;
mod writer;
mod writes;

/// The database, in the data folder. While a hub runs, its log lies beside it (`-wal`, `-shm`).
pub const DATA_FILE: &str = "footbridge.db";

/// Keeps everything in one SQLite file.
pub struct SqliteStore {
    readers: Readers,
    writer: Arc<Writer>,
    changes: broadcast::Sender<Change>,
    clock: SharedClock,
}

impl SqliteStore {
    /// Opens [`DATA_FILE`] in a folder, and makes both (for their owner alone) if they are not there. Blocks.
    ///
    /// # Errors
    /// [`OpenError`] says whether the file is somebody else's, of a later build, or cannot be opened.
    pub fn open(folder: &Path, clock: SharedClock) -> Result<Self, OpenError> {
        let path = folder.join(DATA_FILE);
        let failed = |source| OpenError::Io { path: path.clone(), source };
        private_folder(folder).map_err(failed)?;
        // Made here for its permissions, which SQLite then gives to the log as well.
        private_file_if_absent(&path).map_err(failed)?;
        let connection = schema::open_writer(&path)?;
        let readers = Readers::open(&path)?;
        let changes = broadcast::Sender::new(CHANGE_QUEUE);
        let writer = Writer::start(connection, folder.to_owned(), clock.clone(), changes.clone()).map_err(failed)?;
        Ok(Self { readers, writer: Arc::new(writer), changes, clock })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn get(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Option<Document>> {
        let (scope, path) = (scope.clone(), path.clone());
        self.readers.read(move |connection| reads::document(connection, &scope, &path)).await
    }

    async fn put(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        text: &str,
        author: &str,
        precondition: Precondition,
    ) -> StoreResult<Document> {
        let (scope, path, text, author) = (scope.clone(), path.clone(), text.to_owned(), author.to_owned());
        self.writer.write(PutDocument { scope, path, text, author, precondition }).await
    }

    async fn delete(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        author: &str,
        precondition: Precondition,
    ) -> StoreResult<()> {
        let (scope, path, author) = (scope.clone(), path.clone(), author.to_owned());
        self.writer.write(DeleteDocument { scope, path, author, precondition }).await
    }

    async fn versions(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Vec<Document>> {
        let (scope, path) = (scope.clone(), path.clone());
        self.readers.read(move |connection| reads::versions(connection, &scope, &path)).await
    }

    async fn list(
        &self,
        scope: &Scope,
        prefix: &str,
        after: Option<&DocumentPath>,
        limit: usize,
    ) -> StoreResult<Vec<DocumentMeta>> {
        let (scope, range) = (scope.clone(), KeyRange::new(prefix, after.map(DocumentPath::as_str)));
        self.readers.read(move |connection| reads::list(connection, &scope, range, limit)).await
    }

    async fn read_all(&self, scope: &Scope, prefix: &str) -> StoreResult<Vec<Document>> {
        let (scope, range) = (scope.clone(), KeyRange::new(prefix, None));
        self.readers.read(move |connection| reads::read_all(connection, &scope, range)).await
    }

    async fn revision(&self, scope: &Scope) -> StoreResult<u64> {
        let scope = scope.clone();
        self.readers.read(move |connection| reads::revision(connection, &scope)).await
    }

    async fn record(&self, kind: &str, key: &str) -> StoreResult<Option<Record>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        self.readers.read(move |connection| reads::record(connection, &kind, &key)).await
    }

    async fn put_record(&self, kind: &str, key: &str, value: &str, precondition: Precondition) -> StoreResult<Record> {
        let (kind, key, value) = (kind.to_owned(), key.to_owned(), value.to_owned());
        self.writer.write(PutRecord { kind, key, value, precondition }).await
    }

    async fn delete_record(&self, kind: &str, key: &str, precondition: Precondition) -> StoreResult<()> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        self.writer.write(DeleteRecord { kind, key, precondition }).await
    }

    async fn records(&self, kind: &str, prefix: &str) -> StoreResult<Vec<Record>> {
        let (kind, range) = (kind.to_owned(), KeyRange::new(prefix, None));
        self.readers.read(move |connection| reads::records(connection, &kind, range)).await
    }

    async fn insert_call(&self, call: &CallId, head: &str, expires_at: Timestamp) -> StoreResult<Option<StoredCall>> {
        self.writer.write(InsertCall { call: call.clone(), head: head.to_owned(), expires_at }).await
    }

    async fn call(&self, call: &CallId) -> StoreResult<Option<StoredCall>> {
        let (call, now) = (call.clone(), write_time(&*self.clock));
        self.readers.read(move |connection| calls::find(connection, &call, now)).await
    }

    async fn end_call(&self, call: &CallId, end: &str) -> StoreResult<bool> {
        self.writer.write(EndCall { call: call.clone(), end: end.to_owned() }).await
    }

    async fn remove_call(&self, call: &CallId) -> StoreResult<()> {
        self.writer.write(RemoveCall { call: call.clone() }).await
    }

    async fn purge_calls(&self, limit: usize) -> StoreResult<usize> {
        self.writer.write(PurgeCalls { limit }).await
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    async fn close(&self) -> StoreResult<()> {
        // The readers first: the last connection to go writes the log into the main file, and they may not.
        self.readers.close().await;
        let writer = self.writer.clone();
        tokio::task::spawn_blocking(move || writer.finish()).await.map_err(unavailable)?
    }
}
