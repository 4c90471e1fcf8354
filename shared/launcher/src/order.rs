//! What a program and its launcher say to each other: one order, with the standard streams of the command; then reports.
//!
//! Each message is JSON behind its length, four bytes with the highest first. The end of the program's side of the socket
//! means: stop.

use std::io;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::sandbox::{Bytes, Grant};

/// The first word that makes a program a launcher. Not for people.
pub const COMMAND: &str = "__job";
/// Largest report, in bytes.
pub(crate) const MAX_REPORT_BYTES: u32 = 64 * 1024;

/// What to run. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The file that is executed.
    pub program: Bytes,
    /// Its arguments, its name first.
    pub argv: Vec<Bytes>,
    /// Its whole environment.
    pub environment: Vec<(Bytes, Bytes)>,
    /// Where it starts.
    pub cwd: Bytes,
    /// A folder that is made for it alone and removed at its end.
    pub temporary: Bytes,
    /// What it may reach; `None`: whatever its user may.
    pub grants: Option<Vec<Grant>>,
}

/// The command's ends of its three pipes.
#[derive(Debug)]
pub(crate) struct Standard {
    /// What it reads.
    pub(crate) input: OwnedFd,
    /// What it writes.
    pub(crate) output: OwnedFd,
    /// What it complains to.
    pub(crate) error: OwnedFd,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
}

/// Why a command was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotStarted {
    /// It could not be confined.
    Unconfined(String),
    /// There is no such program, or what it is to be interpreted by is missing.
    NoProgram,
    /// The system does not let it be executed.
    Denied,
    /// Its arguments and its environment are more than the system takes.
    TooLong,
    /// Something else.
    Broken(String),
}

/// What a launcher says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The command runs.
    Started,
    /// It does not, and never will.
    NotStarted(NotStarted),
    /// It ran and ended, and nothing is left of it.
    Ended(Ending),
}

/// A message as it stands on the socket.
pub(crate) fn message<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    Ok([&length.to_be_bytes()[..], &json].concat())
}
