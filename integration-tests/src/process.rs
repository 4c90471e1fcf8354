//! A child process that ends with its handle.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::eventually::PATIENCE;

#[derive(Default)]
struct Lines {
    text: Mutex<Vec<String>>,
    more: Condvar,
}

/// A running child, whose output is kept, line by line.
pub struct Process {
    child: Child,
    lines: Arc<Lines>,
}

impl Process {
    /// Starts a command with its output captured.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let lines = Arc::new(Lines::default());
        let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            child.stdout.take().map(|s| Box::new(s) as Box<dyn std::io::Read + Send>),
            child.stderr.take().map(|s| Box::new(s) as Box<dyn std::io::Read + Send>),
        ];
        for stream in streams.into_iter().flatten() {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(std::result::Result::ok) {
                    lines.text.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                    lines.more.notify_all();
                }
            });
        }
        Ok(Self { child, lines })
    }

    /// What it reads, if that was piped. Given away once; dropped, its input ends.
    pub fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for a line that holds `part`.
    ///
    /// # Errors
    /// When the process ends, or patience does, before there is one. Shows all that was said.
    pub fn line_with(&mut self, part: &str) -> Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            {
                let text = self.lines.text.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(line) = text.iter().find(|line| line.contains(part)) {
                    return Ok(line.clone());
                }
                // A timeout is no error here: the loop looks whether the process still lives.
                let _ = self.lines.more.wait_timeout(text, Duration::from_millis(50));
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() >= end {
                // What a process said last may still be on its way through the pipe.
                std::thread::sleep(Duration::from_millis(100));
                let text = self.output();
                return match text.lines().find(|line| line.contains(part)) {
                    Some(line) => Ok(line.to_owned()),
                    None => Err(format!("no line with `{part}` (ended: {ended:?}):\n{text}").into()),
                };
            }
        }
    }

    /// All that was said so far.
    pub fn output(&self) -> String {
        self.lines.text.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("no pid")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not end within [`PATIENCE`].
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                return Err(format!("the process does not end:\n{}", self.output()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it at once, as a power cut would.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        // Gone already is what is wanted.
        let _ = self.child.kill();
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
