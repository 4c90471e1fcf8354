//! One worker process, seen from the hub.

use std::io;

use tokio::io::BufReader;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::frame::{self, Confinement, FromWorker, ToWorker};

/// A worker. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Worker {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    kill: CancellationToken,
    gone: CancellationToken,
    _dropped: DropGuard,
    /// Scripts that it was given.
    pub(super) runs: u32,
    /// Since when it has had nothing to do.
    pub(super) idle_since: Instant,
}

/// Why a worker takes no script.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// It cannot lock itself in.
    #[error("the worker cannot lock itself in: {0}")]
    Refused(String),
    /// It ended, or could not be started.
    #[error("the worker ended before it took a script: {0}")]
    Ended(#[from] io::Error),
}

impl Worker {
    /// Takes over a process. `kill` ends it, `gone` says that it ended; whoever supervises the process does both.
    pub(super) fn new(child: &mut Child, kill: CancellationToken, gone: CancellationToken) -> io::Result<Self> {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let dropped = kill.clone().drop_guard();
        let output = BufReader::new(output);
        Ok(Self { input, output, kill, gone, _dropped: dropped, runs: 0, idle_since: Instant::now() })
    }

    /// Waits until nothing is left of the last script. A worker that ended meanwhile is found out here.
    pub(super) async fn ready(&mut self) -> Result<Confinement, NotReady> {
        match frame::receive(&mut self.output).await? {
            FromWorker::Ready(confinement) => Ok(confinement),
            FromWorker::Refused(reason) => Err(NotReady::Refused(reason)),
            _ => Err(NotReady::Ended(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Sends a frame.
    pub(super) async fn send(&mut self, message: &ToWorker) -> io::Result<()> {
        frame::send(&mut self.input, message).await
    }

    /// Receives a frame.
    pub(super) async fn receive(&mut self) -> io::Result<FromWorker> {
        frame::receive(&mut self.output).await
    }

    /// Ends the process when cancelled.
    pub(super) fn kill_switch(&self) -> CancellationToken {
        self.kill.clone()
    }

    /// Fires when the process has ended. Its last words may still be unread.
    pub(super) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }
}

/// Waits for a process to end, or ends it.
pub(super) async fn supervise(mut child: Child, kill: CancellationToken, gone: CancellationToken) {
    let _gone = gone.drop_guard();
    tokio::select! {
        status = child.wait() => {
            tracing::debug!(?status, "a script worker ended");
            return;
        }
        () = kill.cancelled() => {}
    }
    if let Err(error) = child.kill().await {
        tracing::warn!(%error, "a script worker could not be killed");
    }
}
