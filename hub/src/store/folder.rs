//! The data folder: nobody but its owner reads it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Permissions of a folder that is made: its owner alone.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;
/// Permissions of a file that is made: its owner alone.
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;

/// Makes a folder, and those above it, for its owner alone (0700). One that exists stays as it is.
///
/// # Errors
/// What the file system says, for instance that a file is in the way.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.create(path)
}

/// Opens a file to read and write, or makes it for its owner alone (0600). Nothing in it is cut.
///
/// # Errors
/// What the file system says.
pub fn private_file(path: &Path) -> io::Result<File> {
    options().create(true).open(path)
}

/// Makes an empty file for its owner alone (0600); one that exists is not even opened.
///
/// # Errors
/// What the file system says.
pub fn private_file_if_absent(path: &Path) -> io::Result<()> {
    match options().create_new(true).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_made_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state/footbridge");
        private_folder(&folder).unwrap();
        private_file(&folder.join("a")).unwrap();
        private_file_if_absent(&folder.join("b")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(folder.parent().unwrap()), 0o700);
        assert_eq!((mode(&folder.join("a")), mode(&folder.join("b"))), (0o600, 0o600));
    }

    #[test]
    fn what_is_there_keeps_its_contents() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "kept").unwrap();
        private_folder(dir.path()).unwrap();
        private_file(&file).unwrap();
        private_file_if_absent(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }
}
