//! Changing what stands under one name of a folder, all at once.
//!
//! The folder is opened first, without following links, and everything else is done relative to it: what happens to its
//! path meanwhile does not matter. A file is never written in place. New content is made under a name of our own beside
//! it, brought to the disk and put in its stead, so a crash leaves the old file or the new one; another name of the old
//! one (a hard link) keeps the old content.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType, Gid, Mode, OFlags, RawMode, Stat, Uid};
use rustix::io::Errno;

use super::open::{self, OpenError, WriteError};

/// How the name of a file starts that is still being written. The floor keeps such names from everybody.
pub(super) const UNFINISHED: &str = ".footbridge-tmp-";
/// How much older than a new one an unfinished file is when nobody works on it any more, in seconds.
const STALE_SECONDS: i64 = 10 * 60;
/// Names of a folder that are looked at for unfinished files.
const MAX_NAMES: usize = 10_000;
/// Permission bits that a file may have: what lets it act as somebody else is never set.
const MODE_BITS: RawMode = 0o777;

/// A name in an open folder.
#[derive(Debug)]
pub(crate) struct Place {
    folder: OwnedFd,
    name: OsString,
}

/// The regular file at a place, as it was when it was opened.
#[derive(Debug)]
pub(crate) struct Found {
    /// Open for reading.
    pub(crate) file: File,
    stat: Stat,
}

impl Found {
    /// Its size in bytes.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or_default()
    }

    /// Whether this is still the file, with the content it had.
    fn is(&self, now: &Stat) -> bool {
        let then = &self.stat;
        (then.st_dev, then.st_ino, then.st_size) == (now.st_dev, now.st_ino, now.st_size)
            && (then.st_mtime, then.st_mtime_nsec) == (now.st_mtime, now.st_mtime_nsec)
    }
}

impl Place {
    /// The place of a real path, whose folder is there.
    pub(super) fn new(folder: &Path, name: &OsStr) -> Result<Self, OpenError> {
        Ok(Self { folder: open::folder(folder)?, name: name.to_owned() })
    }

    /// The same, after making the folders below `root` that are not there yet.
    pub(super) fn with_folders(root: &Path, folder: &Path, name: &OsStr) -> Result<Self, OpenError> {
        let mut missing = Vec::new();
        let mut there = folder;
        let mut at = loop {
            match (open::folder(there), there.file_name(), there.parent()) {
                (Err(OpenError::NotFound), Some(name), Some(parent)) if there != root => {
                    missing.push(name);
                    there = parent;
                }
                (opened, ..) => break opened?,
            }
        };
        for name in missing.into_iter().rev() {
            match rustix::fs::mkdirat(&at, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) => sync(&at)?,
                // Somebody was faster; what they made is looked at next.
                Err(Errno::EXIST) => {}
                Err(other) => return Err(other.into()),
            }
            at = subfolder(&at, name)?;
        }
        Ok(Self { folder: at, name: name.to_owned() })
    }

    /// Opens the file that is there. `None`: there is nothing.
    pub(super) fn current(&self) -> Result<Option<Found>, OpenError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let there = match self.look() {
            Err(Errno::NOENT) => return Ok(None),
            looked => looked?,
        };
        // Opening a device may move it, opening a pipe may wake its writer: hence the look before.
        open::expect_kind(FileType::from_raw_mode(there.st_mode), FileType::RegularFile)?;
        let fd = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        open::expect_kind(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile)?;
        Ok(Some(Found { file: File::from(fd), stat }))
    }

    /// Puts a file with this content here: in place of `previous`, or where there was nothing. Permission bits are
    /// `mode`, else those of `previous`, else what new files get.
    pub(super) fn put(
        &self,
        content: &[u8],
        previous: Option<&Found>,
        mode: Option<RawMode>,
    ) -> Result<(), WriteError> {
        if previous.is_some() {
            // Nothing but this keeps a file that its owner made read-only: the folder alone decides who may replace it.
            rustix::fs::accessat(&self.folder, &self.name, Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        let unfinished = Unfinished::create(self, previous, mode)?;
        unfinished.fill(content, previous, mode)?;
        self.sweep(&unfinished);
        match previous {
            Some(previous) => {
                self.expect_same(previous)?;
                rustix::fs::renameat(&self.folder, &unfinished.name, &self.folder, &self.name)?;
            }
            None => self.settle(&unfinished)?,
        }
        unfinished.is_settled();
        sync(&self.folder).map_err(WriteError::Unsynced)
    }

    /// Removes the file that was found here.
    pub(super) fn remove(&self, found: &Found) -> Result<(), WriteError> {
        self.expect_same(found)?;
        rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?;
        sync(&self.folder).map_err(WriteError::Unsynced)
    }

    fn look(&self) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn expect_same(&self, found: &Found) -> Result<(), WriteError> {
        match self.look() {
            Ok(now) if found.is(&now) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(WriteError::Changed),
            Err(other) => Err(other.into()),
        }
    }

    /// Gives an unfinished file its name, if nothing has taken it by now.
    fn settle(&self, unfinished: &Unfinished<'_>) -> Result<(), WriteError> {
        let settled = match without_replacing(&self.folder, &unfinished.name, &self.name) {
            // File systems that cannot promise it in one step have links for it, or nothing.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::linkat(&self.folder, &unfinished.name, &self.folder, &self.name, AtFlags::empty())
                    .and_then(|()| rustix::fs::unlinkat(&self.folder, &unfinished.name, AtFlags::empty()))
            }
            renamed => renamed,
        };
        match settled {
            Err(Errno::EXIST) => Err(WriteError::Changed),
            other => Ok(other?),
        }
    }

    /// Removes what writers that came to a sudden end left in this folder. It is enough that this succeeds sometimes.
    fn sweep(&self, newest: &Unfinished<'_>) {
        let Ok(newest) = rustix::fs::fstat(newest.file.as_fd()) else { return };
        let Ok(names) = rustix::fs::Dir::read_from(&self.folder) else { return };
        for entry in names.take(MAX_NAMES).flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if !is_unfinished(name) {
                continue;
            }
            let stat = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
            if stat.is_ok_and(|stat| newest.st_mtime.saturating_sub(stat.st_mtime) > STALE_SECONDS) {
                let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
    }
}

/// Whether a name is one that files have which are still being written.
pub(super) fn is_unfinished(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
}

/// A file under a name of our own, which goes again unless it is settled.
struct Unfinished<'a> {
    place: &'a Place,
    name: String,
    file: File,
    settled: std::cell::Cell<bool>,
}

impl<'a> Unfinished<'a> {
    fn create(place: &'a Place, previous: Option<&Found>, mode: Option<RawMode>) -> Result<Self, WriteError> {
        let name = format!("{UNFINISHED}{}", crate::random::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What replaces a file, or gets a mode, is nobody else's to read before it has its permission bits.
        let private = previous.is_some() || mode.is_some();
        let bits = if private { Mode::RUSR | Mode::WUSR } else { Mode::from_raw_mode(0o666) };
        let fd = rustix::fs::openat(&place.folder, &name, flags, bits)?;
        Ok(Self { place, name, file: File::from(fd), settled: false.into() })
    }

    /// Writes the content through to the disk, and gives the file its owner and its permission bits.
    fn fill(&self, content: &[u8], previous: Option<&Found>, mode: Option<RawMode>) -> Result<(), WriteError> {
        (&self.file).write_all(content)?;
        if let Some(Found { stat, .. }) = previous {
            let mine = rustix::fs::fstat(&self.file)?;
            if (mine.st_uid, mine.st_gid) != (stat.st_uid, stat.st_gid) {
                let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
                // Only root may give files away; a group of ours may still be kept.
                if rustix::fs::fchown(&self.file, Some(owner), Some(group)).is_err() {
                    let _ = rustix::fs::fchown(&self.file, None, Some(group));
                }
            }
        }
        if let Some(bits) = mode.or_else(|| previous.map(|previous| previous.stat.st_mode)) {
            rustix::fs::fchmod(&self.file, Mode::from_raw_mode(bits & MODE_BITS))?;
        }
        Ok(self.file.sync_all()?)
    }

    fn is_settled(&self) {
        self.settled.set(true);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.settled.get() {
            let _ = rustix::fs::unlinkat(&self.place.folder, &self.name, AtFlags::empty());
        }
    }
}

fn subfolder(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        // A link, or a file.
        Err(Errno::NOTDIR) => {
            let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            open::expect_kind(FileType::from_raw_mode(found.st_mode), FileType::Directory)?;
            Err(OpenError::Moved)
        }
        opened => Ok(opened?),
    }
}

/// Brings the names of a folder to the disk, where the file system knows how to.
fn sync(folder: &OwnedFd) -> io::Result<()> {
    match rustix::fs::fsync(folder) {
        Err(Errno::INVAL) => Ok(()),
        synced => Ok(synced?),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn without_replacing(folder: &OwnedFd, old: &str, new: &OsStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(folder, old, folder, new, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn without_replacing(_: &OwnedFd, _: &str, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests;
