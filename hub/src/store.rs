//! Where documents and records are kept: the trait, its errors, and the stores.
//!
//! A store keeps texts at paths in (tenant, project) scopes, with versions, and small JSON records by kind and key
//! (tokens, tenants, bindings of foot names), and a row for each keyed call. It knows nothing of what they mean. Every
//! store passes `contract`.

use async_trait::async_trait;
use footbridge_shared::id::CallId;
use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::domain::document::{Document, DocumentPath};
use crate::domain::scope::Scope;

#[cfg(test)]
mod contract;
pub mod folder;
pub mod journal;
pub mod lock;
pub mod memory;
mod rules;
pub mod sqlite;

/// Why a store did not do it. The text is safe to show.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is nothing at that path or key.
    #[error("there is nothing of that name")]
    NotFound,
    /// The precondition does not hold; nothing was written.
    #[error("it changed since it was read (it is at version {current:?} now)")]
    VersionMismatch {
        /// The version it is at; `None`: it is not there.
        current: Option<u64>,
    },
    /// No room; nothing was written.
    #[error("there is no room left to write")]
    Full,
    /// The store does not answer, or answers nonsense. The cause is for the log.
    #[error("the store does not answer")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A result of a store.
pub type StoreResult<T> = Result<T, StoreError>;

/// What must hold for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    Any,
    /// There is nothing yet.
    Absent,
    /// It is at this version.
    Version(u64),
}

/// What a listing says of a stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentMeta {
    /// Its path.
    pub path: DocumentPath,
    /// Its version.
    pub version: u64,
    /// Length of its text, bytes.
    pub bytes: u64,
    /// When this version was written.
    pub updated_at: Timestamp,
}

/// A small JSON value at (kind, key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: String,
    /// Its version: counts up from 1, and goes on after a delete.
    pub version: u64,
    /// JSON text.
    pub value: String,
}

/// A keyed call: texts that mean nothing to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCall {
    /// What was written down before it ran.
    pub head: String,
    /// What it came to; `None`: it has no end yet.
    pub end: Option<String>,
}

/// Something was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A document.
    Document {
        /// Where.
        scope: Scope,
        /// Which.
        path: DocumentPath,
    },
    /// A record.
    Record {
        /// Of what kind.
        kind: String,
        /// Which.
        key: String,
    },
}

/// Changes waiting for a slow subscriber; one that misses some sees `Lagged` and reads anew.
pub const CHANGE_QUEUE: usize = 1024;

/// Keeps documents and records. A write that was acknowledged survives a kill of the process.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads a document.
    async fn get(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Option<Document>>;

    /// Writes a document's next version. Keeps the last [`crate::domain::document::MAX_VERSIONS`].
    async fn put(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        text: &str,
        author: &str,
        precondition: Precondition,
    ) -> StoreResult<Document>;

    /// Deletes a document; [`StoreError::NotFound`] when there is none. Its versions can still be read.
    async fn delete(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        author: &str,
        precondition: Precondition,
    ) -> StoreResult<()>;

    /// The kept versions of a document, newest first; also of one that was deleted.
    async fn versions(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Vec<Document>>;

    /// Documents whose path starts with `prefix`, by path in byte order, after `after`, at most `limit`.
    async fn list(
        &self,
        scope: &Scope,
        prefix: &str,
        after: Option<&DocumentPath>,
        limit: usize,
    ) -> StoreResult<Vec<DocumentMeta>>;

    /// As [`Self::list`] without a limit, with the texts: what a catalog is built from.
    async fn read_all(&self, scope: &Scope, prefix: &str) -> StoreResult<Vec<Document>>;

    /// Counts up with every write in a scope; 0 for one that was never written to.
    async fn revision(&self, scope: &Scope) -> StoreResult<u64>;

    /// Reads a record.
    async fn record(&self, kind: &str, key: &str) -> StoreResult<Option<Record>>;

    /// Writes a record.
    async fn put_record(&self, kind: &str, key: &str, value: &str, precondition: Precondition) -> StoreResult<Record>;

    /// Deletes a record; [`StoreError::NotFound`] when there is none.
    async fn delete_record(&self, kind: &str, key: &str, precondition: Precondition) -> StoreResult<()>;

    /// Records of a kind whose key starts with `prefix`, by key in byte order.
    async fn records(&self, kind: &str, prefix: &str) -> StoreResult<Vec<Record>>;

    /// Inserts a keyed call. `Some`: there is one of that id that has not expired; nothing was written.
    async fn insert_call(&self, call: &CallId, head: &str, expires_at: Timestamp) -> StoreResult<Option<StoredCall>>;

    /// Reads a keyed call that has not expired.
    async fn call(&self, call: &CallId) -> StoreResult<Option<StoredCall>>;

    /// Writes the end of a keyed call, once; [`StoreError::NotFound`] when there is none. `false`: it had one, which stays.
    async fn end_call(&self, call: &CallId, end: &str) -> StoreResult<bool>;

    /// Deletes a keyed call, if it is there.
    async fn remove_call(&self, call: &CallId) -> StoreResult<()>;

    /// Deletes keyed calls that have expired, at most `limit`, and says how many.
    async fn purge_calls(&self, limit: usize) -> StoreResult<usize>;

    /// Changes of documents and records from now on, sent after they are durable, in the order they were made.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// Writes what is left and lets go of the files.
    async fn close(&self) -> StoreResult<()>;
}
