//! In memory: for tests, and for a hub that shall leave nothing behind.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use footbridge_shared::id::CallId;
use jiff::Timestamp;
use tokio::sync::broadcast;

use super::rules::{KeyRange, check, check_delete, write_time};
use super::{CHANGE_QUEUE, Change, DocumentMeta, Precondition, Record, Store, StoreError, StoreResult, StoredCall};
use crate::clock::SharedClock;
use crate::domain::document::{Document, DocumentPath, MAX_VERSIONS};
use crate::domain::scope::Scope;

/// Keeps everything in ordered maps behind one lock.
pub struct MemoryStore {
    clock: SharedClock,
    contents: Mutex<Contents>,
    changes: broadcast::Sender<Change>,
}

#[derive(Default)]
struct Contents {
    scopes: HashMap<Scope, ScopeContents>,
    kinds: HashMap<String, BTreeMap<String, StoredRecord>>,
    calls: HashMap<CallId, KeyedCall>,
}

struct KeyedCall {
    stored: StoredCall,
    expires_at: Timestamp,
}

#[derive(Default)]
struct ScopeContents {
    revision: u64,
    documents: BTreeMap<String, History>,
}

/// What was written at one path. Outlives a delete, since the counting goes on.
#[derive(Default)]
struct History {
    /// Oldest first, at most [`MAX_VERSIONS`].
    versions: Vec<Document>,
    deleted: bool,
}

impl History {
    fn live(&self) -> Option<&Document> {
        if self.deleted { None } else { self.versions.last() }
    }
}

/// The value is `None` after a delete.
struct StoredRecord {
    version: u64,
    value: Option<String>,
}

impl StoredRecord {
    fn live(&self, key: &str) -> Option<Record> {
        Some(Record { key: key.to_owned(), version: self.version, value: self.value.clone()? })
    }
}

impl MemoryStore {
    /// An empty one. `clock` dates the versions.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, contents: Mutex::default(), changes: broadcast::Sender::new(CHANGE_QUEUE) }
    }

    /// No operation leaves the maps half changed, so a panic elsewhere takes nothing with it.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends under the lock, so that changes leave in the order they were made. Nobody listening is fine.
    fn announce(&self, _held: &Contents, change: Change) {
        let _ = self.changes.send(change);
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Option<Document>> {
        let contents = self.contents();
        let history = contents.scopes.get(scope).and_then(|scope| scope.documents.get(path.as_str()));
        Ok(history.and_then(History::live).cloned())
    }

    async fn put(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        text: &str,
        author: &str,
        precondition: Precondition,
    ) -> StoreResult<Document> {
        let mut contents = self.contents();
        let now = write_time(&*self.clock);
        let entry = contents.scopes.entry(scope.clone()).or_default();
        let history = entry.documents.entry(path.as_str().to_owned()).or_default();
        check(precondition, history.live().map(|document| document.version))?;
        let document = Document {
            path: path.clone(),
            text: text.to_owned(),
            version: history.versions.last().map_or(0, |document| document.version) + 1,
            created_at: history.live().map_or(now, |document| document.created_at),
            updated_at: now,
            created_by: author.to_owned(),
        };
        if history.versions.len() == MAX_VERSIONS {
            history.versions.remove(0);
        }
        history.versions.push(document.clone());
        history.deleted = false;
        entry.revision += 1;
        self.announce(&contents, Change::Document { scope: scope.clone(), path: path.clone() });
        Ok(document)
    }

    async fn delete(
        &self,
        scope: &Scope,
        path: &DocumentPath,
        _author: &str,
        precondition: Precondition,
    ) -> StoreResult<()> {
        let mut contents = self.contents();
        let entry = contents.scopes.entry(scope.clone()).or_default();
        let history = entry.documents.entry(path.as_str().to_owned()).or_default();
        check_delete(precondition, history.live().map(|document| document.version))?;
        history.deleted = true;
        entry.revision += 1;
        self.announce(&contents, Change::Document { scope: scope.clone(), path: path.clone() });
        Ok(())
    }

    async fn versions(&self, scope: &Scope, path: &DocumentPath) -> StoreResult<Vec<Document>> {
        let contents = self.contents();
        let history = contents.scopes.get(scope).and_then(|scope| scope.documents.get(path.as_str()));
        Ok(history.map_or_else(Vec::new, |history| history.versions.iter().rev().cloned().collect()))
    }

    async fn list(
        &self,
        scope: &Scope,
        prefix: &str,
        after: Option<&DocumentPath>,
        limit: usize,
    ) -> StoreResult<Vec<DocumentMeta>> {
        let contents = self.contents();
        let range = KeyRange::new(prefix, after.map(DocumentPath::as_str));
        Ok(live_documents(&contents, scope, &range)
            .take(limit)
            .map(|document| DocumentMeta {
                path: document.path.clone(),
                version: document.version,
                bytes: document.text.len() as u64,
                updated_at: document.updated_at,
            })
            .collect())
    }

    async fn read_all(&self, scope: &Scope, prefix: &str) -> StoreResult<Vec<Document>> {
        Ok(live_documents(&self.contents(), scope, &KeyRange::new(prefix, None)).cloned().collect())
    }

    async fn revision(&self, scope: &Scope) -> StoreResult<u64> {
        Ok(self.contents().scopes.get(scope).map_or(0, |scope| scope.revision))
    }

    async fn record(&self, kind: &str, key: &str) -> StoreResult<Option<Record>> {
        let contents = self.contents();
        let stored = contents.kinds.get(kind).and_then(|records| records.get(key));
        Ok(stored.and_then(|stored| stored.live(key)))
    }

    async fn put_record(&self, kind: &str, key: &str, value: &str, precondition: Precondition) -> StoreResult<Record> {
        let mut contents = self.contents();
        let records = contents.kinds.entry(kind.to_owned()).or_default();
        let stored = records.entry(key.to_owned()).or_insert(StoredRecord { version: 0, value: None });
        check(precondition, stored.value.as_ref().map(|_| stored.version))?;
        stored.version += 1;
        stored.value = Some(value.to_owned());
        let record = Record { key: key.to_owned(), version: stored.version, value: value.to_owned() };
        self.announce(&contents, Change::Record { kind: kind.to_owned(), key: key.to_owned() });
        Ok(record)
    }

    async fn delete_record(&self, kind: &str, key: &str, precondition: Precondition) -> StoreResult<()> {
        let mut contents = self.contents();
        let records = contents.kinds.entry(kind.to_owned()).or_default();
        let stored = records.entry(key.to_owned()).or_insert(StoredRecord { version: 0, value: None });
        check_delete(precondition, stored.value.as_ref().map(|_| stored.version))?;
        stored.value = None;
        self.announce(&contents, Change::Record { kind: kind.to_owned(), key: key.to_owned() });
        Ok(())
    }

    async fn records(&self, kind: &str, prefix: &str) -> StoreResult<Vec<Record>> {
        let contents = self.contents();
        let range = KeyRange::new(prefix, None);
        let (Some(records), Some(bounds)) = (contents.kinds.get(kind), range.bounds()) else { return Ok(Vec::new()) };
        Ok(records.range::<str, _>(bounds).filter_map(|(key, stored)| stored.live(key)).collect())
    }

    async fn insert_call(&self, call: &CallId, head: &str, expires_at: Timestamp) -> StoreResult<Option<StoredCall>> {
        let now = write_time(&*self.clock);
        let mut contents = self.contents();
        if let Some(there) = contents.calls.get(call).filter(|there| there.expires_at > now) {
            return Ok(Some(there.stored.clone()));
        }
        let stored = StoredCall { head: head.to_owned(), end: None };
        contents.calls.insert(call.clone(), KeyedCall { stored, expires_at });
        Ok(None)
    }

    async fn call(&self, call: &CallId) -> StoreResult<Option<StoredCall>> {
        let now = write_time(&*self.clock);
        let contents = self.contents();
        Ok(contents.calls.get(call).filter(|there| there.expires_at > now).map(|there| there.stored.clone()))
    }

    async fn end_call(&self, call: &CallId, end: &str) -> StoreResult<bool> {
        let mut contents = self.contents();
        let there = contents.calls.get_mut(call).ok_or(StoreError::NotFound)?;
        let ends = there.stored.end.is_none();
        if ends {
            there.stored.end = Some(end.to_owned());
        }
        Ok(ends)
    }

    async fn remove_call(&self, call: &CallId) -> StoreResult<()> {
        self.contents().calls.remove(call);
        Ok(())
    }

    async fn purge_calls(&self, limit: usize) -> StoreResult<usize> {
        let now = write_time(&*self.clock);
        let mut contents = self.contents();
        let mut expired: Vec<(Timestamp, CallId)> = contents
            .calls
            .iter()
            .filter(|(_, call)| call.expires_at <= now)
            .map(|(id, call)| (call.expires_at, id.clone()))
            .collect();
        expired.sort();
        expired.truncate(limit);
        for (_, id) in &expired {
            contents.calls.remove(id);
        }
        Ok(expired.len())
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// There is nothing to write and nothing to let go of.
    async fn close(&self) -> StoreResult<()> {
        Ok(())
    }
}

/// The documents of a range that were not deleted, in order.
fn live_documents<'a>(
    contents: &'a Contents,
    scope: &Scope,
    range: &'a KeyRange,
) -> impl Iterator<Item = &'a Document> + use<'a> {
    let found = contents.scopes.get(scope).zip(range.bounds());
    found
        .into_iter()
        .flat_map(|(scope, bounds)| scope.documents.range::<str, _>(bounds))
        .filter_map(|(_, history)| history.live())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::contract::{Fixture, store_contract};

    store_contract!(async |clock| Fixture::new(Arc::new(MemoryStore::new(clock))));
}
