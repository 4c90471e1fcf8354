//! Opening what a policy granted, and nothing else: between the check and the opening a path may have become a link.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

/// Why a granted path could not be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// There is nothing.
    NotFound,
    /// There is something of another kind: a folder, a pipe, a device.
    WrongKind,
    /// The path became a link since it was checked.
    Moved,
    /// The kernel keeps it from this thread, whatever its permission bits say.
    Confined,
    /// The operating system refuses.
    Io(io::Error),
}

impl From<rustix::io::Errno> for OpenError {
    fn from(errno: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::NotFound,
            Errno::LOOP | Errno::XDEV => Self::Moved,
            // A socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV => Self::WrongKind,
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a granted place could not be changed.
#[derive(Debug)]
pub(super) enum WriteError {
    /// There is another file by now, or none, or one where there was none. Nothing was done.
    Changed,
    /// The operating system refuses. Nothing was done.
    Io(io::Error),
    /// It was done, but may not outlive a loss of power.
    Unsynced(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustix::io::Errno> for WriteError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Opens a regular file, for reading. `path` is real: absolute, without links.
pub(super) fn file(path: &Path) -> Result<File, OpenError> {
    // Opening a device may move it, opening a pipe may wake its writer: look first.
    expect_kind(FileType::from_raw_mode(rustix::fs::lstat(path)?.st_mode), FileType::RegularFile)?;
    // Should it be a pipe by now, `NONBLOCK` keeps the opening from waiting for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = without_links(path, flags).map_err(|error| refused(error, path))?;
    expect_kind(FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode), FileType::RegularFile)?;
    Ok(File::from(fd))
}

/// Opens a folder, for reading its names. `path` is real.
pub(super) fn folder(path: &Path) -> Result<OwnedFd, OpenError> {
    expect_kind(FileType::from_raw_mode(rustix::fs::lstat(path)?.st_mode), FileType::Directory)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    without_links(path, flags).map_err(|error| refused(error, path))
}

/// Tells a refusal of the sandbox from one by permission bits: the sandbox keeps a path from being opened, and lets it be
/// asked for.
fn refused(error: OpenError, path: &Path) -> OpenError {
    match error {
        OpenError::Io(cause)
            if cause.kind() == io::ErrorKind::PermissionDenied
                && rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok() =>
        {
            OpenError::Confined
        }
        other => other,
    }
}

/// Looks at what is at a real path, without opening it: a device stays as it is, and no permission to read is needed.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn look(path: &Path) -> Result<Metadata, OpenError> {
    let found = File::from(without_links(path, OFlags::PATH | OFlags::CLOEXEC)?).metadata().map_err(OpenError::Io)?;
    if found.is_symlink() { Err(OpenError::Moved) } else { Ok(found) }
}

/// Looks at what is at a real path, and then whether the path still leads there by itself.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn look(path: &Path) -> Result<Metadata, OpenError> {
    let found = std::fs::symlink_metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => OpenError::NotFound,
        _ => OpenError::Io(error),
    })?;
    let same_path = std::fs::canonicalize(path).is_ok_and(|now| now == path);
    if found.is_symlink() || !same_path { Err(OpenError::Moved) } else { Ok(found) }
}

pub(super) fn expect_kind(found: FileType, wanted: FileType) -> Result<(), OpenError> {
    match found {
        found if found == wanted => Ok(()),
        FileType::Symlink => Err(OpenError::Moved),
        _ => Err(OpenError::WrongKind),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn without_links(path: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
    use rustix::fs::{CWD, ResolveFlags, openat2};
    use rustix::io::Errno;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, Mode::empty(), resolve) {
        // Kernels before 5.6, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => then_compared(path, flags),
        opened => Ok(opened?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn without_links(path: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
    then_compared(path, flags)
}

/// Opens, and then looks whether the path still leads, by itself, to what was opened.
fn then_compared(path: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
    let fd = rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?;
    let same_path = std::fs::canonicalize(path).is_ok_and(|now| now == path);
    let (opened, there) = (rustix::fs::fstat(&fd)?, rustix::fs::lstat(path)?);
    if same_path && (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino) {
        Ok(fd)
    } else {
        Err(OpenError::Moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_that_became_a_link_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::fs::write(top.join("real/file"), "secret").unwrap();
        symlink(top.join("real"), top.join("folder")).unwrap();
        symlink(top.join("real/file"), top.join("file")).unwrap();

        assert!(file(&top.join("real/file")).is_ok());
        assert!(folder(&top.join("real")).is_ok());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        for open in [without_links, then_compared] {
            assert!(open(&top.join("real/file"), flags).is_ok());
            for link in ["file", "folder/file"] {
                assert!(matches!(open(&top.join(link), flags), Err(OpenError::Moved)), "{link}");
            }
        }
    }

    #[test]
    fn a_path_that_became_a_link_is_not_looked_at_either() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::fs::write(top.join("real/file"), "secret").unwrap();
        symlink("real", top.join("folder")).unwrap();
        symlink("real/file", top.join("file")).unwrap();
        symlink("none", top.join("dangling")).unwrap();
        assert_eq!(look(&top.join("real/file")).unwrap().len(), 6);
        assert!(look(&top.join("real")).unwrap().is_dir());
        for link in ["file", "folder", "folder/file", "dangling"] {
            assert!(matches!(look(&top.join(link)), Err(OpenError::Moved)), "{link}");
        }
        assert!(matches!(look(&top.join("none")), Err(OpenError::NotFound)));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().canonicalize().unwrap().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(file(&pipe), Err(OpenError::WrongKind)));
        assert!(matches!(folder(&pipe), Err(OpenError::WrongKind)));
    }
}
