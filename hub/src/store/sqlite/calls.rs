//! The table of keyed calls. Its rows are announced to nobody: each is one caller's own.

use footbridge_shared::id::CallId;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::WriteError;
use super::writer::Write;
use crate::store::{Change, StoreError, StoredCall};

const FIND: &str = "SELECT head, ending FROM calls WHERE id = ?1 AND expires_at > ?2";
pub(super) const EXPIRED: &str = "SELECT id FROM calls WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2";

pub(super) fn find(connection: &Connection, call: &CallId, now: Timestamp) -> rusqlite::Result<Option<StoredCall>> {
    connection
        .prepare_cached(FIND)?
        .query_row(params![call.as_str(), now.as_millisecond()], |row| {
            Ok(StoredCall { head: row.get(0)?, end: row.get(1)? })
        })
        .optional()
}

/// Inserts unless there is one that has not expired.
pub(super) struct InsertCall {
    pub(super) call: CallId,
    pub(super) head: String,
    pub(super) expires_at: Timestamp,
}

impl Write for InsertCall {
    type Output = Option<StoredCall>;

    fn apply(&self, connection: &Connection, now: Timestamp) -> Result<(Self::Output, Option<Change>), WriteError> {
        let there = find(connection, &self.call, now)?;
        if there.is_none() {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO calls (id, head, ending, expires_at) VALUES (?1, ?2, NULL, ?3)",
                )?
                .execute(params![self.call.as_str(), self.head, self.expires_at.as_millisecond()])?;
        }
        Ok((there, None))
    }
}

/// Writes the end of one that has none.
pub(super) struct EndCall {
    pub(super) call: CallId,
    pub(super) end: String,
}

impl Write for EndCall {
    type Output = bool;

    fn apply(&self, connection: &Connection, _now: Timestamp) -> Result<(bool, Option<Change>), WriteError> {
        let ended = connection
            .prepare_cached("UPDATE calls SET ending = ?2 WHERE id = ?1 AND ending IS NULL")?
            .execute(params![self.call.as_str(), self.end])?;
        if ended == 0 {
            let there =
                connection.prepare_cached("SELECT 1 FROM calls WHERE id = ?1")?.exists(params![self.call.as_str()])?;
            if !there {
                return Err(StoreError::NotFound.into());
            }
        }
        Ok((ended > 0, None))
    }
}

/// Deletes one, if it is there.
pub(super) struct RemoveCall {
    pub(super) call: CallId,
}

impl Write for RemoveCall {
    type Output = ();

    fn apply(&self, connection: &Connection, _now: Timestamp) -> Result<((), Option<Change>), WriteError> {
        connection.prepare_cached("DELETE FROM calls WHERE id = ?1")?.execute(params![self.call.as_str()])?;
        Ok(((), None))
    }
}

/// Deletes those that have expired, the longest expired first.
pub(super) struct PurgeCalls {
    pub(super) limit: usize,
}

impl Write for PurgeCalls {
    type Output = usize;

    fn apply(&self, connection: &Connection, now: Timestamp) -> Result<(usize, Option<Change>), WriteError> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let purged = connection
            .prepare_cached(&format!("DELETE FROM calls WHERE id IN ({EXPIRED})"))?
            .execute(params![now.as_millisecond(), limit])?;
        Ok((purged, None))
    }
}
