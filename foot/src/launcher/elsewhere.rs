//! In the place of launchers, on systems that have not what they are made of: to take in orphans, and to hold on to a
//! process by more than a number that may be another's.
//!
//! No command is offered there ([`crate::exec::ExecUnavailable::System`]), so nothing here is ever asked for anything.

#[path = "order.rs"]
mod order;

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

pub use order::COMMAND;
pub(crate) use order::{Ending, MAX_REPORT_BYTES, NotStarted, Order, Report, Standard, message};

/// No words make a program a launcher.
pub(crate) fn is_meant(_: &[impl AsRef<OsStr>]) -> bool {
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

/// What launchers leave behind: nothing.
pub(crate) mod processes {
    use rustix::process::{Pid, Signal};

    /// A process that was left behind.
    pub(crate) struct Process {
        /// Its id.
        pub(crate) pid: Pid,
    }

    impl Process {
        /// There is none to signal.
        pub(crate) fn signal(&self, _: Signal) {}
    }

    /// None.
    pub(crate) fn all() -> Vec<Process> {
        Vec::new()
    }
}
