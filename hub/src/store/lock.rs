//! One hub a data folder. The kernel lets go of the lock when its holder ends, however it ends.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::folder::{private_file, private_folder};

/// The file that is locked, in the data folder. It holds the process id of the holder, and stays when that ends.
pub const LOCK_FILE: &str = "hub.lock";

/// Why a data folder could not be had. Safe to show to its operator.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process works in it.
    #[error("the data folder `{}` is in use by {}", .folder.display(), holder(*.pid))]
    Held {
        /// The data folder.
        folder: PathBuf,
        /// The process that holds it, where it could be read.
        pid: Option<u32>,
    },
    /// The folder or the lock file cannot be made or opened.
    #[error("the data folder `{}` cannot be used: {source}", .folder.display())]
    Io {
        /// The data folder.
        folder: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// The right to work in a data folder, until it is dropped.
#[derive(Debug)]
pub struct DataLock {
    file: File,
}

impl DataLock {
    /// Takes a data folder, and makes it (0700) if it is not there.
    ///
    /// # Errors
    /// [`LockError::Held`] names the process that has it. It never waits.
    pub fn acquire(folder: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { folder: folder.to_owned(), source };
        private_folder(folder).map_err(failed)?;
        let mut file = private_file(&folder.join(LOCK_FILE)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { folder: folder.to_owned(), pid: read_pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        if let Err(error) = write_pid(&mut file) {
            // The lock is what counts, and a full disk must not keep a hub from starting.
            tracing::warn!(%error, "the process id could not be written to the lock file");
        }
        Ok(Self { file })
    }
}

impl Drop for DataLock {
    fn drop(&mut self) {
        // So that nobody is told of a process that has ended. A kill skips this; the next holder overwrites it.
        let _ = self.file.set_len(0);
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_hub_is_told_who_has_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");
        let held = DataLock::acquire(&folder).unwrap();
        let refused = DataLock::acquire(&folder).unwrap_err();
        assert!(matches!(refused, LockError::Held { pid: Some(pid), .. } if pid == std::process::id()), "{refused:?}");
        assert!(refused.to_string().contains(&format!("in use by process {}", std::process::id())), "{refused}");

        drop(held);
        DataLock::acquire(&folder).unwrap();
    }

    #[test]
    fn what_a_killed_hub_left_behind_does_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LOCK_FILE), "4294967295 and more\n").unwrap();
        let _held = DataLock::acquire(dir.path()).unwrap();
        let text = std::fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }

    #[test]
    fn folders_do_not_lock_each_other() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let _held = DataLock::acquire(one.path()).unwrap();
        DataLock::acquire(two.path()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_held_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let refused = DataLock::acquire(&dir.path().join("file/data")).unwrap_err();
        assert!(matches!(refused, LockError::Io { .. }), "{refused:?}");
    }
}
