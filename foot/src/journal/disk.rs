//! The few things that a journal asks of a disk.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;

/// Makes files.
pub(super) trait Disk: Send + fmt::Debug {
    /// A new file that nobody else can read, held by this process until it ends.
    ///
    /// # Errors
    /// There is one of that name, or the disk says no.
    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;
}

/// A file that is being written.
pub(super) trait LogFile: Send + fmt::Debug {
    /// Sees to it that writes up to this many bytes from the start find room. Where a file system cannot promise that,
    /// nothing happens.
    ///
    /// # Errors
    /// There is no room.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Writes all of it.
    ///
    /// # Errors
    /// A part may have been written.
    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<()>;

    /// Returns when all that was written would survive a loss of power.
    ///
    /// # Errors
    /// Nobody knows what would.
    fn sync(&self) -> io::Result<()>;
}

/// The machine's file systems.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Without locks nobody can tell that it is held, and therefore nobody deletes it.
            Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => Ok(Box::new(file)),
            Err(error) => Err(error.into()),
        }
    }
}

impl LogFile for File {
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(self, FallocateFlags::empty(), 0, bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<()> {
        self.write_all_at(bytes, place)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
