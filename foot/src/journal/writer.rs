//! The thread that writes: whatever waits while it syncs is written and synced together next.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use footbridge_shared::Outcome;
use footbridge_shared::id::CallId;
use tokio::sync::oneshot;

use super::disk::Disk;
use super::entry::{Entries, Entry, Until, acked, merge};
use super::folder::{Folder, FolderLock};
use super::log::{END_BYTES, Log, MAX_FRAME_BYTES};
use super::record::Record;
use super::{Begun, Refusal, SYNC_WITHIN, Start, Ticket};
use crate::clock::SharedClock;

/// Most bytes of a digest and an origin together: however JSON escapes them, the record has room for them.
const MAX_TEXT_BYTES: usize = 512;
/// Most messages that are taken together.
const MAX_GROUP: usize = 1024;
/// Time between two looks for entries that do not matter any more, on the boot clock.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Command {
    /// A call is about to begin.
    Begin { start: Start, ticket: Ticket, reply: oneshot::Sender<Begun> },
    /// It has ended.
    End { call: CallId, ticket: Ticket, outcome: Outcome, until: Duration },
    /// The hub has its result.
    Acked { call: CallId },
    /// Everything is to be safe now.
    Flush { reply: oneshot::Sender<()> },
}

/// All that the thread owns.
#[derive(Debug)]
pub(super) struct Writer {
    clock: SharedClock,
    disk: Box<dyn Disk>,
    folder: Folder,
    /// `None`: none could be made yet.
    log: Option<Log>,
    /// What matters of our calls, and of those of processes that are gone.
    known: Entries,
    /// Our calls that have begun and not ended, by who began them.
    open: HashMap<CallId, Ticket>,
    /// Since when something waits to be synced, or to be written at all.
    unsafe_since: Option<Instant>,
    next_sweep: Duration,
    max_entries: usize,
}

/// A start that stands in the group.
struct Beginning {
    call: CallId,
    ticket: Ticket,
    reply: oneshot::Sender<Begun>,
}

/// What it takes to begin calls.
struct Ready {
    /// Until the group is synced.
    _lock: FolderLock,
    /// Calls of other processes that live.
    living: Entries,
}

impl Writer {
    /// Takes over what former processes left, and returns what is known of them and of others that live. A disk that says
    /// no is asked again when the first call is to begin.
    pub(super) fn open(folder: Folder, disk: Box<dyn Disk>, clock: SharedClock, max_entries: usize) -> (Self, Entries) {
        let mut writer = Self {
            clock,
            disk,
            folder,
            log: None,
            known: Entries::new(),
            open: HashMap::new(),
            unsafe_since: None,
            next_sweep: Duration::ZERO,
            max_entries,
        };
        match writer.prepare(0) {
            // The session is told of them: they matter here from now on.
            Ok(ready) => merge(&mut writer.known, ready.living),
            Err(refusal) => {
                tracing::error!(?refusal, "the journal cannot be used: only calls that change nothing are run");
            }
        }
        let found = writer.known.clone();
        (writer, found)
    }

    /// Works until nobody can tell it anything any more.
    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            let first = match self.unsafe_since {
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(since) => commands.recv_timeout(SYNC_WITHIN.saturating_sub(since.elapsed())),
            };
            match first {
                Ok(first) => {
                    let group = std::iter::once(first).chain(commands.try_iter().take(MAX_GROUP - 1));
                    self.commit(group.collect());
                }
                Err(RecvTimeoutError::Timeout) => self.make_safe(),
                Err(RecvTimeoutError::Disconnected) => return self.make_safe(),
            }
        }
    }

    /// Writes what the commands say, and syncs once if a call is to begin.
    fn commit(&mut self, commands: Vec<Command>) {
        let begins = commands.iter().filter(|command| matches!(command, Command::Begin { .. })).count();
        let ready = if begins == 0 { None } else { Some(self.prepare(begins)) };
        // An `ack` must not take the room of an end.
        let acks = commands.iter().filter(|command| matches!(command, Command::Acked { .. })).count();
        let kept_free = self.kept_free(begins) + acks as u64 * END_BYTES;
        let room_for_acks = self.log.as_mut().is_some_and(|log| acks == 0 || log.reserve(kept_free).is_ok());

        let mut records = Vec::with_capacity(commands.len());
        let (mut beginnings, mut flushes) = (Vec::new(), Vec::new());
        for command in commands {
            match (command, &ready) {
                (Command::Begin { start, ticket, reply }, Some(Ok(ready))) => match self.begin(start, ticket, ready) {
                    Ok((call, record)) => {
                        beginnings.push(Beginning { call, ticket, reply });
                        records.push(record);
                    }
                    Err(answer) => _ = reply.send(answer),
                },
                (Command::Begin { reply, .. }, Some(Err(refusal))) => _ = reply.send(Begun::Refused(refusal.clone())),
                (Command::Begin { reply, .. }, None) => drop(reply),
                (Command::End { call, ticket, outcome, until }, _) => {
                    records.extend(self.end(call, ticket, outcome, until))
                }
                (Command::Acked { call }, _) => {
                    if self.known.contains_key(&call) {
                        acked(&mut self.known, &call);
                        records.extend(room_for_acks.then_some(Record::Acked { call }));
                    }
                }
                (Command::Flush { reply }, _) => flushes.push(reply),
            }
        }
        self.write(&records, beginnings);
        drop(ready);
        if !flushes.is_empty() {
            self.make_safe();
            flushes.into_iter().for_each(|reply| _ = reply.send(()));
        }
    }

    /// Notes that a call begins, and what to write of it.
    fn begin(&mut self, start: Start, ticket: Ticket, ready: &Ready) -> Result<(CallId, Record), Begun> {
        let Start { call, keyed, digest, origin, until } = start;
        // One that is open here was given up by the session before any work began: it may be begun again, once.
        let ours = match self.open.get(&call) {
            Some(open) if *open > ticket => return Err(Begun::Refused(Refusal::GivenUp)),
            Some(_) => None,
            None => self.known.get(&call),
        };
        if let Some(entry) = ready.living.get(&call).or(ours).filter(|entry| self.clock.boot() < entry.until) {
            return Err(Begun::Before(entry.clone()));
        }
        if self.known.len() >= self.max_entries {
            return Err(Begun::Refused(Refusal::TooMany));
        }
        if digest.as_ref().map_or(0, String::len) + origin.len() > MAX_TEXT_BYTES {
            return Err(Begun::Refused(Refusal::TooLong));
        }
        let entry = Entry { keyed, digest, origin, outcome: None, acked: false, until };
        let record = entry.started(&call, &*self.clock);
        self.known.insert(call.clone(), entry);
        self.open.insert(call.clone(), ticket);
        Ok((call, record))
    }

    /// Notes that a call ended. Nothing if somebody else began it anew meanwhile.
    fn end(&mut self, call: CallId, ticket: Ticket, outcome: Outcome, until: Duration) -> Option<Record> {
        if self.open.get(&call) != Some(&ticket) {
            return None;
        }
        self.open.remove(&call);
        if outcome == Outcome::NotRun {
            self.known.remove(&call);
        } else if let Some(entry) = self.known.get_mut(&call) {
            (entry.outcome, entry.until) = (Some(outcome), until);
        }
        Some(Record::Ended { call, outcome, until: Until::at(until, &*self.clock) })
    }

    /// Writes, and lets begin what is safe.
    fn write(&mut self, records: &[Record], beginnings: Vec<Beginning>) {
        if records.is_empty() {
            return;
        }
        let written = match &mut self.log {
            Some(log) if !log.is_broken() => write(log, records, !beginnings.is_empty()),
            // What ended is known here, and is written with the next file.
            _ => Err(io::Error::other("there is no journal to write to")),
        };
        match &written {
            Ok(()) if !beginnings.is_empty() => self.unsafe_since = None,
            Ok(()) => _ = self.unsafe_since.get_or_insert_with(Instant::now),
            Err(error) => {
                tracing::error!(%error, "the journal could not be written");
                self.unsafe_since.get_or_insert_with(Instant::now);
            }
        }
        for Beginning { call, ticket, reply } in beginnings {
            let answer = match &written {
                Ok(()) => Begun::Yes,
                Err(error) => {
                    self.end(call, ticket, Outcome::NotRun, Duration::ZERO);
                    Begun::Refused(Refusal::from(error))
                }
            };
            // Nobody waits: the session ends. What was noted stays true.
            let _ = reply.send(answer);
        }
    }

    /// Syncs what was only written; a file that failed is written anew.
    fn make_safe(&mut self) {
        if self.unsafe_since.take().is_none() {
            return;
        }
        let safe = match &mut self.log {
            Some(log) if !log.is_broken() => log.sync(),
            _ => Err(io::Error::other("the last file could not be written")),
        };
        if safe.is_err()
            && let Err(refusal) = self.prepare(0)
        {
            // With the next call that begins it is tried again.
            tracing::error!(?refusal, "how the last calls ended could not be written down");
        }
    }

    /// Sees to it that so many calls can begin: that we know what others began, and that there is room.
    fn prepare(&mut self, begins: usize) -> Result<Ready, Refusal> {
        let lock = self.folder.lock()?;
        let others = self.folder.others(&lock, &*self.clock)?;
        merge(&mut self.known, others.dead);
        self.sweep();
        let usable = self.log.as_ref().is_some_and(|log| !log.is_broken());
        let wasteful = self.log.as_ref().is_some_and(Log::is_wasteful);
        if !usable || wasteful || !others.left.is_empty() {
            match self.rewrite(&lock) {
                // All that they said stands in our own file now, and is safe.
                Ok(()) => others.left.iter().for_each(|(path, _)| remove(path)),
                Err(error) if usable => {
                    tracing::warn!(%error, "the journal could not be written anew; the old file goes on");
                    self.log.iter_mut().for_each(Log::rewrite_later);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let kept_free = self.kept_free(begins);
        if let Some(log) = &mut self.log {
            log.reserve(kept_free)?;
        }
        Ok(Ready { _lock: lock, living: others.living })
    }

    fn rewrite(&mut self, lock: &FolderLock) -> io::Result<()> {
        let opened = Record::Opened { run: self.clock.machine_run() };
        let clock = &*self.clock;
        let entries = self.known.iter().flat_map(|(call, entry)| entry.records(call, clock));
        let records = std::iter::once(opened).chain(entries);
        self.log = Some(Log::make(&*self.disk, &self.folder, lock, records, self.kept_free(0))?);
        Ok(())
    }

    /// Bytes that must find room: so many starts, and the end of each call that has begun.
    fn kept_free(&self, begins: usize) -> u64 {
        begins as u64 * MAX_FRAME_BYTES + (self.open.len() + begins) as u64 * END_BYTES
    }

    fn sweep(&mut self) {
        let now = self.clock.boot();
        if now >= self.next_sweep || self.known.len() >= self.max_entries {
            self.next_sweep = now + SWEEP_EVERY;
            // What has begun here and not ended is still ours to end.
            self.known.retain(|call, entry| now < entry.until || self.open.contains_key(call));
        }
    }
}

fn write(log: &mut Log, records: &[Record], sync: bool) -> io::Result<()> {
    let mut group = log.group();
    for record in records {
        log.add(record, &mut group).map_err(io::Error::other)?;
    }
    log.write(&group)?;
    if sync { log.sync() } else { Ok(()) }
}

fn remove(path: &std::path::Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "a journal that was taken over could not be removed");
    }
}
