//! What a foot remembers of calls when its process is gone: that the work of a call began, and how it ended.
//!
//! Before the work of a call begins that may change something, its start is written down and safe on disk. A call that
//! comes again is then never run again, whatever happened in between: see [`Begun::Before`]. One thread writes, for all
//! calls; those that begin while it syncs are synced together. See [`record`] for the file and [`folder`] for how two
//! processes of one foot get along.

mod disk;
mod entry;
mod folder;
mod log;
mod record;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use footbridge_shared::id::{CallId, InstanceId};
use footbridge_shared::limits::RESUME_GRACE;
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::oneshot;

use crate::clock::SharedClock;
use crate::failure::Failure;
use disk::RealDisk;
pub(crate) use entry::Entry;
use folder::Folder;
use writer::{Command, Writer};

/// How long the hub remembers an idempotency key.
pub(crate) const HUB_KEY_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long past its deadline, or its end, a call with a key is remembered here: longer than the hub does, so that there
/// is never a key which the hub still sends and the foot has forgotten.
pub(crate) const KEYED_FOR: Duration = HUB_KEY_LIFE.saturating_add(Duration::from_secs(60 * 60));
/// The same for a call without a key: as long as its hub may still ask.
pub(crate) const UNKEYED_FOR: Duration = RESUME_GRACE.saturating_mul(2);
/// Calls that a journal remembers; beyond that new ones are refused, for to forget one is to run it twice.
pub(crate) const MAX_ENTRIES: usize = 100_000;
/// How long an end may stay without a sync.
const SYNC_WITHIN: Duration = Duration::from_millis(500);
/// How long the last sync may take when the foot ends.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// A call whose work is about to begin.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// The call.
    pub(crate) call: CallId,
    /// Whether it has an idempotency key.
    pub(crate) keyed: bool,
    /// Digest of tool and arguments.
    pub(crate) digest: Option<String>,
    /// As it came with the call.
    pub(crate) origin: String,
    /// Until when it matters that it was here, on the boot clock.
    pub(crate) until: Duration,
}

/// Who began a call. A call that did not run may come again, and its end is then not that of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Whether a call may begin.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Its start is safe on disk.
    Yes,
    /// It was begun before, by another process of this foot: it must not run again.
    Before(Entry),
    /// It cannot be written down, and therefore must not run.
    Refused(Refusal),
}

/// Why a start cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no room on the disk.
    NoRoom,
    /// As many calls are remembered as may be.
    TooMany,
    /// What the hub says of the call is longer than a record may be.
    TooLong,
    /// The same call was begun again since: this attempt was given up.
    GivenUp,
    /// The disk does not do what it is asked for.
    Unavailable(String),
}

impl From<&io::Error> for Refusal {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Self::NoRoom,
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoRoom => {
                Self::not_run(ErrorCode::StorageFull, "there is no room to write down that this call begins")
                    .hint("free disk space where the foot keeps its state; tools that only read go on working")
            }
            Refusal::TooMany => full(),
            Refusal::TooLong => {
                Self::not_run(ErrorCode::BadRequest, "the id, digest and origin of the call are too long")
            }
            Refusal::GivenUp => Self::not_run(ErrorCode::Cancelled, "the call was given up, and came again"),
            Refusal::Unavailable(cause) => {
                Self::not_run(ErrorCode::StorageUnavailable, "it cannot be written down that this call begins")
                    .hint("look into the foot's log; tools that only read go on working")
                    .cause(cause)
            }
        }
    }
}

/// The answer to a call that would be one too many to remember. Waiting a moment does not help.
pub(crate) fn full() -> Failure {
    let hours = KEYED_FOR.as_secs() / 3600;
    Failure::not_run(
        ErrorCode::StorageFull,
        format!("this foot remembers {MAX_ENTRIES} calls, and can remember no more"),
    )
    .hint(format!("a call with an idempotency key is remembered for {hours} hours; tools that only read go on working"))
}

/// The journal of this process.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    // Not bounded by itself: a call has one start, one end and one `ack`, and calls are few.
    commands: Sender<Command>,
    tickets: Arc<AtomicU64>,
}

impl Journal {
    /// Opens the journal of a process, takes over what others left that are gone, and says what matters of their calls.
    ///
    /// It blocks while it reads and writes. A journal that cannot be used is no error here: it refuses calls until it can.
    pub(crate) fn open(folder: PathBuf, instance: &InstanceId, clock: SharedClock) -> (Self, Vec<(CallId, Entry)>) {
        let (writer, found) =
            Writer::open(Folder::new(folder, instance.as_str()), Box::new(RealDisk), clock, MAX_ENTRIES);
        let (journal, thread) = Self::with(writer);
        if let Err(error) = thread {
            // Its end of the channel is gone: every start is refused.
            tracing::error!(%error, "the journal has no thread: only calls that change nothing are run");
        }
        (journal, found.into_iter().collect())
    }

    /// The thread ends with the last clone of the journal.
    fn with(writer: Writer) -> (Self, io::Result<JoinHandle<()>>) {
        let (commands, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(&told));
        (Self { commands, tickets: Arc::default() }, thread)
    }

    /// A new ticket.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes down that the work of a call begins; returns when that is safe.
    ///
    /// Whoever has [`Begun::Yes`] says [`Self::ended`], also when the work does not begin after all.
    pub(crate) async fn begin(&self, start: Start, ticket: Ticket) -> Begun {
        let gone = || Begun::Refused(Refusal::Unavailable("the journal's thread has ended".to_owned()));
        let (reply, answer) = oneshot::channel();
        match self.commands.send(Command::Begin { start, ticket, reply }) {
            Ok(()) => answer.await.unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        }
    }

    /// Writes down how a call ended; `not_run` takes its start back.
    ///
    /// It is handed to the system at once and is safe within [`SYNC_WITHIN`], or with the next start. Nobody waits for
    /// that: should it be lost with the machine, the call has begun and its outcome is unknown, which is less than could
    /// be said but not wrong. A start that is lost would be.
    pub(crate) fn ended(&self, call: CallId, ticket: Ticket, outcome: Outcome, until: Duration) {
        self.tell(Command::End { call, ticket, outcome, until });
    }

    /// The hub has the result. Calls that are not in the journal are passed over.
    pub(crate) fn acked(&self, call: CallId) {
        self.tell(Command::Acked { call });
    }

    /// Returns when all that was said before is safe, or when that takes too long.
    pub(crate) async fn flush(&self) {
        let (reply, done) = oneshot::channel();
        self.tell(Command::Flush { reply });
        if tokio::time::timeout(FLUSH_WITHIN, done).await.is_err() {
            tracing::warn!("the disk takes too long: how the last calls ended may not be written down");
        }
    }

    fn tell(&self, command: Command) {
        // Without its thread it refuses all calls, and says so with each.
        let _ = self.commands.send(command);
    }
}

#[cfg(test)]
mod tests;
