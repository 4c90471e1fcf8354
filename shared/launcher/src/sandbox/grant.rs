//! What is granted where.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What may be done with a file, or with all that lies below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Right {
    /// Names of a folder are listed; its files stay closed.
    List,
    /// Read.
    Read,
    /// Read and executed.
    Execute,
    /// Read and written, as a device is: nothing is made or removed.
    Use,
    /// Read, written, made and removed.
    Change,
    /// The same, and executed.
    ChangeAndExecute,
}

/// One grant. A path where nothing is grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Bytes: a path need not be text.
    path: Vec<u8>,
    right: Right,
}

impl Grant {
    /// Grants a right to a file, or to a folder and all below it.
    pub fn new(path: impl Into<PathBuf>, right: Right) -> Self {
        Self { path: path.into().into_os_string().into_vec(), right }
    }

    /// Where.
    pub fn path(&self) -> &Path {
        Path::new(std::ffi::OsStr::from_bytes(&self.path))
    }

    /// What.
    pub fn right(&self) -> Right {
        self.right
    }
}

/// A path or a word that goes to another process: bytes, as they need not be text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes(Vec<u8>);

impl<T: Into<OsString>> From<T> for Bytes {
    fn from(text: T) -> Self {
        Self(text.into().into_vec())
    }
}

impl Bytes {
    /// As a path.
    pub fn to_path(&self) -> PathBuf {
        self.clone().into_os().into()
    }

    /// As the system has it.
    pub fn into_os(self) -> OsString {
        OsString::from_vec(self.0)
    }
}
