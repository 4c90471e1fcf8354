//! The questions. Each is one statement, so it sees one state of the database.

use jiff::Timestamp;
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::domain::document::{Document, DocumentPath};
use crate::domain::scope::Scope;
use crate::store::rules::KeyRange;
use crate::store::{DocumentMeta, Record};

const DOCUMENT: &str = "
    SELECT v.text, v.version, v.created_at, v.updated_at, v.created_by
    FROM scopes s
    JOIN documents d ON d.scope = s.id
    JOIN versions v ON v.scope = d.scope AND v.path = d.path AND v.version = d.version
    WHERE s.tenant = ?1 AND s.project = ?2 AND d.path = ?3 AND d.deleted = 0";

const VERSIONS: &str = "
    SELECT v.text, v.version, v.created_at, v.updated_at, v.created_by
    FROM scopes s
    JOIN versions v ON v.scope = s.id
    WHERE s.tenant = ?1 AND s.project = ?2 AND v.path = ?3
    ORDER BY v.version DESC";

pub(super) const LIST: &str = "
    SELECT path, version, bytes, updated_at
    FROM documents
    WHERE scope = (SELECT id FROM scopes WHERE tenant = ?1 AND project = ?2)
      AND path >= ?3 AND path < ?4 AND deleted = 0
    ORDER BY path
    LIMIT ?5";

pub(super) const READ_ALL: &str = "
    SELECT v.text, v.version, v.created_at, v.updated_at, v.created_by, d.path
    FROM documents d
    JOIN versions v ON v.scope = d.scope AND v.path = d.path AND v.version = d.version
    WHERE d.scope = (SELECT id FROM scopes WHERE tenant = ?1 AND project = ?2)
      AND d.path >= ?3 AND d.path < ?4 AND d.deleted = 0
    ORDER BY d.path";

const RECORD: &str = "SELECT key, version, value FROM records WHERE kind = ?1 AND key = ?2 AND value IS NOT NULL";

pub(super) const RECORDS: &str = "
    SELECT key, version, value
    FROM records
    WHERE kind = ?1 AND key >= ?2 AND key < ?3 AND value IS NOT NULL
    ORDER BY key";

pub(super) fn document(
    connection: &Connection,
    scope: &Scope,
    path: &DocumentPath,
) -> rusqlite::Result<Option<Document>> {
    connection
        .prepare_cached(DOCUMENT)?
        .query_row(params![scope.tenant.as_str(), scope.project.as_str(), path.as_str()], |row| {
            to_document(row, path.clone())
        })
        .optional()
}

pub(super) fn versions(connection: &Connection, scope: &Scope, path: &DocumentPath) -> rusqlite::Result<Vec<Document>> {
    connection
        .prepare_cached(VERSIONS)?
        .query_map(params![scope.tenant.as_str(), scope.project.as_str(), path.as_str()], |row| {
            to_document(row, path.clone())
        })?
        .collect()
}

pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    range: KeyRange,
    limit: usize,
) -> rusqlite::Result<Vec<DocumentMeta>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let end = upper_bound(range.end);
    connection
        .prepare_cached(LIST)?
        .query_map(params![scope.tenant.as_str(), scope.project.as_str(), range.start, end, limit], |row| {
            Ok(DocumentMeta {
                path: path(row, 0)?,
                version: count(row, 1)?,
                bytes: count(row, 2)?,
                updated_at: time(row, 3)?,
            })
        })?
        .collect()
}

pub(super) fn read_all(connection: &Connection, scope: &Scope, range: KeyRange) -> rusqlite::Result<Vec<Document>> {
    let end = upper_bound(range.end);
    connection
        .prepare_cached(READ_ALL)?
        .query_map(params![scope.tenant.as_str(), scope.project.as_str(), range.start, end], |row| {
            to_document(row, path(row, 5)?)
        })?
        .collect()
}

pub(super) fn revision(connection: &Connection, scope: &Scope) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT revision FROM scopes WHERE tenant = ?1 AND project = ?2")?
        .query_row(params![scope.tenant.as_str(), scope.project.as_str()], |row| count(row, 0))
        .optional()
        .map(Option::unwrap_or_default)
}

pub(super) fn record(connection: &Connection, kind: &str, key: &str) -> rusqlite::Result<Option<Record>> {
    connection.prepare_cached(RECORD)?.query_row(params![kind, key], to_record).optional()
}

pub(super) fn records(connection: &Connection, kind: &str, range: KeyRange) -> rusqlite::Result<Vec<Record>> {
    let end = upper_bound(range.end);
    connection.prepare_cached(RECORDS)?.query_map(params![kind, range.start, end], to_record)?.collect()
}

/// The end of a range as SQLite compares it: every blob sorts behind every text, so an empty one is the open end.
fn upper_bound(end: Option<String>) -> Value {
    end.map_or(Value::Blob(Vec::new()), Value::Text)
}

fn to_document(row: &Row<'_>, path: DocumentPath) -> rusqlite::Result<Document> {
    Ok(Document {
        path,
        text: row.get(0)?,
        version: count(row, 1)?,
        created_at: time(row, 2)?,
        updated_at: time(row, 3)?,
        created_by: row.get(4)?,
    })
}

fn to_record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record { key: row.get(0)?, version: count(row, 1)?, value: row.get(2)? })
}

/// A number that is never negative.
pub(super) fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(index)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(index, number))
}

/// A time kept as milliseconds since 1970.
pub(super) fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    let invalid = |error| rusqlite::Error::FromSqlConversionFailure(index, Type::Integer, Box::new(error));
    Timestamp::from_millisecond(row.get(index)?).map_err(invalid)
}

/// A path. Only valid ones are written; one that is not says that the file was tampered with.
fn path(row: &Row<'_>, index: usize) -> rusqlite::Result<DocumentPath> {
    let invalid = |error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error));
    DocumentPath::parse(row.get_ref(index)?.as_str()?).map_err(invalid)
}
