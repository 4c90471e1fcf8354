//! What is kept of calls with a key, beyond the calls themselves: the journal, who is being admitted, and results that
//! come late.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dashmap::DashMap;
use footbridge_shared::Outcome;
use footbridge_shared::id::{CallId, FootKey};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::calls::{CallEntry, CallTable};
use crate::clock::SharedClock;
use crate::domain::failure::Failure;
use crate::domain::journal::{CallJournal, JournalEnd, JournalHead, JournalRow, Kept, LateResults};
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;

/// See the module. One a hub, made before the dispatcher: feet hand it what comes late.
pub struct KeyedCalls {
    pub(super) journal: Arc<dyn CallJournal>,
    pub(super) calls: Arc<CallTable>,
    pub(super) clock: SharedClock,
    admissions: DashMap<CallId, Arc<Mutex<()>>>,
    /// Counts what became known of calls that do not run here.
    pub(super) news: watch::Sender<u64>,
}

impl KeyedCalls {
    /// Over a journal.
    pub fn new(journal: Arc<dyn CallJournal>, clock: SharedClock) -> Arc<Self> {
        let (calls, admissions) = (Arc::default(), DashMap::new());
        Arc::new(Self { journal, calls, clock, admissions, news: watch::Sender::new(0) })
    }

    /// Waits until nobody else is finding out what a key stands for. While the guard lives nobody does.
    pub(super) async fn admit(&self, call: &CallId) -> Admission<'_> {
        let lock = self.admissions.entry(call.clone()).or_default().clone();
        Admission { keyed: self, call: call.clone(), guard: Some(lock.lock_owned().await) }
    }

    /// Wakes those who wait for calls that do not run here.
    pub(super) fn wake(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// How long ago a call began.
    pub(super) fn age(&self, head: &JournalHead) -> Duration {
        Duration::try_from(self.clock.now().duration_since(head.started_at)).unwrap_or_default()
    }

    /// Writes down that nobody knows what became of a call, and gives its row as it is then.
    pub(super) async fn give_up(&self, row: JournalRow, failure: Failure) -> Result<JournalRow, Failure> {
        let end = JournalEnd { result: Arc::new(Err(failure)), took: self.age(&row.head) };
        let before = self.journal.end(&row.head.call, &end).await?;
        Ok(JournalRow { end: Some(before.unwrap_or(end)), ..row })
    }

    /// Writes down what a foot says of a call that nobody waits for.
    async fn store(&self, head: JournalHead, result: Result<ToolOutput, Failure>) -> Result<(), Failure> {
        let did_not_run = result.as_ref().is_err_and(|failure| failure.outcome == Outcome::NotRun);
        let end = JournalEnd { result: Arc::new(result), took: self.age(&head) };
        if !did_not_run {
            self.journal.end(&head.call, &end).await?;
            self.calls.forget_ended(&head.call);
            return Ok(());
        }
        let _admission = self.admit(&head.call).await;
        // Asked for again, it may run by now: the row is that run's, and so is its end.
        if self.calls.running(&head.call).is_some() {
            return Ok(());
        }
        self.journal.remove(&head.call).await?;
        // Its key is free. For a while it can still be read that it did not run.
        let entry = CallEntry::of_row(JournalRow { head, end: None }, self.clock.now());
        self.calls.insert(entry.clone());
        self.calls.end(&entry, end.result);
        Ok(())
    }
}

/// See [`KeyedCalls::admit`].
pub(super) struct Admission<'a> {
    keyed: &'a KeyedCalls,
    call: CallId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        drop(self.guard.take());
        // Who waits holds the lock's other handle, taken while the map was held as it is here.
        self.keyed.admissions.remove_if(&self.call, |_, lock| Arc::strong_count(lock) == 1);
    }
}

#[async_trait]
impl LateResults for KeyedCalls {
    async fn keep(&self, scope: &Scope, foot: &FootKey, call: &CallId, result: Result<ToolOutput, Failure>) -> Kept {
        let row = match self.journal.find(call).await {
            Ok(Some(row)) => row,
            Ok(None) => return Kept::Unwanted,
            Err(failure) => {
                tracing::warn!(%call, %failure, cause = failure.cause, "a late result could not be kept; the foot has it");
                return Kept::NotNow;
            }
        };
        let its_own = row.head.scope == *scope && row.head.target.as_ref().is_some_and(|target| target.key == *foot);
        if !its_own {
            return Kept::Unwanted;
        }
        if let Err(failure) = self.store(row.head, result).await {
            tracing::warn!(%call, %failure, cause = failure.cause, "a late result could not be kept; the foot has it");
            return Kept::NotNow;
        }
        self.wake();
        Kept::Stored
    }
}

#[cfg(test)]
impl KeyedCalls {
    /// Keys that are being looked at.
    pub(super) fn being_admitted(&self) -> usize {
        self.admissions.len()
    }
}
