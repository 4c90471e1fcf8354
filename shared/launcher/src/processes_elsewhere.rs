//! What launchers leave behind on systems that have none: nothing.

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
