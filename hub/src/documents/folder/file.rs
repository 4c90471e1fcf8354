//! Reading one file of the folder, without being led elsewhere.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use jiff::Timestamp;
use rustix::fs::OFlags;

use crate::documents::error::Unreadable;
use crate::domain::document::MAX_DOCUMENT_BYTES;

pub(super) const LEADS_OUT: Unreadable = Unreadable::path("it is a link that leads out of its scope's folder");
pub(super) const NO_FILE: Unreadable = Unreadable::file("it is no regular file");
const GONE: Unreadable = Unreadable::file("it went away, or changed its place, while it was read");
const NO_ACCESS: Unreadable = Unreadable::file("the hub may not read it");
const NO_UTF8: Unreadable = Unreadable::file("it is not UTF-8 text");
const TOO_LARGE: Unreadable = Unreadable::file("it is larger than a document may be (1 MiB)");
const FAILED: Unreadable = Unreadable::file("reading it failed");

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Which file or folder this is, whatever is written to it.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether another write would have to show in the stamp: clocks of file systems tick slowly.
    pub(super) fn is_settled(&self, now: Timestamp) -> bool {
        /// Coarsest time stamps of file systems that people keep configuration on.
        const TICK_SECONDS: i64 = 2;
        self.modified.0.max(self.changed.0) + TICK_SECONDS < now.as_second()
    }
}

/// When a file was last written.
pub(super) fn modified(meta: &Metadata) -> Option<Timestamp> {
    Timestamp::new(meta.mtime(), i32::try_from(meta.mtime_nsec()).ok()?).ok()
}

/// Reads the file at `place`, which must hold no link in any part of it: it was resolved just before, and is checked again
/// once the file is open, so that swapping a folder for a link in between leads nowhere.
pub(super) fn read(place: &Path) -> Result<(String, Metadata), Unreadable> {
    // Opening a pipe or device must not wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).map_err(|_| FAILED)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(place).map_err(|error| reason(&error))?;
    let meta = file.metadata().map_err(|error| reason(&error))?;
    if !meta.is_file() {
        return Err(NO_FILE);
    }
    let still_there = place.canonicalize().is_ok_and(|now| now == place)
        && place.symlink_metadata().is_ok_and(|now| Stamp::of(&now).place() == Stamp::of(&meta).place());
    if !still_there {
        return Err(GONE);
    }
    if meta.size() > MAX_DOCUMENT_BYTES as u64 {
        return Err(TOO_LARGE);
    }
    Ok((text(file)?, meta))
}

/// The file may grow while it is read.
fn text(file: File) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(TOO_LARGE);
    }
    String::from_utf8(bytes).map_err(|_| NO_UTF8)
}

/// The system's own words may name places outside the folder.
pub(super) fn reason(error: &std::io::Error) -> Unreadable {
    match error.kind() {
        ErrorKind::NotFound => GONE,
        ErrorKind::PermissionDenied => NO_ACCESS,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_trusted_once_the_clocks_of_file_systems_have_ticked() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "x").unwrap();
        let stamp = Stamp::of(&path.metadata().unwrap());
        let written = stamp.modified.0.max(stamp.changed.0);
        let after = |seconds: i64| Timestamp::from_second(written + seconds).unwrap();
        assert!(!stamp.is_settled(after(0)) && !stamp.is_settled(after(2)));
        assert!(stamp.is_settled(after(3)));
    }
}
