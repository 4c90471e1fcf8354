//! The writes of documents and records. Each looks first and writes then, so that what is refused costs no sync.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::WriteError;
use super::reads::{count, time};
use super::writer::Write;
use crate::domain::document::{Document, DocumentPath, MAX_VERSIONS};
use crate::domain::scope::Scope;
use crate::store::rules::{check, check_delete};
use crate::store::{Change, Precondition, Record};

pub(super) struct PutDocument {
    pub(super) scope: Scope,
    pub(super) path: DocumentPath,
    pub(super) text: String,
    pub(super) author: String,
    pub(super) precondition: Precondition,
}

impl Write for PutDocument {
    type Output = Document;

    fn apply(&self, connection: &Connection, now: Timestamp) -> Result<(Document, Option<Change>), WriteError> {
        let head = Head::read(connection, &self.scope, &self.path)?;
        let live = head.as_ref().filter(|head| !head.deleted);
        check(self.precondition, live.map(|head| head.version))?;
        let document = Document {
            path: self.path.clone(),
            text: self.text.clone(),
            version: head.as_ref().map_or(0, |head| head.version) + 1,
            created_at: live.map_or(now, |head| head.created_at),
            updated_at: now,
            created_by: self.author.clone(),
        };
        insert(connection, touch_scope(connection, &self.scope)?, &document)?;
        Ok((document, Some(Change::Document { scope: self.scope.clone(), path: self.path.clone() })))
    }
}

pub(super) struct DeleteDocument {
    pub(super) scope: Scope,
    pub(super) path: DocumentPath,
    pub(super) author: String,
    pub(super) precondition: Precondition,
}

impl Write for DeleteDocument {
    type Output = ();

    fn apply(&self, connection: &Connection, now: Timestamp) -> Result<((), Option<Change>), WriteError> {
        let live = Head::read(connection, &self.scope, &self.path)?.filter(|head| !head.deleted);
        check_delete(self.precondition, live.map(|head| head.version))?;
        let scope = touch_scope(connection, &self.scope)?;
        connection
            .prepare_cached(
                "UPDATE documents SET deleted = 1, updated_at = ?3, updated_by = ?4 WHERE scope = ?1 AND path = ?2",
            )?
            .execute(params![scope, self.path.as_str(), now.as_millisecond(), self.author])?;
        Ok(((), Some(Change::Document { scope: self.scope.clone(), path: self.path.clone() })))
    }
}

pub(super) struct PutRecord {
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) precondition: Precondition,
}

impl Write for PutRecord {
    type Output = Record;

    fn apply(&self, connection: &Connection, _now: Timestamp) -> Result<(Record, Option<Change>), WriteError> {
        let head = record_head(connection, &self.kind, &self.key)?;
        check(self.precondition, live_version(head))?;
        let version = head.map_or(0, |(version, _)| version) + 1;
        connection
            .prepare_cached(
                "INSERT INTO records (kind, key, version, value) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version, value = excluded.value",
            )?
            .execute(params![self.kind, self.key, version.cast_signed(), self.value])?;
        let record = Record { key: self.key.clone(), version, value: self.value.clone() };
        Ok((record, Some(Change::Record { kind: self.kind.clone(), key: self.key.clone() })))
    }
}

pub(super) struct DeleteRecord {
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) precondition: Precondition,
}

impl Write for DeleteRecord {
    type Output = ();

    fn apply(&self, connection: &Connection, _now: Timestamp) -> Result<((), Option<Change>), WriteError> {
        let head = record_head(connection, &self.kind, &self.key)?;
        check_delete(self.precondition, live_version(head))?;
        connection
            .prepare_cached("UPDATE records SET value = NULL WHERE kind = ?1 AND key = ?2")?
            .execute(params![self.kind, self.key])?;
        Ok(((), Some(Change::Record { kind: self.kind.clone(), key: self.key.clone() })))
    }
}

/// What is known of a path that was ever written.
struct Head {
    version: u64,
    deleted: bool,
    created_at: Timestamp,
}

impl Head {
    fn read(connection: &Connection, scope: &Scope, path: &DocumentPath) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT d.version, d.deleted, d.created_at
                 FROM scopes s JOIN documents d ON d.scope = s.id
                 WHERE s.tenant = ?1 AND s.project = ?2 AND d.path = ?3",
            )?
            .query_row(params![scope.tenant.as_str(), scope.project.as_str(), path.as_str()], |row| {
                Ok(Self { version: count(row, 0)?, deleted: row.get(1)?, created_at: time(row, 2)? })
            })
            .optional()
    }
}

/// Counts a write of a scope and gives its id.
fn touch_scope(connection: &Connection, scope: &Scope) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO scopes (tenant, project, revision) VALUES (?1, ?2, 1)
             ON CONFLICT (tenant, project) DO UPDATE SET revision = revision + 1
             RETURNING id",
        )?
        .query_row(params![scope.tenant.as_str(), scope.project.as_str()], |row| row.get(0))
}

/// Makes a document the current version of its path, and lets go of the oldest beyond those kept.
fn insert(connection: &Connection, scope: i64, document: &Document) -> rusqlite::Result<()> {
    let (path, version) = (document.path.as_str(), document.version.cast_signed());
    let (created_at, updated_at) = (document.created_at.as_millisecond(), document.updated_at.as_millisecond());
    connection
        .prepare_cached(
            "INSERT INTO documents (scope, path, version, deleted, bytes, created_at, updated_at, updated_by)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7)
             ON CONFLICT (scope, path) DO UPDATE SET
                 version = excluded.version, deleted = 0, bytes = excluded.bytes, created_at = excluded.created_at,
                 updated_at = excluded.updated_at, updated_by = excluded.updated_by",
        )?
        .execute(params![
            scope,
            path,
            version,
            document.text.len() as i64,
            created_at,
            updated_at,
            document.created_by
        ])?;
    connection
        .prepare_cached(
            "INSERT INTO versions (scope, path, version, text, created_at, updated_at, created_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![scope, path, version, document.text, created_at, updated_at, document.created_by])?;
    connection
        .prepare_cached("DELETE FROM versions WHERE scope = ?1 AND path = ?2 AND version <= ?3")?
        .execute(params![scope, path, version - MAX_VERSIONS as i64])?;
    Ok(())
}

/// The last version of a record that was ever written, and whether it is still there.
fn record_head(connection: &Connection, kind: &str, key: &str) -> rusqlite::Result<Option<(u64, bool)>> {
    connection
        .prepare_cached("SELECT version, value IS NOT NULL FROM records WHERE kind = ?1 AND key = ?2")?
        .query_row(params![kind, key], |row| Ok((count(row, 0)?, row.get(1)?)))
        .optional()
}

fn live_version(head: Option<(u64, bool)>) -> Option<u64> {
    head.and_then(|(version, live)| live.then_some(version))
}
