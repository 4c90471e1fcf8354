//! The file of this process: it grows at its end, ahead of which there is always room for what must not fail.

use std::io;

use super::disk::{Disk, LogFile};
use super::folder::{Folder, FolderLock};
use super::record::{FRAME_BYTES, Framer, MAX_RECORD_BYTES, Record, SALT_BYTES, TooLong};
use crate::random;

/// The file is allocated in steps of this many bytes.
const ALLOCATE_BYTES: u64 = 256 * 1024;
/// Most bytes of the frame of an end: a call id, an outcome, two numbers.
pub(super) const END_BYTES: u64 = 384;
/// Most bytes of any frame.
pub(super) const MAX_FRAME_BYTES: u64 = (MAX_RECORD_BYTES + FRAME_BYTES) as u64;
/// Records of a file that is never written anew for its size.
const SMALL_RECORDS: usize = 8 * 1024;
/// How many records there may be for each one that matters, before the file is written anew.
const WASTE: usize = 4;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Log {
    file: Box<dyn LogFile>,
    framer: Framer,
    /// Where the next frame goes.
    end: u64,
    allocated: u64,
    records: usize,
    /// How many records are too many.
    rewrite_at: usize,
    /// A write or a sync failed: nobody knows what stands behind the last one that did not.
    broken: bool,
    /// Something was written that a loss of power would take.
    pub(super) unsynced: bool,
}

/// Frames to be written together.
#[derive(Debug)]
pub(super) struct Group {
    bytes: Vec<u8>,
    records: usize,
}

impl Log {
    /// Writes a new file with these records, and with room for `spare` bytes more, and puts it in place of the one before.
    ///
    /// # Errors
    /// There is no new file; the old one is as it was.
    pub(super) fn make(
        disk: &dyn Disk,
        folder: &Folder,
        lock: &FolderLock,
        records: impl Iterator<Item = Record>,
        spare: u64,
    ) -> io::Result<Self> {
        // Left from an attempt that failed.
        match std::fs::remove_file(folder.draft()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let framer = Framer::new(random::bytes::<SALT_BYTES>());
        let file = disk.create(folder.draft())?;
        let mut bytes = framer.head();
        let mut count = 0;
        for record in records {
            // They were written once, and are no longer now.
            framer.add(&record, 0, &mut bytes).map_err(|TooLong| io::Error::other(TooLong))?;
            count += 1;
        }
        let end = bytes.len() as u64;
        let allocated = (end + spare).next_multiple_of(ALLOCATE_BYTES);
        file.allocate(allocated)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        folder.publish(lock)?;
        let rewrite_at = SMALL_RECORDS.max(count * WASTE);
        Ok(Self { file, framer, end, allocated, records: count, rewrite_at, broken: false, unsynced: false })
    }

    /// Whether only a new file helps.
    pub(super) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether most of it does not matter any more.
    pub(super) const fn is_wasteful(&self) -> bool {
        self.records >= self.rewrite_at
    }

    /// A new file could not be made: tries again when this one has grown by as much.
    pub(super) const fn rewrite_later(&mut self) {
        self.rewrite_at = self.records.saturating_mul(2);
    }

    /// Sees to it that this many bytes more find room.
    ///
    /// # Errors
    /// They do not. What was promised before still holds.
    pub(super) fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let needed = self.end + bytes;
        if needed > self.allocated {
            let wanted = needed.next_multiple_of(ALLOCATE_BYTES);
            self.file.allocate(wanted)?;
            self.allocated = wanted;
        }
        Ok(())
    }

    /// Frames that will stand behind what is written.
    pub(super) const fn group(&self) -> Group {
        Group { bytes: Vec::new(), records: 0 }
    }

    /// Adds a record to a group.
    ///
    /// # Errors
    /// It is longer than any may be.
    pub(super) fn add(&self, record: &Record, group: &mut Group) -> Result<(), TooLong> {
        self.framer.add(record, self.end, &mut group.bytes)?;
        group.records += 1;
        Ok(())
    }

    /// Writes a group.
    ///
    /// # Errors
    /// The file is broken from now on.
    pub(super) fn write(&mut self, group: &Group) -> io::Result<()> {
        if group.records == 0 {
            return Ok(());
        }
        self.unsynced = true;
        self.file.write_at(&group.bytes, self.end).inspect_err(|_| self.broken = true)?;
        self.end += group.bytes.len() as u64;
        self.records += group.records;
        Ok(())
    }

    /// Syncs what was written.
    ///
    /// # Errors
    /// The file is broken from now on.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.file.sync().inspect_err(|_| self.broken = true)?;
            self.unsynced = false;
        }
        Ok(())
    }
}
