//! The user's state folder: what `footbridge up` keeps of each folder it ran in, and how the CLI finds it again.
//!
//! ```text
//! $XDG_STATE_HOME/footbridge/       or ~/.local/state/footbridge/, on macOS too
//!   data/                           of `footbridge serve`, unless told otherwise
//!   hubs/site-1f00ba42/             of `footbridge up` in the folder …/site
//!     hub.json                      how to reach it, while it runs
//!     up.lock                       held while it runs
//!     data/                         unless `--data` moves it; with it the tokens that are in it, as token, foot.token
//! ```
//! Nothing in a working directory is read, so nothing there can choose the hub that gets a token. Files are the user's
//! alone (0600), folders too (0700).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::error::ConfigError;
use super::secret::Secret;

/// Longest readable part of a hub folder's name, in characters.
const MAX_SLUG_CHARS: usize = 40;
/// Hex digits of the digest in a hub folder's name.
const DIGEST_CHARS: usize = 8;
/// Most parents that are searched for a hub.
const MAX_PARENTS: usize = 64;
/// Attempts to get the lock: whoever only looks whether a hub runs holds it for a moment.
const LOCK_TRIES: u32 = 5;
/// Time between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The folder of Footbridge in the user's state folder.
#[derive(Debug, Clone)]
pub struct StateFolder(PathBuf);

/// What is kept of one folder that `footbridge up` ran in.
#[derive(Debug, Clone)]
pub struct HubFolder(PathBuf);

/// How to reach the hub of a folder: the file `hub.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubFile {
    /// Where it answers.
    pub url: String,
    /// Its tenant.
    pub tenant: String,
    /// Its project.
    pub project: String,
    /// The file that holds the first admin token.
    pub token_file: PathBuf,
    /// For whom that token speaks.
    pub subject: String,
    /// Its process.
    pub pid: u32,
    /// The folder it runs in.
    pub folder: PathBuf,
}

/// Why a hub folder is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A hub runs in this folder.
    #[error("a hub of this folder is running already{}", hub.as_ref().map(|hub| format!(" (pid {}, {})", hub.pid, hub.url)).unwrap_or_default())]
    Held {
        /// Which, as far as it said.
        hub: Option<Box<HubFile>>,
    },
    /// The lock cannot be had.
    #[error("the state folder cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// Holds a hub folder until it is dropped, or the process ends however it may.
#[derive(Debug)]
pub struct HubLock {
    _file: File,
}

impl StateFolder {
    /// Finds it; a relative `XDG_STATE_HOME` does not count.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`].
    pub fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let absolute = |name| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|state| Self(state.join("footbridge")))
            .ok_or(ConfigError::NoHome)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The data folder of `footbridge serve`, unless told otherwise.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// What is kept of a folder; `folder` is canonical.
    pub fn hub_folder(&self, folder: &Path) -> HubFolder {
        let digest = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
        let name = format!("{}-{}", slug(folder), &digest[..DIGEST_CHARS]);
        HubFolder(self.0.join("hubs").join(name))
    }

    /// The hub that runs in a folder, or in the closest parent where one runs.
    ///
    /// What a killed hub left behind does not count: somebody else may listen at its address by now.
    pub fn nearest(&self, folder: &Path) -> Option<HubFile> {
        let hubs = folder.ancestors().take(MAX_PARENTS).map(|folder| self.hub_folder(folder));
        hubs.filter(HubFolder::is_running).find_map(|hub| hub.hub())
    }
}

impl HubFolder {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The data folder, unless told otherwise.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// Makes it ours.
    ///
    /// # Errors
    /// [`LockError::Held`] while another process has it.
    pub fn lock(&self) -> Result<HubLock, LockError> {
        make_private_folder(&self.0)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.lock_path())?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(HubLock { _file: file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(LockError::Held { hub: self.hub().map(Box::new) })
    }

    /// Whether a process holds it.
    pub fn is_running(&self) -> bool {
        File::open(self.lock_path()).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// How to reach its hub; `None` where there is none, or nothing readable.
    pub fn hub(&self) -> Option<HubFile> {
        serde_json::from_slice(&fs::read(self.hub_path()).ok()?).ok()
    }

    /// Says how to reach its hub.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_hub(&self, hub: &HubFile) -> io::Result<()> {
        write_private(&self.hub_path(), &serde_json::to_vec_pretty(hub)?)
    }

    /// Forgets how to reach its hub: it stopped.
    pub fn remove_hub(&self) {
        // It may be gone already, and nobody waits for an answer.
        let _ = fs::remove_file(self.hub_path());
    }

    fn hub_path(&self) -> PathBuf {
        self.0.join("hub.json")
    }

    fn lock_path(&self) -> PathBuf {
        self.0.join("up.lock")
    }
}

/// Reads a token file.
///
/// # Errors
/// It cannot be read, or holds nothing.
pub fn read_token(path: &Path) -> Result<Secret, ConfigError> {
    let read = |source| ConfigError::Read { path: path.to_owned(), source };
    let token = Secret::new(&fs::read_to_string(path).map_err(read)?);
    if token.reveal().is_empty() {
        return Err(read(io::Error::new(io::ErrorKind::InvalidData, "the file holds no token")));
    }
    Ok(token)
}

/// Writes a token file, for the user alone.
///
/// # Errors
/// The file cannot be written.
pub fn write_token(path: &Path, token: &Secret) -> io::Result<()> {
    write_private(path, format!("{}\n", token.reveal()).as_bytes())
}

/// Makes a folder that is the user's alone, and its parents.
fn make_private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Replaces a file as a whole: a reader sees the old one or the new one, and nobody else sees either.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    // One that a killed process left behind would keep its own permissions.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// The last part of a path, as people recognise it and every file system takes it.
fn slug(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut slug = String::new();
    for c in name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(MAX_SLUG_CHARS) {
        if c != '-' || !slug.ends_with('-') {
            slug.push(c);
        }
    }
    match slug.trim_matches('-') {
        "" => "root".to_owned(),
        slug => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests;
