//! Processes as the kernel lists them.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process. Its id may be another's one day; id and start together never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    parent: i32,
    /// Ticks since the start of the machine.
    start: u64,
}

impl Process {
    /// The process that has this id now.
    fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { pid: Pid::from_raw(pid)?, parent, start })
    }

    /// Sends it a signal, and nobody else that may have got its id meanwhile.
    pub(crate) fn signal(&self, signal: Signal) {
        // Gone, or not ours to touch: then there is nothing to do here.
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        if Self::of(self.pid.as_raw_nonzero().get()).is_some_and(|now| now.start == self.start) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// All processes that can be seen.
pub(crate) fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Process::of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The descendants of a process, those that are nearer first.
pub(crate) fn descendants(of: Pid) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&of.as_raw_nonzero().get()).unwrap_or_default();
    let mut at = 0;
    while let Some(process) = found.get(at) {
        // Each family is taken once: the walk ends, whatever changed while it was listed.
        let more = children.remove(&process.pid.as_raw_nonzero().get()).unwrap_or_default();
        found.extend(more);
        at += 1;
    }
    found
}

/// The children of this process, those among them that ended and were not waited for.
pub(crate) fn own_children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    match lists.collect::<Result<Vec<_>, _>>() {
        Ok(lists) => {
            let words = lists.iter().flat_map(|list| list.split_ascii_whitespace());
            words.filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
        }
        // A kernel without such lists.
        Err(_) => {
            let own = std::process::id();
            all().iter().filter(|process| u32::try_from(process.parent) == Ok(own)).map(|process| process.pid).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn descendants_are_found_and_told_from_others_with_the_same_id() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec 3<&0; cat <&3 & cat; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let own = rustix::process::getpid();
        let shell = Pid::from_child(&child);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while descendants(shell).len() < 2 {
            assert!(std::time::Instant::now() < end, "the shell starts two processes");
            std::thread::yield_now();
        }
        assert!(descendants(own).iter().any(|process| process.pid == shell));
        assert!(own_children().contains(&shell));
        let known = Process::of(shell.as_raw_nonzero().get()).unwrap();
        Process { start: known.start + 1, ..known }.signal(Signal::KILL);
        assert!(child.try_wait().unwrap().is_none(), "another process of this id is meant");
        known.signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
