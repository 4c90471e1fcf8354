//! A journal in memory that fails where a test wants it to.

use std::collections::HashMap;

use super::*;
use crate::domain::journal::{CallJournal, JournalEnd, JournalHead, JournalRow};

/// Where it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// Before a call is written down, with this code.
    Begin(ErrorCode),
    /// When an end is to be written down.
    End,
    /// When it is asked.
    Find,
}

#[derive(Default)]
pub(super) struct Journal {
    rows: Mutex<HashMap<CallId, JournalRow>>,
    broken: Mutex<Option<Broken>>,
}

impl Journal {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn breaks(&self, broken: Option<Broken>) {
        *self.broken.lock().unwrap() = broken;
    }

    fn broken(&self) -> Option<Broken> {
        *self.broken.lock().unwrap()
    }

    fn row(&self, call: &CallId) -> Option<JournalRow> {
        self.rows.lock().unwrap().get(call).cloned()
    }
}

fn silent() -> Failure {
    Failure::new(ErrorCode::StorageUnavailable, Outcome::Unknown, "it does not answer")
}

#[async_trait]
impl CallJournal for Journal {
    async fn begin(&self, head: &JournalHead) -> Result<Option<JournalRow>, Failure> {
        if let Some(Broken::Begin(code)) = self.broken() {
            return Err(Failure::not_run(code, "nothing was written"));
        }
        let there = self.row(&head.call);
        if there.is_none() {
            self.rows.lock().unwrap().insert(head.call.clone(), JournalRow { head: head.clone(), end: None });
        }
        Ok(there)
    }

    async fn find(&self, call: &CallId) -> Result<Option<JournalRow>, Failure> {
        if self.broken() == Some(Broken::Find) { Err(silent()) } else { Ok(self.row(call)) }
    }

    async fn end(&self, call: &CallId, end: &JournalEnd) -> Result<Option<JournalEnd>, Failure> {
        if self.broken() == Some(Broken::End) {
            return Err(silent());
        }
        let mut rows = self.rows.lock().unwrap();
        let Some(row) = rows.get_mut(call) else { return Ok(None) };
        let before = row.end.clone();
        row.end.get_or_insert_with(|| end.clone());
        Ok(before)
    }

    async fn remove(&self, call: &CallId) -> Result<(), Failure> {
        if self.broken() == Some(Broken::End) {
            return Err(silent());
        }
        self.rows.lock().unwrap().remove(call);
        Ok(())
    }
}
