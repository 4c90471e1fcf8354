//! A command in its launcher, seen from the foot.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command};

use crate::launcher::{self, MAX_REPORT_BYTES, Order, Report, Standard};

/// The running program, whatever has become of the file that it was started from: an upgrade replaces it, and a launcher
/// of the new one may speak another language.
const RUNNING: &str = "/proc/self/exe";
/// What a launcher is called in lists of processes.
const NAME: &str = "footbridge-job";
/// What a command reads that is given no input.
const NOTHING: &str = "/dev/null";

/// How to start a launcher.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// This program.
    pub(crate) fn of_this_program() -> Self {
        Self { program: RUNNING.into(), arguments: vec![launcher::COMMAND.into()] }
    }

    /// A program that runs [`launcher::main`] when it is started with these words.
    #[cfg(test)]
    pub(crate) fn of(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Starts a launcher with an order. It is under way then; its reports say how far it came.
    pub(super) async fn start(&self, order: &Order, with_input: bool) -> io::Result<Process> {
        let (ours, theirs) = Pair::pair()?;
        let (output, output_end) = io::pipe()?;
        let (error, error_end) = io::pipe()?;
        let (input_end, input) = if with_input {
            let (end, input) = io::pipe()?;
            (OwnedFd::from(end), Some(pipe::Sender::from_owned_fd(input.into())?))
        } else {
            (File::open(NOTHING)?.into(), None)
        };
        let standard = Standard { input: input_end, output: output_end.into(), error: error_end.into() };
        launcher::hand_over(&ours, &standard)?;
        let child = Command::new(&self.program)
            .arg0(NAME)
            .args(&self.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        ours.set_nonblocking(true)?;
        let (reports, mut hold) = UnixStream::from_std(ours)?.into_split();
        hold.write_all(&launcher::message(order)?).await?;
        Ok(Process {
            reports: Reports { socket: reports, child },
            hold: Hold(hold),
            input,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            error: pipe::Receiver::from_owned_fd(error.into())?,
        })
    }
}

/// A launcher with the foot's ends of its command's pipes.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) reports: Reports,
    pub(super) hold: Hold,
    pub(super) input: Option<pipe::Sender>,
    pub(super) output: pipe::Receiver,
    pub(super) error: pipe::Receiver,
}

/// What a launcher has to say.
#[derive(Debug)]
pub(super) struct Reports {
    socket: OwnedReadHalf,
    child: Child,
}

impl Reports {
    /// Its next report; `None` when it is gone. A future that is given up half way loses one.
    pub(super) async fn next(&mut self) -> Option<Report> {
        let length = self.socket.read_u32().await.ok().filter(|length| *length <= MAX_REPORT_BYTES)?;
        let mut json = vec![0; usize::try_from(length).ok()?];
        self.socket.read_exact(&mut json).await.ok()?;
        serde_json::from_slice(&json).ok()
    }

    /// Waits until its process is gone.
    pub(super) async fn gone(&mut self) {
        if let Err(error) = self.child.wait().await {
            tracing::warn!(%error, "a launcher cannot be waited for");
        }
    }
}

/// As long as this is held, the command may run: a launcher that loses it ends everything.
#[derive(Debug)]
pub(super) struct Hold(#[expect(dead_code, reason = "it is held, not used")] OwnedWriteHalf);
