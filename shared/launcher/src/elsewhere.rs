//! In the place of launchers, on systems that have not what they are made of: to take in orphans, and to hold on to a
//! process by more than a number that may be another's.
//!
//! Nothing is started there, so nothing here is ever asked for anything.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use crate::order::Standard;

/// No words make a program a launcher.
pub fn is_meant(_: &[impl AsRef<OsStr>]) -> bool {
    false
}

/// Runs nothing.
pub fn main() -> ExitCode {
    ExitCode::FAILURE
}

/// Refuses: nobody would take the other end.
pub(crate) fn hand_over(_: &UnixStream, _: &Standard) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
