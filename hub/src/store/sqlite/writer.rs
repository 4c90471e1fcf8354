//! The one thread that writes. Whatever waits when it gets to its queue becomes durable in one commit.
//!
//! Each write of such a group has a savepoint of its own, so one that is refused undoes nothing but itself. When the
//! database fails, the whole group is undone and each write gets a transaction of its own: those that can be done are,
//! and a failure hits the one it belongs to. Nobody is answered before the commit.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::failure::{WriteError, unavailable, write_failure};
use crate::clock::SharedClock;
use crate::store::rules::write_time;
use crate::store::{Change, StoreError, StoreResult};

/// Writes that may wait; callers beyond them wait to be let into the queue.
const WRITE_QUEUE: usize = 256;
/// Most writes in one commit, so that the first of them is not kept waiting for long.
const MAX_GROUP: usize = 64;

/// A write. It may be run again after it was undone.
pub(super) trait Write: Send + 'static {
    /// What the caller gets.
    type Output: Send;

    /// Does it, within a transaction. It is undone if it fails. With the change that others are told of, if any.
    fn apply(&self, connection: &Connection, now: Timestamp) -> Result<(Self::Output, Option<Change>), WriteError>;
}

/// Hands writes to the thread.
pub(super) struct Writer {
    /// `None` once closed. The thread ends when this and all who are about to use it have let go.
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<StoreResult<()>>>>,
}

impl Writer {
    /// Starts the thread. `folder` is where the database lies.
    pub(super) fn start(
        connection: Connection,
        folder: PathBuf,
        clock: SharedClock,
        changes: broadcast::Sender<Change>,
    ) -> std::io::Result<Self> {
        let (sender, queue) = mpsc::channel(WRITE_QUEUE);
        let worker = Worker { connection, folder, clock, changes };
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || worker.run(queue))?;
        Ok(Self { queue: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    /// Queues a write and waits until it is durable. A caller that stops waiting does not take it back.
    pub(super) async fn write<W: Write>(&self, write: W) -> StoreResult<W::Output> {
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let queue = queue.ok_or_else(|| unavailable("the store is closed"))?;
        let job = Box::new(Queued { write, outcome: None, reply });
        queue.send(job).await.map_err(|_| unavailable("the writer thread has ended"))?;
        // Held on to any longer, it would keep a closing store from ending.
        drop(queue);
        answer.await.map_err(|_| unavailable("the writer thread has ended"))?
    }

    /// Lets the thread do what is queued and end. Blocks; a second call does nothing.
    pub(super) fn finish(&self) -> StoreResult<()> {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map_or(Ok(()), |thread| thread.join().map_err(|_| unavailable("the writer thread panicked"))?)
    }
}

/// A write of any type, with whoever waits for it.
trait Job: Send {
    /// Does it. `Ok(false)`: it was refused, and is to be undone.
    fn apply(&mut self, connection: &Connection, now: Timestamp) -> rusqlite::Result<bool>;
    /// Announces and answers, once it is durable.
    fn acknowledge(self: Box<Self>, changes: &broadcast::Sender<Change>);
    /// Answers that the database failed.
    fn fail(self: Box<Self>, error: StoreError);
}

struct Queued<W: Write> {
    write: W,
    outcome: Option<StoreResult<(W::Output, Option<Change>)>>,
    reply: oneshot::Sender<StoreResult<W::Output>>,
}

impl<W: Write> Job for Queued<W> {
    fn apply(&mut self, connection: &Connection, now: Timestamp) -> rusqlite::Result<bool> {
        let outcome = match self.write.apply(connection, now) {
            Ok(done) => Ok(done),
            Err(WriteError::Refused(error)) => Err(error),
            Err(WriteError::Database(error)) => return Err(error),
        };
        let done = outcome.is_ok();
        self.outcome = Some(outcome);
        Ok(done)
    }

    fn acknowledge(self: Box<Self>, changes: &broadcast::Sender<Change>) {
        let outcome = self.outcome.unwrap_or_else(|| Err(unavailable("the write was never tried")));
        let answer = outcome.map(|(output, change)| {
            // First the notice, so that whoever reacts to the answer finds it waiting. Nobody listening is fine.
            let _ = change.map(|change| changes.send(change));
            output
        });
        let _ = self.reply.send(answer);
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

/// What the thread works with.
struct Worker {
    connection: Connection,
    folder: PathBuf,
    clock: SharedClock,
    changes: broadcast::Sender<Change>,
}

impl Worker {
    fn run(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) -> StoreResult<()> {
        let mut group = Vec::with_capacity(MAX_GROUP);
        while queue.blocking_recv_many(&mut group, MAX_GROUP) > 0 {
            self.write_group(&mut group);
        }
        self.finish()
    }

    fn write_group(&mut self, group: &mut Vec<Box<dyn Job>>) {
        if group.len() > 1 {
            match self.transaction(group) {
                Ok(()) => return group.drain(..).for_each(|job| job.acknowledge(&self.changes)),
                // It waited for another process long enough; waiting again for each write would only hold up more.
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                    let reason = error.to_string();
                    return group.drain(..).for_each(|job| job.fail(unavailable(reason.clone())));
                }
                Err(error) => tracing::warn!(%error, writes = group.len(), "a group of writes failed; one at a time"),
            }
        }
        for mut job in group.drain(..) {
            match self.write_alone(&mut job) {
                Ok(()) => job.acknowledge(&self.changes),
                Err(error) => job.fail(error),
            }
        }
    }

    fn write_alone(&mut self, job: &mut Box<dyn Job>) -> StoreResult<()> {
        let jobs = std::slice::from_mut(job);
        match self.transaction(jobs).map_err(|error| write_failure(error, &self.folder)) {
            Err(StoreError::Full) if self.reuse_log() => {
                self.transaction(jobs).map_err(|error| write_failure(error, &self.folder))
            }
            result => result,
        }
    }

    /// Makes the room that the log takes available for new writes, if it can: SQLite looks to that only behind a
    /// commit, and on a full disk there is none. Whether it could.
    fn reuse_log(&self) -> bool {
        let moved = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get::<_, i64>("log")?, row.get::<_, i64>("checkpointed")?))
        });
        moved.is_ok_and(|(log, moved)| log > 0 && log == moved)
    }

    /// Does all of `jobs` that are not refused, durably, or nothing.
    fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
        let now = write_time(&*self.clock);
        // What is not committed is rolled back when it is dropped.
        let mut transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for job in jobs {
            let savepoint = transaction.savepoint()?;
            if job.apply(&savepoint, now)? {
                savepoint.commit()?;
            } else {
                savepoint.finish()?;
            }
        }
        transaction.commit()
    }

    /// Brings what is left in the log into the main file, and closes it.
    fn finish(self) -> StoreResult<()> {
        // The pragma answers in a row; what counts is that it did not fail.
        if let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            // For want of room, for instance. Nothing is lost: the log is read at the next start.
            tracing::warn!(%error, "the log stays beside the data file");
        }
        self.connection.close().map_err(|(_, error)| unavailable(error))
    }
}
