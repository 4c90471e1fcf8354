//! What an error of SQLite means for a caller.

use std::io::{self, Write as _};
use std::path::Path;

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// A file that is written, and removed at once, to learn whether there is room.
const PROBE_FILE: &str = "room.probe";
/// How much is written, in bytes: two pages of the database.
const PROBE_BYTES: usize = 8 * 1024;

/// Why a write did not happen.
#[derive(Debug)]
pub(super) enum WriteError {
    /// It was refused; the database is fine.
    Refused(StoreError),
    /// The database failed.
    Database(rusqlite::Error),
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The store cannot do it, for the given reason.
pub(super) fn unavailable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable(cause.into())
}

/// What a failed write means. `folder` is where the database lies.
pub(super) fn write_failure(error: rusqlite::Error, folder: &Path) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        // SQLite knows of full disks, not of quotas nor of a shared-memory file that cannot grow; the file system does.
        Some(ErrorCode::SystemIoFailure) if no_room(folder) => StoreError::Full,
        _ => unavailable(error),
    }
}

/// Whether the file system refuses new bytes for want of room.
fn no_room(folder: &Path) -> bool {
    let path = folder.join(PROBE_FILE);
    let written = crate::store::folder::private_file(&path).and_then(|mut file| {
        file.write_all(&[0; PROBE_BYTES])?;
        file.sync_all()
    });
    let _ = std::fs::remove_file(&path);
    written.is_err_and(|error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: std::ffi::c_int) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
    }

    #[test]
    fn no_room_is_told_from_a_broken_disk() {
        let dir = tempfile::tempdir().unwrap();
        let meaning = |code| write_failure(failed(code), dir.path());
        assert!(matches!(meaning(rusqlite::ffi::SQLITE_FULL), StoreError::Full));
        assert!(matches!(meaning(rusqlite::ffi::SQLITE_IOERR_WRITE), StoreError::Unavailable(_)));
        assert!(matches!(meaning(rusqlite::ffi::SQLITE_CORRUPT), StoreError::Unavailable(_)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the probe leaves nothing behind");
    }
}
