//! Changing files within a policy: the place of each, and how what goes wrong there is told.

use std::path::{Path, PathBuf};

use footbridge_shared::ErrorCode;
use rustix::fs::RawMode;

use super::open::{OpenError, WriteError};
use super::{Found, Gate, Place, Verdict, not_a};
use crate::failure::{Failure, shown};

impl Gate {
    /// Resolves the path of a file that need not be there yet to where it really leads, if that is served.
    ///
    /// # Errors
    /// `path_denied`, or `not_a_file` when the path is written as one of a folder.
    pub(crate) fn resolve_new(&self, given: &str) -> Result<PathBuf, Failure> {
        match self.judge(given) {
            Verdict::Served { .. } if given.ends_with('/') => Err(not_a(given, "a regular file")),
            Verdict::Served { real, .. } => Ok(real),
            Verdict::Outside | Verdict::Floor(_) | Verdict::Nowhere => Err(self.denied(given)),
        }
    }

    /// Opens the folder of a real path that is served, to change the file there; with `create`, folders that are not
    /// there yet are made.
    ///
    /// # Errors
    /// As [`Gate::open_file`].
    pub(crate) fn place(&self, real: &Path, given: &str, create: bool) -> Result<Place, Failure> {
        if !self.serves(real) {
            return Err(self.denied(given));
        }
        let (Some(root), Some(folder), Some(name)) = (self.root_of(real), real.parent(), real.file_name()) else {
            return Err(not_a(given, "a regular file"));
        };
        if root == real {
            return Err(not_a(given, "a regular file"));
        }
        let place = if create { Place::with_folders(root, folder, name) } else { Place::new(folder, name) };
        place.map_err(|error| match error {
            OpenError::NotFound => no_folder(given),
            OpenError::WrongKind => not_a(given, "in a folder"),
            other => self.open_failure(other, given, "a regular file"),
        })
    }

    /// Opens the file at a place. `None`: there is nothing.
    ///
    /// # Errors
    /// As [`Gate::open_file`].
    pub(crate) fn current(&self, place: &Place, given: &str) -> Result<Option<Found>, Failure> {
        place.current().map_err(|error| self.open_failure(error, given, "a regular file"))
    }
}

impl Place {
    /// Puts a file with this content here, all at once: in place of `previous`, or where there was nothing. Permission
    /// bits are `mode`, else those of `previous`, else what new files get.
    ///
    /// # Errors
    /// `file_changed` when there is something else by now, `storage_full`, or `tool_failed`; the outcome says whether
    /// the file was written.
    pub(crate) fn write(
        &self,
        given: &str,
        content: &[u8],
        previous: Option<&Found>,
        mode: Option<RawMode>,
    ) -> Result<(), Failure> {
        self.put(content, previous, mode).map_err(|error| write_failure(error, given))
    }

    /// Removes the file that was found here.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn delete(&self, given: &str, found: &Found) -> Result<(), Failure> {
        self.remove(found).map_err(|error| write_failure(error, given))
    }
}

fn write_failure(error: WriteError, given: &str) -> Failure {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let given = shown(given);
    match error {
        WriteError::Changed => {
            Failure::not_run(ErrorCode::FileChanged, format!("`{given}` changed at this very moment"))
                .hint("read it again")
        }
        WriteError::Io(cause) if matches!(cause.kind(), StorageFull | QuotaExceeded) => {
            Failure::not_run(ErrorCode::StorageFull, format!("there is no room to write `{given}`")).cause(cause)
        }
        WriteError::Io(cause) => {
            let message = format!("`{given}` cannot be changed: {}", cause.kind());
            Failure::not_run(ErrorCode::ToolFailed, message).cause(cause)
        }
        WriteError::Unsynced(cause) => {
            let message = format!("`{given}` is changed, but the disk did not confirm it: {}", cause.kind());
            Failure::completed(ErrorCode::ToolFailed, message).cause(cause)
        }
    }
}

fn no_folder(given: &str) -> Failure {
    Failure::completed(ErrorCode::NotFound, format!("there is no folder for `{}`", shown(given)))
        .hint("`createFolders` makes it")
}
