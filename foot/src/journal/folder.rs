//! The folder of one foot's journals: a file for each process that lives or left something behind.
//!
//! Two processes of a foot may overlap while one takes the other's place. Each writes its own file, and holds it by a lock
//! for as long as it lives. Whoever begins calls, makes a file or removes one holds the lock of the folder meanwhile: so
//! each sees every start of the other, and a file that nobody holds was left for good.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::entry::{Entries, merge, replay};
use super::record::{OtherVersion, read};
use crate::clock::Clock;

/// Ending of a journal.
const JOURNAL: &str = "log";
/// Ending of one that is being made.
const DRAFT: &str = "draft";
/// The file whose lock is that of the folder.
const LOCK: &str = "lock";
/// How often the lock is tried, and how long it is left alone in between: 5 s together. Others hold it for one sync; one
/// that was stopped meanwhile must not stop us for good.
const LOCK_TRIES: usize = 2500;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// Most bytes of a file that are read: far more than one may have.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// A folder of journals, and which of them is ours.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    own: PathBuf,
    draft: PathBuf,
    /// Files of another version. They are complained of once, and not read again.
    strange: Vec<PathBuf>,
}

/// The right to begin calls, make files and remove them; held until it is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

/// What others wrote.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Of processes that live.
    pub(super) living: Entries,
    /// Of those that do not.
    pub(super) dead: Entries,
    /// The files of the latter. Held, so that two do not take them over.
    pub(super) left: Vec<(PathBuf, File)>,
}

impl Folder {
    /// `instance` is new for each process.
    pub(super) fn new(path: PathBuf, instance: &str) -> Self {
        let (own, draft) = (path.join(format!("{instance}.{JOURNAL}")), path.join(format!("{instance}.{DRAFT}")));
        Self { path, own, draft, strange: Vec::new() }
    }

    /// Where a new file is made before it takes the place of [`Self::own`].
    pub(super) fn draft(&self) -> &Path {
        &self.draft
    }

    /// Waits for the lock, on a thread that may block; makes the folder if need be.
    ///
    /// # Errors
    /// The folder or its lock cannot be made, or somebody holds it for too long.
    pub(super) fn lock(&self) -> io::Result<FolderLock> {
        let open =
            || OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.path.join(LOCK));
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
                if let Some(parent) = self.path.parent() {
                    File::open(parent)?.sync_all()?;
                }
                open()?
            }
            opened => opened?,
        };
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
                // A file system without locks: two processes of one foot at the same moment are on their own there.
                Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => return Ok(FolderLock { _file: file }),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process of this foot holds the journal and does not end"))
    }

    /// Reads what others wrote.
    ///
    /// # Errors
    /// A file cannot be read: what it says is not known, and not to know is not to be sure.
    pub(super) fn others(&mut self, _: &FolderLock, clock: &dyn Clock) -> io::Result<Others> {
        let mut others = Others::default();
        for listed in std::fs::read_dir(&self.path)? {
            let path = listed?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if ending == Some(DRAFT) {
                // It is made under the lock that we hold: whoever made this one is gone.
                std::fs::remove_file(&path)?;
            }
            if ending == Some(JOURNAL) && path != self.own && !self.strange.contains(&path) {
                self.take(path, &mut others, clock)?;
            }
        }
        Ok(others)
    }

    fn take(&mut self, path: PathBuf, others: &mut Others, clock: &dyn Clock) -> io::Result<()> {
        let file = File::open(&path)?;
        // Looked at before it is read: a process that ends in between has written its last by then.
        let is_left = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let mut bytes = Vec::new();
        (&file).take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        let contents = match read(&bytes) {
            Ok(contents) => contents,
            Err(other @ OtherVersion) => {
                tracing::warn!(path = %path.display(), %other, "left alone; its calls are not remembered");
                self.strange.push(path);
                return Ok(());
            }
        };
        // A living process may be in the middle of a write.
        if contents.torn && is_left {
            let (path, records) = (path.display(), contents.records.len());
            tracing::warn!(%path, records, "the end of a journal is damaged; what stands before it counts");
        }
        let entries = replay(contents.records, clock);
        if is_left {
            merge(&mut others.dead, entries);
            others.left.push((path, file));
        } else {
            merge(&mut others.living, entries);
        }
        Ok(())
    }

    /// Puts the draft, which is written and synced, in place of our file.
    ///
    /// # Errors
    /// The old file is still there, or the new one; both are whole.
    pub(super) fn publish(&self, _: &FolderLock) -> io::Result<()> {
        std::fs::rename(&self.draft, &self.own)?;
        File::open(&self.path)?.sync_all()
    }
}
