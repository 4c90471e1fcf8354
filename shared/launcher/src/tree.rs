//! A command with all that it started, and the end of it.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use crate::order::Ending;
use crate::processes;

/// Time between two looks whether processes that were asked to end have done so.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// Rounds in which children are killed without a pause, before all descendants are looked for again.
const QUICK_ROUNDS: u32 = 100;
/// Longest pause between rounds, when something does not die: the kernel holds it, for a disk perhaps.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// What a launcher has to bring to an end: every child of this process, whoever made it.
#[derive(Debug)]
pub(crate) struct Tree {
    main: Pid,
    ending: Option<Ending>,
}

impl Tree {
    /// The tree of a command that was started.
    pub(crate) fn of(main: Pid) -> Self {
        Self { main, ending: None }
    }

    /// How the command itself ended, if it did.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Takes note of what has ended. Answers whether anything is left.
    pub(crate) fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.ending = ending(status).or(self.ending),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                // There is no child.
                Err(_) => return false,
            }
        }
    }

    /// Asks everything to end, and after a while ends it. Returns when nothing is left.
    pub(crate) fn end(&mut self, grace: Duration) {
        if !self.reap() {
            return;
        }
        let until = Instant::now() + grace;
        for process in descendants() {
            process.signal(Signal::TERM);
            // What was stopped must run to hear of it.
            process.signal(Signal::CONT);
        }
        while self.reap() && Instant::now() < until {
            std::thread::sleep(LOOK_INTERVAL);
        }
        self.kill();
    }

    /// Kills everything.
    ///
    /// A child's id stays its own until it is waited for, and only this process does that. So children are killed by
    /// their ids, quickly, round after round: what a dead one leaves behind is a child in the next round, and even what
    /// does nothing but start its successor and end is met sooner or later.
    fn kill(&mut self) {
        let mut pause = Duration::ZERO;
        while self.reap() {
            for process in descendants() {
                process.signal(Signal::KILL);
            }
            for _ in 0..QUICK_ROUNDS {
                for child in processes::own_children() {
                    let _ = kill_process(child, Signal::KILL);
                }
                if !self.reap() {
                    return;
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).clamp(LOOK_INTERVAL, MAX_PAUSE);
        }
    }
}

fn descendants() -> Vec<processes::Process> {
    processes::descendants(rustix::process::getpid())
}

fn ending(status: WaitStatus) -> Option<Ending> {
    status.exit_status().map(Ending::Code).or_else(|| status.terminating_signal().map(Ending::Signal))
}
