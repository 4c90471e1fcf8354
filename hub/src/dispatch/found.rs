//! Calls by their ids: those that run here, those that ended, and keyed ones that a foot has while nobody waits here.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::{ErrorCode, Outcome};
use tokio::time::Instant;

use super::Dispatcher;
use super::admit::stopped_under_it;
use super::calls::CallEntry;
use crate::domain::failure::Failure;
use crate::domain::journal::{FootTarget, JournalRow};
use crate::domain::scope::Scope;

/// A call by its id.
#[derive(Debug)]
pub struct Found {
    /// The call.
    pub entry: Arc<CallEntry>,
    away: Option<Away>,
}

/// Where a call is that does not run here.
#[derive(Debug)]
struct Away {
    target: FootTarget,
    /// How long it may still take.
    left: Duration,
}

impl Found {
    fn here(entry: Arc<CallEntry>) -> Self {
        Self { entry, away: None }
    }

    /// How long to wait at most for a call that a foot has while nobody waits here; `None`: it runs here, or has ended.
    pub fn away(&self) -> Option<Duration> {
        self.away.as_ref().map(|away| away.left)
    }

    /// What is said of it when that time is over.
    pub fn unknown(&self) -> Failure {
        Failure::new(
            ErrorCode::FootUnavailable,
            Outcome::Unknown,
            "the foot that has the call did not say what became of it",
        )
        .hint("ask again with the same key: the call runs at most once")
    }
}

impl Dispatcher {
    /// A call by its id, in a scope. Whose it is the caller has to look at.
    ///
    /// # Errors
    /// `storage_unavailable`: it does not run here, and the journal does not answer.
    pub async fn find(&self, scope: &Scope, id: &str) -> Result<Option<Found>, Failure> {
        if let Some(entry) = self.calls.get(scope, id) {
            return Ok(Some(Found::here(entry)));
        }
        // An id that no hub gives is looked for nowhere.
        let Some(call) = CallId::parse(id).ok().filter(|call| call.to_bytes().is_some()) else { return Ok(None) };
        let in_scope = |row: &JournalRow| row.head.scope == *scope;
        let Some(mut row) = self.keyed.journal.find(&call).await?.filter(in_scope) else { return Ok(None) };
        if row.end.is_none() {
            // It may be about to run, or to end: whoever admits it is done soon, and then it can be told.
            let _admission = self.keyed.admit(&call).await;
            if let Some(entry) = self.calls.get(scope, id) {
                return Ok(Some(Found::here(entry)));
            }
            match self.keyed.journal.find(&call).await?.filter(in_scope) {
                Some(row) if row.end.is_none() && row.head.target.is_none() => {
                    let row = self.keyed.give_up(row, stopped_under_it()).await?;
                    return Ok(Some(Found::here(CallEntry::of_row(row, self.keyed.clock.now()))));
                }
                Some(again) => row = again,
                None => return Ok(None),
            }
        }
        let now = self.keyed.clock.now();
        let away = row.head.target.clone().filter(|_| row.end.is_none()).map(|target| {
            let left = Duration::try_from(row.head.deadline_at.duration_since(now)).unwrap_or_default();
            Away { target, left }
        });
        Ok(Some(Found { entry: CallEntry::of_row(row, now), away }))
    }

    /// Waits for the end of a call, so long. Gives the call as it is then: one that was away may have come.
    pub async fn await_end(&self, mut found: Found, wait: Duration) -> Found {
        let end = Instant::now() + wait;
        let mut news = self.keyed.news.subscribe();
        loop {
            if found.away.is_none() {
                // Running out of time is an answer too: the call still runs.
                let _ = tokio::time::timeout_at(end, found.entry.wait()).await;
                return found;
            }
            // What is not found, or cannot be read, is as it was before.
            if let Ok(Some(later)) = self.find(&found.entry.scope, found.entry.call.as_str()).await {
                found = later;
                if found.away.is_none() {
                    continue;
                }
            }
            tokio::select! {
                _ = news.changed() => {}
                () = tokio::time::sleep_until(end) => return found,
            }
        }
    }

    /// Asks for the end of a call, wherever it runs. Harmless for one that has ended.
    pub fn stop(&self, found: &Found) {
        match &found.away {
            None => found.entry.cancel(),
            Some(Away { target, .. }) => self.feet.stop(&found.entry.scope, target, &found.entry.call),
        }
    }
}
