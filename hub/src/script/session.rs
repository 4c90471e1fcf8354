//! One run, from the first question to the end.

use std::io;
use std::time::Duration;

use footbridge_shared::{ErrorCode, Outcome};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::frame::{Done, FromWorker, ToWorker};
use super::limits::{INNER_GRACE, KILL_GRACE};
use super::process::Worker;
use crate::domain::call::{CallContext, Expired};
use crate::domain::failure::Failure;

/// Why a run does not go on, whatever the script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// Its time is up.
    Deadline,
    /// No sign of life for this long.
    Idle(Duration),
    /// Nobody wants the result.
    Cancelled,
    /// The hub goes down.
    Draining,
}

impl Stopped {
    /// Waits for the first of them. `ctx` is the run's own context.
    pub(super) async fn wait(ctx: &CallContext, ending: &CancellationToken) -> Self {
        tokio::select! {
            biased;
            expired = ctx.clock.expired() => match expired {
                Expired::Hard => Self::Deadline,
                Expired::Idle(idle) => Self::Idle(idle),
            },
            // Whoever watches the same clock may have been quicker.
            () = ctx.cancel.cancelled() => {
                if Instant::now() >= ctx.clock.hard() { Self::Deadline } else { Self::Cancelled }
            }
            () = ending.cancelled() => Self::Draining,
        }
    }

    /// The failure to answer with.
    pub(super) fn failure(self, outcome: Outcome) -> Failure {
        let (code, message) = match self {
            Self::Deadline if outcome == Outcome::NotRun => {
                (ErrorCode::DeadlineExceeded, "the time for the script was over before a worker was free".to_owned())
            }
            Self::Deadline => (ErrorCode::DeadlineExceeded, "the script ran out of time".to_owned()),
            Self::Idle(idle) => {
                (ErrorCode::DeadlineExceeded, format!("the script gave no sign of life for {} ms", idle.as_millis()))
            }
            Self::Cancelled => (ErrorCode::Cancelled, "the script was cancelled".to_owned()),
            Self::Draining => (ErrorCode::Draining, "the hub goes down".to_owned()),
        };
        Failure::new(code, outcome, message)
    }
}

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The script ended by itself, or its worker ended it; the worker is fit for more.
    Done(Done),
    /// The worker was killed.
    Stopped(Stopped),
    /// The worker is gone, or talks nonsense.
    Lost(io::Error),
}

/// Answers a script's questions until it ends. A worker past its deadline is killed, for the engine's native code hears
/// no interrupt; one that is no longer wanted is killed at once.
pub(super) async fn attend(
    worker: &mut Worker,
    answers: &mut Answers<'_>,
    ctx: &CallContext,
    ending: &CancellationToken,
) -> Ended {
    let (kill, gone) = (worker.kill_switch(), worker.gone());
    let conversation = converse(worker, answers);
    tokio::pin!(conversation);
    let stopped = async {
        let stopped = Stopped::wait(ctx, ending).await;
        if stopped == Stopped::Deadline {
            // The worker has the same deadline and says so itself, unless it cannot.
            sleep_until(ctx.clock.hard() + KILL_GRACE).await;
        }
        stopped
    };
    let stopped = tokio::select! {
        biased;
        ended = &mut conversation => return concluded(ended, ending),
        stopped = stopped => Some(stopped),
        // While the script waits for an inner call, nobody reads the pipe.
        () = gone.cancelled() => None,
    };
    kill.cancel();
    ctx.cancel.cancel();
    if let Some(stopped @ (Stopped::Deadline | Stopped::Draining)) = stopped {
        // Inner calls were given up at the deadline; a hub that goes down waits for nothing.
        return Ended::Stopped(stopped);
    }
    // An inner call may still say what became of it, for its own books; a worker that is gone may have left a result.
    let last_words = timeout(INNER_GRACE, conversation).await;
    match (stopped, last_words) {
        (Some(stopped), _) => Ended::Stopped(stopped),
        (None, Ok(ended)) => concluded(ended, ending),
        (None, Err(_)) => concluded(Err(io::ErrorKind::UnexpectedEof.into()), ending),
    }
}

fn concluded(ended: io::Result<Done>, ending: &CancellationToken) -> Ended {
    match ended {
        Ok(done) => Ended::Done(done),
        Err(_) if ending.is_cancelled() => Ended::Stopped(Stopped::Draining),
        Err(error) => Ended::Lost(error),
    }
}

async fn converse(worker: &mut Worker, answers: &mut Answers<'_>) -> io::Result<Done> {
    loop {
        match worker.receive().await? {
            FromWorker::Done(done) => return Ok(done),
            FromWorker::Log(level, line) => answers.log(level, &line),
            FromWorker::Ask(ask) => {
                let answer = answers.answer(ask).await;
                worker.send(&ToWorker::Answer(answer)).await?;
            }
            FromWorker::Ready(_) | FromWorker::Refused(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
