//! Calls from outside that run, and for a short while those that ended: what `GET …/calls/{id}` answers from.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use footbridge_shared::id::{CallId, Subject, ToolName};
use footbridge_shared::message::Raw;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::events::{EventLog, Follower};
use super::kept::Kept;
use crate::domain::call::{CallEvent, Caller, EventSink, Keyed};
use crate::domain::failure::Failure;
use crate::domain::journal::{JournalEnd, JournalRow};
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::domain::tool::{SourceKind, Tool};

/// How long the result of an ended call can be read; that of a keyed one as long as its key lives.
pub const KEEP_RESULT: Duration = Duration::from_secs(300);
/// Ended calls that are kept at most. When there are more, the tenant that has the most gives up its oldest.
pub const MAX_ENDED: usize = 2_000;
/// Bytes of results and events that are kept at most, over all ended calls; as for [`MAX_ENDED`].
pub const MAX_ENDED_BYTES: usize = 32 * 1024 * 1024;

/// What a call came to.
pub type CallResult = Arc<Result<ToolOutput, Failure>>;

/// A call from outside.
#[derive(Debug)]
pub struct CallEntry {
    /// Its id.
    pub call: CallId,
    /// Where it runs.
    pub scope: Arc<Scope>,
    /// For whom.
    pub subject: Subject,
    /// The process it belongs to.
    pub process: Option<String>,
    /// Which tool.
    pub tool: ToolName,
    /// The tool's kind of source.
    pub source: SourceKind,
    /// When it started.
    pub started_at: Timestamp,
    /// Present for a call with an idempotency key.
    pub keyed: Option<Arc<Keyed>>,
    started: Instant,
    cancel: CancellationToken,
    end: watch::Sender<Option<(CallResult, Duration)>>,
    /// Made for the first follower; a keyed call may get one at any time, so it has its log from the start.
    log: OnceLock<Box<EventLog>>,
}

impl EventSink for CallEntry {
    fn event(&self, event: CallEvent) {
        if let Some(log) = self.log.get() {
            log.push(event);
        }
    }
}

impl CallEntry {
    /// A call that is about to run.
    pub(super) fn new(
        call: CallId,
        scope: Arc<Scope>,
        caller: &Caller,
        tool: &Tool,
        keyed: Option<Arc<Keyed>>,
        started_at: Timestamp,
    ) -> Arc<Self> {
        let log = OnceLock::new();
        if keyed.is_some() {
            log.get_or_init(Box::default);
        }
        Arc::new(Self {
            call,
            scope,
            subject: caller.subject.clone(),
            process: caller.process.clone(),
            tool: tool.spec.name.clone(),
            source: tool.spec.origin.kind(),
            started_at,
            keyed,
            started: Instant::now(),
            cancel: CancellationToken::new(),
            end: watch::Sender::new(None),
            log,
        })
    }

    /// A call as the journal knows it: ended, or under way where this hub cannot see it.
    pub(super) fn of_row(row: JournalRow, now: Timestamp) -> Arc<Self> {
        let JournalRow { head, end } = row;
        let ran = Duration::try_from(now.duration_since(head.started_at)).unwrap_or_default();
        let here = Instant::now();
        Arc::new(Self {
            call: head.call,
            scope: Arc::new(head.scope),
            subject: head.subject,
            process: head.process,
            tool: head.tool,
            source: head.source,
            started_at: head.started_at,
            keyed: Some(Arc::new(Keyed::new(head.digest))),
            started: here.checked_sub(ran).unwrap_or(here),
            cancel: CancellationToken::new(),
            end: watch::Sender::new(end.map(|JournalEnd { result, took }| (result, took))),
            log: OnceLock::new(),
        })
    }

    /// Fires when it shall stop.
    pub(super) fn cancel_token(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(super) fn log(&self) -> &EventLog {
        self.log.get_or_init(Box::default)
    }

    /// Follows it from behind the event of this number; 0: from the start, as far as that is kept. What a call without a
    /// key said before its first follower came is not kept.
    pub fn follow(self: &Arc<Self>, seen: u64) -> Follower {
        Follower::new(self.clone(), seen)
    }

    /// Stops it. Its result says what became of it.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The result and how long it took, once there is one.
    pub fn result(&self) -> Option<(CallResult, Duration)> {
        self.end.borrow().clone()
    }

    /// How long it has run, or took.
    pub fn elapsed(&self) -> Duration {
        self.result().map_or_else(|| self.started.elapsed(), |(_, took)| took)
    }

    /// Waits for the result.
    pub async fn wait(&self) -> (CallResult, Duration) {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await.ok().and_then(|value| value.clone()) {
            Some(result) => result,
            // The sender lives in this entry, so it cannot be gone before the wait ends.
            None => (Arc::new(Err(super::run::stopped())), self.started.elapsed()),
        }
    }
}

/// Bytes that a result keeps in memory, roughly.
fn weight(result: &Result<ToolOutput, Failure>) -> usize {
    /// What an entry without any text holds.
    const ENTRY_BYTES: usize = 512;
    let raw = |raw: &Option<Raw>| raw.as_ref().map_or(0, |raw| raw.get().len());
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    ENTRY_BYTES
        + match result {
            Ok(output) => output.content.get().len() + raw(&output.structured) + raw(&output.meta) + text(&output.hint),
            Err(failure) => {
                let details = failure.details.as_ref().map_or(0, |details| details.to_string().len());
                failure.message.len() + text(&failure.hint) + text(&failure.cause) + details
            }
        }
}

/// The table of calls.
#[derive(Default)]
pub struct CallTable {
    calls: DashMap<CallId, Arc<CallEntry>>,
    kept: Mutex<Kept>,
}

impl CallTable {
    pub(super) fn insert(&self, entry: Arc<CallEntry>) {
        self.calls.insert(entry.call.clone(), entry);
    }

    pub(super) fn end(&self, entry: &Arc<CallEntry>, result: CallResult) {
        let bytes = weight(&result) + entry.log.get().map_or(0, |log| log.bytes());
        entry.end.send_replace(Some((result, entry.started.elapsed())));
        let gone = self.kept.lock().add(entry.clone(), bytes, Instant::now());
        self.remove_all(&gone);
    }

    /// A keyed call may have been begun anew under its id: only the very entry goes.
    fn remove_all(&self, gone: &[Arc<CallEntry>]) {
        for old in gone {
            self.calls.remove_if(old.call.as_str(), |_, entry| Arc::ptr_eq(entry, old));
        }
    }

    fn sweep(&self) {
        let gone = self.kept.lock().sweep(Instant::now());
        self.remove_all(&gone);
    }

    /// A call that runs here.
    pub(super) fn running(&self, call: &CallId) -> Option<Arc<CallEntry>> {
        self.calls.get(call).map(|entry| entry.clone()).filter(|entry| entry.end.borrow().is_none())
    }

    /// More is known by now of a call that ended: what is kept here is not asked any more.
    pub(super) fn forget_ended(&self, call: &CallId) {
        if let Entry::Occupied(there) = self.calls.entry(call.clone())
            && there.get().end.borrow().is_some()
        {
            there.remove();
        }
    }

    /// A call by its id, in a scope.
    pub fn get(&self, scope: &Scope, call: &str) -> Option<Arc<CallEntry>> {
        self.sweep();
        self.calls.get(call).map(|entry| entry.clone()).filter(|entry| *entry.scope == *scope)
    }

    /// The calls of a scope, newest first.
    pub fn list(&self, scope: &Scope) -> Vec<Arc<CallEntry>> {
        self.sweep();
        let mut calls: Vec<_> =
            self.calls.iter().filter(|entry| *entry.scope == *scope).map(|entry| entry.clone()).collect();
        calls.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.call.cmp(&b.call)));
        calls
    }
}
