//! Calls from outside that run, and for a short while those that ended: what `GET …/calls/{id}` answers from.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use footbridge_shared::id::{CallId, Subject, ToolName};
use footbridge_shared::message::Raw;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::domain::tool::{SourceKind, Tool};

/// How long the result of an ended call can be read.
pub const KEEP_RESULT: Duration = Duration::from_secs(300);
/// Ended calls that are kept at most.
pub const MAX_ENDED: usize = 2_000;
/// Bytes of results that are kept at most, over all ended calls.
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
    started: Instant,
    cancel: CancellationToken,
    end: watch::Sender<Option<(CallResult, Duration)>>,
}

impl CallEntry {
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

struct Ended {
    call: CallId,
    bytes: usize,
    at: Instant,
}

#[derive(Default)]
struct Kept {
    queue: VecDeque<Ended>,
    bytes: usize,
}

/// The table of calls.
pub struct CallTable {
    clock: SharedClock,
    calls: DashMap<CallId, Arc<CallEntry>>,
    kept: Mutex<Kept>,
}

impl CallTable {
    /// An empty table.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, calls: DashMap::new(), kept: Mutex::default() }
    }

    pub(super) fn insert(&self, ctx: &CallContext, tool: &Tool) -> Arc<CallEntry> {
        let entry = Arc::new(CallEntry {
            call: ctx.call.clone(),
            scope: ctx.scope.clone(),
            subject: ctx.caller.subject.clone(),
            process: ctx.caller.process.clone(),
            tool: tool.spec.name.clone(),
            source: tool.spec.origin.kind(),
            started_at: self.clock.now(),
            started: Instant::now(),
            cancel: ctx.cancel.clone(),
            end: watch::Sender::new(None),
        });
        self.calls.insert(entry.call.clone(), entry.clone());
        entry
    }

    pub(super) fn end(&self, entry: &CallEntry, result: Result<ToolOutput, Failure>) {
        let bytes = weight(&result);
        entry.end.send_replace(Some((Arc::new(result), entry.started.elapsed())));
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += bytes;
        kept.queue.push_back(Ended { call: entry.call.clone(), bytes, at: now });
        self.evict(&mut kept, now);
    }

    /// Frees what nobody can ask for any more.
    fn evict(&self, kept: &mut Kept, now: Instant) {
        while let Some(oldest) = kept.queue.front() {
            let fits = kept.queue.len() <= MAX_ENDED && kept.bytes <= MAX_ENDED_BYTES;
            if fits && now.duration_since(oldest.at) < KEEP_RESULT {
                break;
            }
            kept.bytes -= oldest.bytes;
            self.calls.remove(oldest.call.as_str());
            kept.queue.pop_front();
        }
    }

    /// A call by its id, in a scope.
    pub fn get(&self, scope: &Scope, call: &str) -> Option<Arc<CallEntry>> {
        self.evict(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        self.calls.get(call).map(|entry| entry.clone()).filter(|entry| *entry.scope == *scope)
    }

    /// The calls of a scope, newest first.
    pub fn list(&self, scope: &Scope) -> Vec<Arc<CallEntry>> {
        self.evict(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        let mut calls: Vec<_> =
            self.calls.iter().filter(|entry| *entry.scope == *scope).map(|entry| entry.clone()).collect();
        calls.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.call.cmp(&b.call)));
        calls
    }
}
