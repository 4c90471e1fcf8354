//! Opening the file: whose it is, which version it has, and how it is brought to ours.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

/// Marks the file as ours, in its header: `FtBr`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"FtBr");
/// How long a connection waits for another process, for instance an operator's shell, to let go of the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// What is left of the write-ahead log once its contents are in the main file, in bytes; it grows beyond as needed.
const WAL_KEPT_BYTES: i64 = 16 * 1024 * 1024;

/// The step at index `n` leads from version `n` of the schema to `n + 1`. Steps are only ever added.
const STEPS: [&str; 2] = [include_str!("v1.sql"), include_str!("v2.sql")];
/// The version this build works with.
const SCHEMA_VERSION: i32 = STEPS.len() as i32;

/// Why a data file could not be opened. Safe to show to its operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file holds something else. Nothing was written to it.
    #[error("`{}` is no Footbridge data file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later build wrote the file. Nothing was written to it.
    #[error(
        "`{}` was written by a later version of Footbridge (schema {found}; this build knows up to {known})",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i32,
        /// The highest this build knows.
        known: i32,
    },
    /// The file system or the operating system refuses.
    #[error("`{}` cannot be opened: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// SQLite refuses.
    #[error("`{}` cannot be opened: {source}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Opens the file to write, after a look at whose it is, and brings its schema to this build's.
pub(super) fn open_writer(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source: rusqlite::Error| OpenError::Database { path: path.to_owned(), source: source.into() };
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    // Before anything that writes: a file that is not ours stays as it is, byte for byte.
    identify(&connection, path)?;
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
    if journal != "wal" {
        let source = format!("there is no write-ahead log on this file system (journal mode is `{journal}`)").into();
        return Err(OpenError::Database { path: path.to_owned(), source });
    }
    // Every commit is on the disk before it is acknowledged, not only the log's next checkpoint.
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES).map_err(failed)?;
    migrate(&mut connection).map_err(failed)?;
    Ok(connection)
}

/// Opens the file to read. The writer has made it before.
pub(super) fn open_reader(path: &Path) -> Result<Connection, OpenError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|source| OpenError::Database { path: path.to_owned(), source: source.into() })
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite need not lock it as well.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Refuses a file that is neither ours nor empty, and one from a later build.
fn identify(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let look = || -> rusqlite::Result<(i32, i32, bool)> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        let empty = connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((pragma("application_id")?, pragma("user_version")?, empty))
    };
    match look() {
        Ok((APPLICATION_ID, found, _)) if found > SCHEMA_VERSION => {
            Err(OpenError::Newer { path: path.to_owned(), found, known: SCHEMA_VERSION })
        }
        Ok((APPLICATION_ID, ..) | (0, 0, true)) => Ok(()),
        Ok(_) => Err(OpenError::Foreign { path: path.to_owned() }),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(OpenError::Foreign { path: path.to_owned() })
        }
        Err(error) => Err(OpenError::Database { path: path.to_owned(), source: error.into() }),
    }
}

/// Takes the steps that are missing, all of them or none.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if found < SCHEMA_VERSION {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("footbridge.db");
        std::fs::write(&path, "").unwrap();
        (dir, path)
    }

    #[test]
    fn a_commit_is_on_the_disk_and_readers_do_not_wait_for_it() {
        let (_dir, path) = file();
        let connection = open_writer(&path).unwrap();
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        assert_eq!(pragma("journal_mode").unwrap(), rusqlite::types::Value::Text("wal".into()));
        assert_eq!(pragma("synchronous").unwrap(), rusqlite::types::Value::Integer(2));
        assert_eq!(pragma("user_version").unwrap(), rusqlite::types::Value::Integer(i64::from(SCHEMA_VERSION)));
    }

    #[test]
    fn a_file_of_a_later_build_is_left_alone() {
        let (_dir, path) = file();
        open_writer(&path).unwrap().pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        let before = std::fs::read(&path).unwrap();
        let refused = open_writer(&path).unwrap_err();
        assert!(
            matches!(refused, OpenError::Newer { found, known, .. } if (found, known) == (SCHEMA_VERSION + 1, SCHEMA_VERSION)),
            "{refused:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let (_dir, path) = file();
        for make in [
            |path: &Path| std::fs::write(path, "notes, at least a page of them\n".repeat(200)).unwrap(),
            |path: &Path| Connection::open(path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap(),
            |path: &Path| Connection::open(path).unwrap().pragma_update(None, "application_id", 7).unwrap(),
        ] {
            std::fs::remove_file(&path).unwrap();
            make(&path);
            let before = std::fs::read(&path).unwrap();
            let refused = open_writer(&path).unwrap_err();
            assert!(matches!(refused, OpenError::Foreign { .. }), "{refused:?}");
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
    }

    #[test]
    fn a_first_start_that_was_cut_short_is_taken_up_again() {
        let (_dir, path) = file();
        // All that is there is a header: the log was switched on, the schema never written.
        Connection::open(&path).unwrap().pragma_update(None, "journal_mode", "WAL").unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > 0);
        open_writer(&path).unwrap();
    }
}
