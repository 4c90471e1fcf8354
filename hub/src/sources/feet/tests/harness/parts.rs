//! What a registry works with, as simple as it can be.

use std::collections::HashMap;

use async_trait::async_trait;
use footbridge_shared::id::{CallId, FootKey};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::domain::call::{CallEvent, EventSink};
use crate::domain::failure::Failure;
use crate::domain::journal::{Kept, LateResults};
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::sources::feet::ScopeCheck;

/// Time of day of the tests.
pub(super) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// The projects `acme/shop` and `acme/other` exist.
pub(super) struct Acme;

#[async_trait]
impl ScopeCheck for Acme {
    async fn exists(&self, scope: &Scope) -> Result<bool, Failure> {
        Ok(scope.tenant.as_str() == "acme" && ["shop", "other"].contains(&scope.project.as_str()))
    }
}

/// Takes late results: those of the calls it wants.
#[derive(Default)]
pub(in super::super) struct LateBox {
    /// Calls whose results are wanted, and whether they can be stored now.
    pub(in super::super) wants: Mutex<HashMap<CallId, bool>>,
    /// What was stored.
    pub(in super::super) kept: Mutex<Vec<(CallId, String)>>,
}

#[async_trait]
impl LateResults for LateBox {
    async fn keep(&self, _: &Scope, _: &FootKey, call: &CallId, result: Result<ToolOutput, Failure>) -> Kept {
        match self.wants.lock().get(call) {
            None => Kept::Unwanted,
            Some(false) => Kept::NotNow,
            Some(true) => {
                let text = result.map_or_else(|failure| failure.to_string(), |output| output.joined_text());
                self.kept.lock().push((call.clone(), text));
                Kept::Stored
            }
        }
    }
}

/// Passes on what a call says.
pub(super) struct Ear(pub(super) tokio::sync::mpsc::Sender<CallEvent>);

impl EventSink for Ear {
    fn event(&self, event: CallEvent) {
        let _ = self.0.try_send(event);
    }
}
