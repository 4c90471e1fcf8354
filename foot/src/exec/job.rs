//! One command, from its start until it is forgotten.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use footbridge_launcher::Ending;
use footbridge_shared::id::Subject;
use footbridge_shared::message::Stream;
use serde::Serialize;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::output::{Captured, Decoder, Excerpt};
use crate::clock::millis;
use crate::tools::CallContext;

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It runs.
    Running,
    /// It ended with the code 0.
    Completed,
    /// It ended with another code, or by a signal that was not ours.
    Failed,
    /// It was ended because somebody asked for it.
    Killed,
    /// It was ended because its time was up.
    TimedOut,
}

/// Why a command is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody asked for it.
    Asked,
    /// Its time is up.
    Deadline,
}

/// How a command ended, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    status: Status,
    ending: Option<Ending>,
    at: Duration,
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its id, which nobody can guess.
    pub(crate) id: String,
    /// Whose it is: for others it does not exist.
    pub(super) owner: Subject,
    /// Times are on the foot's clock.
    pub(super) started: Duration,
    pub(super) deadline: Duration,
    pub(super) stop: CancellationToken,
    why: OnceLock<Why>,
    end: OnceLock<End>,
    pub(super) ended: CancellationToken,
    /// Where input goes; taken by whoever writes.
    pub(super) input: tokio::sync::Mutex<Option<pipe::Sender>>,
    streams: [Mutex<(Captured, Decoder)>; 2],
    /// The call that waits for it, and may pass on what it writes.
    listener: Mutex<Option<CallContext>>,
}

impl Job {
    pub(super) fn new(
        id: String,
        owner: Subject,
        started: Duration,
        deadline: Duration,
        input: Option<pipe::Sender>,
    ) -> Self {
        Self {
            id,
            owner,
            started,
            deadline,
            stop: CancellationToken::new(),
            why: OnceLock::new(),
            end: OnceLock::new(),
            ended: CancellationToken::new(),
            input: tokio::sync::Mutex::new(input),
            streams: Default::default(),
            listener: Mutex::default(),
        }
    }

    /// How far it is.
    pub(crate) fn status(&self) -> Status {
        self.end.get().map_or(Status::Running, |end| end.status)
    }

    /// How it ended by itself or by a signal, if it did.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.end.get().and_then(|end| end.ending)
    }

    /// How long it ran, or has been running, in milliseconds.
    pub(crate) fn took_ms(&self, now: Duration) -> u64 {
        millis(self.end.get().map_or(now, |end| end.at).saturating_sub(self.started))
    }

    /// When it ended.
    pub(super) fn ended_at(&self) -> Option<Duration> {
        self.end.get().map(|end| end.at)
    }

    /// Completes when it has ended, and nothing is left of it.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Ends it and all it started: it is asked to end, and killed a second later.
    pub(crate) fn kill(&self) {
        self.end_for(Why::Asked);
    }

    pub(super) fn end_for(&self, why: Why) {
        // The first reason stands.
        let _ = self.why.set(why);
        self.stop.cancel();
    }

    /// Takes note of its end.
    pub(super) fn over(&self, ending: Option<Ending>, at: Duration) {
        let status = match (self.why.get(), ending) {
            (Some(Why::Deadline), _) => Status::TimedOut,
            // A launcher that says nothing of the end was killed, and the command with it.
            (Some(Why::Asked), _) | (None, None) => Status::Killed,
            (None, Some(Ending::Code(0))) => Status::Completed,
            (None, Some(_)) => Status::Failed,
        };
        let _ = self.end.set(End { status, ending, at });
        self.ended.cancel();
    }

    /// From now on what it writes goes to a call, too, until [`Self::deafen`].
    pub(crate) fn listen(&self, ctx: CallContext) {
        *lock(&self.listener) = Some(ctx);
    }

    /// Its call waits no longer.
    pub(crate) fn deafen(&self) {
        *lock(&self.listener) = None;
    }

    /// Takes in what it wrote.
    pub(super) fn wrote(&self, stream: Stream, bytes: &[u8]) {
        let text = {
            let mut captured = lock(self.stream(stream));
            captured.0.push(bytes);
            captured.1.push(bytes)
        };
        if let Some(ctx) = &*lock(&self.listener) {
            ctx.output(stream, &text);
        }
    }

    /// Beginning and end of a stream.
    pub(crate) fn excerpt(&self, stream: Stream) -> Excerpt {
        lock(self.stream(stream)).0.excerpt()
    }

    /// Last lines of a stream.
    pub(crate) fn last_lines(&self, stream: Stream, count: usize) -> Excerpt {
        lock(self.stream(stream)).0.last_lines(count)
    }

    /// All bytes that a stream had.
    pub(crate) fn written(&self, stream: Stream) -> u64 {
        lock(self.stream(stream)).0.total()
    }

    fn stream(&self, stream: Stream) -> &Mutex<(Captured, Decoder)> {
        let [output, error] = &self.streams;
        if stream == Stream::Stdout { output } else { error }
    }
}

/// Nothing panics while it holds one of these; what is there would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
