//! A program in its launcher, seen from the one that ordered it.

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

use crate::keeper::hand_over;
use crate::order::{self, MAX_REPORT_BYTES, Order, Report, Standard};

/// The running program, whatever has become of the file that it was started from: an upgrade replaces it, and a launcher
/// of the new one may speak another language.
const RUNNING: &str = "/proc/self/exe";
/// What a launcher is called in lists of processes.
const NAME: &str = "footbridge-job";
/// What a command reads that is given no input.
const NOTHING: &str = "/dev/null";

/// How to start a launcher.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// This program. Its `main` must ask [`crate::is_meant`] first.
    pub fn of_this_program() -> Self {
        Self { program: RUNNING.into(), arguments: vec![order::COMMAND.into()] }
    }

    /// A program that runs [`crate::main`] when it is started with these words.
    pub fn of(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Starts a launcher with an order. It is under way then; its reports say how far it came. Without `with_input` what it
    /// reads is empty.
    ///
    /// # Errors
    /// No launcher could be started.
    pub async fn start(&self, order: &Order, with_input: bool) -> io::Result<Process> {
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
        hand_over(&ours, &standard)?;
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
        hold.write_all(&order::message(order)?).await?;
        Ok(Process {
            reports: Reports { socket: reports, child },
            hold: Hold(hold),
            input,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            error: pipe::Receiver::from_owned_fd(error.into())?,
        })
    }
}

/// A launcher with this side's ends of its program's pipes.
#[derive(Debug)]
pub struct Process {
    /// What the launcher says.
    pub reports: Reports,
    /// As long as it is held, the program may run.
    pub hold: Hold,
    /// Where what it reads is written; dropped, that ends.
    pub input: Option<pipe::Sender>,
    /// What it writes to standard output.
    pub output: pipe::Receiver,
    /// What it writes to standard error.
    pub error: pipe::Receiver,
}

/// What a launcher has to say.
#[derive(Debug)]
pub struct Reports {
    socket: OwnedReadHalf,
    child: Child,
}

impl Reports {
    /// Its next report; `None` when it is gone. A future that is given up half way loses one.
    pub async fn next(&mut self) -> Option<Report> {
        let length = self.socket.read_u32().await.ok().filter(|length| *length <= MAX_REPORT_BYTES)?;
        let mut json = vec![0; usize::try_from(length).ok()?];
        self.socket.read_exact(&mut json).await.ok()?;
        serde_json::from_slice(&json).ok()
    }

    /// Waits until its process is gone.
    pub async fn gone(&mut self) {
        if let Err(error) = self.child.wait().await {
            tracing::warn!(%error, "a launcher cannot be waited for");
        }
    }
}

/// As long as this is held, the program may run: a launcher that loses it ends everything that it started.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "it is held, not used")] OwnedWriteHalf);

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::order::{Ending, NotStarted};
    use crate::sandbox::{Grant, Right};

    #[test]
    fn is_a_launcher_when_a_test_starts_it_as_one() {
        // A launcher's standard input is a socket; that of a test run is none.
        let stdin = rustix::fs::fstat(io::stdin()).unwrap();
        if rustix::fs::FileType::from_raw_mode(stdin.st_mode) == rustix::fs::FileType::Socket {
            let _ = crate::main();
            std::process::exit(0);
        }
    }

    fn launcher() -> Launcher {
        let test = "process::tests::is_a_launcher_when_a_test_starts_it_as_one";
        Launcher::of(std::env::current_exe().unwrap(), ["--exact", test, "--nocapture"].map(Into::into).into())
    }

    fn order(script: &str, folder: &std::path::Path) -> Order {
        Order {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", script].map(Into::into).into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: folder.into(),
            temporary: folder.join("temporary").into(),
            grants: None,
        }
    }

    #[tokio::test]
    async fn what_is_started_reads_and_writes_and_says_how_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let script = "read line; echo got $line; echo to error >&2; test -d temporary && exit 3";
        let mut process = launcher().start(&order(script, dir.path()), true).await.unwrap();
        assert_eq!(process.reports.next().await, Some(Report::Started));
        process.input.take().unwrap().write_all(b"a word\n").await.unwrap();
        let (mut output, mut error) = (String::new(), String::new());
        process.output.read_to_string(&mut output).await.unwrap();
        process.error.read_to_string(&mut error).await.unwrap();
        assert_eq!((output.as_str(), error.as_str()), ("got a word\n", "to error\n"));
        assert_eq!(process.reports.next().await, Some(Report::Ended(Ending::Code(3))));
        process.reports.gone().await;
        assert!(!dir.path().join("temporary").exists());
    }

    #[tokio::test]
    async fn nothing_is_left_once_nobody_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let script = "trap '' TERM HUP; (trap '' TERM HUP; echo up; while :; do sleep 1; done) & wait";
        let mut process = launcher().start(&order(script, dir.path()), false).await.unwrap();
        let mut line = [0; 3];
        process.output.read_exact(&mut line).await.unwrap();
        drop(process.hold);
        let mut rest = Vec::new();
        // Its end of the pipe is closed when the last of them is gone.
        process.output.read_to_end(&mut rest).await.unwrap();
        process.reports.gone().await;
    }

    #[tokio::test]
    async fn what_is_not_granted_stays_out_of_reach_and_what_is_not_there_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        let mut confined = order("cat secret", dir.path());
        let system = ["/usr", "/bin", "/lib", "/lib64"].map(|path| Grant::new(path, Right::Execute));
        confined.grants = Some(system.into());
        let mut process = launcher().start(&confined, false).await.unwrap();
        let mut output = String::new();
        process.output.read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "");
        // Its temporary folder, which the next one makes anew, is there until it is gone.
        process.reports.gone().await;
        let missing = Order { program: "/none/such".into(), ..order("", dir.path()) };
        let mut process = launcher().start(&missing, false).await.unwrap();
        assert_eq!(process.reports.next().await, Some(Report::NotStarted(NotStarted::NoProgram)));
    }
}
