//! The end of commands whose launcher was killed, so that nobody looked after them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::processes::{self, Process};

/// The variable of the environment by which a process can be told to belong to a job: whoever orders it puts it there, with
/// a value that is nobody else's. A process may hide it; what is confined cannot kill its
/// launcher in the first place, where the kernel is new enough.
pub const MARK: &str = "FOOTBRIDGE_JOB";
/// Looks for processes of a job, at most.
const MAX_ROUNDS: u32 = 100;
/// Looks without a find after which nothing is left: what is just being started is seen by a second one.
const QUIET_ROUNDS: u32 = 2;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Does what the launcher of a job would have done, had it not been killed: kills all processes that carry its mark, and
/// removes its folder for temporary files. Blocks.
pub fn end(job: &str, temporary: &Path) {
    kill(job);
    // Gone already is what is wanted.
    let _ = fs::remove_dir_all(temporary);
}

fn kill(job: &str) {
    let mark = format!("{MARK}={job}");
    let mut quiet = 0;
    for _ in 0..MAX_ROUNDS {
        let left: Vec<Process> = processes::all().into_iter().filter(|process| carries(process, &mark)).collect();
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet >= QUIET_ROUNDS {
            return;
        }
        left.iter().for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(PAUSE);
    }
    tracing::warn!(job, "processes of a command could not be ended");
}

fn carries(process: &Process, mark: &str) -> bool {
    let environ = fs::read(format!("/proc/{}/environ", process.pid.as_raw_nonzero()));
    environ.is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
}
