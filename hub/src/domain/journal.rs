//! The journal of keyed calls: what is written down before such a call runs, and what it came to. And the seams around
//! it: feet that bring results, and feet that are asked again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::id::{CallId, FootKey, FootName, InstanceId, Subject, ToolName};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::output::ToolOutput;
use super::scope::Scope;
use super::tool::{SourceKind, Tool};

/// How long a key stands for its call.
pub const KEY_LIFE: SignedDuration = SignedDuration::from_hours(24);

/// The foot and the tool on it that a call went to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FootTarget {
    /// Whose foot.
    pub owner: Subject,
    /// Which of theirs.
    pub foot: FootName,
    /// Its key: a foot of the same name with another key is another foot.
    pub key: FootKey,
    /// The process that was there.
    pub instance: InstanceId,
    /// The tool's name on it.
    pub local: ToolName,
}

/// A keyed call, as it was written down before it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalHead {
    /// Its id: that of its key.
    pub call: CallId,
    /// Where it runs.
    pub scope: Scope,
    /// For whom.
    pub subject: Subject,
    /// The process it belongs to.
    pub process: Option<String>,
    /// The tool, by the name it was called by.
    pub tool: ToolName,
    /// The tool's kind of source.
    pub source: SourceKind,
    /// Of tool and arguments: see [`super::key::digest`].
    pub digest: String,
    /// The foot it went to; `None`: the hub runs it itself.
    pub target: Option<FootTarget>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ends at the latest.
    pub deadline_at: Timestamp,
    /// When its key may be used for another call.
    pub expires_at: Timestamp,
}

/// What a keyed call came to.
#[derive(Debug, Clone)]
pub struct JournalEnd {
    /// Its result.
    pub result: Arc<Result<ToolOutput, Failure>>,
    /// How long it took.
    pub took: Duration,
}

/// A row of the journal.
#[derive(Debug, Clone)]
pub struct JournalRow {
    /// The call.
    pub head: JournalHead,
    /// Its end; `None`: it runs, or its hub was stopped while it ran.
    pub end: Option<JournalEnd>,
}

/// What keeps the rows. Whatever returned has survived: each write is durable first.
#[async_trait]
pub trait CallJournal: Send + Sync {
    /// Writes down a call that is about to run. `Some`: its key was used before, for that call; nothing was written.
    ///
    /// # Errors
    /// `storage_full` (the key was certainly not used before), `storage_unavailable` (nobody knows, so its outcome is
    /// unknown). In either case nothing may run.
    async fn begin(&self, head: &JournalHead) -> Result<Option<JournalRow>, Failure>;

    /// The row of a call, unless its key has expired.
    ///
    /// # Errors
    /// `storage_unavailable`.
    async fn find(&self, call: &CallId) -> Result<Option<JournalRow>, Failure>;

    /// Writes down what a call came to. The first end counts. `Some`: it had one before, this one; nothing was written.
    ///
    /// # Errors
    /// `storage_full`, `storage_unavailable`: the row stays as it was.
    async fn end(&self, call: &CallId, end: &JournalEnd) -> Result<Option<JournalEnd>, Failure>;

    /// Frees the key of a call that certainly did not run.
    ///
    /// # Errors
    /// As for [`Self::end`].
    async fn remove(&self, call: &CallId) -> Result<(), Failure>;
}

/// What became of a result that came for a call nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is in the journal: its foot may forget it.
    Stored,
    /// Nobody will ask for it: there is no such keyed call of this foot. Its foot may forget it.
    Unwanted,
    /// The journal cannot be written now: its foot has to keep it.
    NotNow,
}

/// Takes results that feet bring after their callers are gone: after a restart of the hub, or after a deadline.
#[async_trait]
pub trait LateResults: Send + Sync {
    /// Keeps what a call came to. The foot speaks for its own calls alone: those of this scope that went to this key.
    async fn keep(&self, scope: &Scope, foot: &FootKey, call: &CallId, result: Result<ToolOutput, Failure>) -> Kept;
}

/// Where the foot is that a call went to.
pub enum Recall {
    /// Here: this runs the very tool on the very foot, whatever its names mean by now.
    Here(Arc<Tool>),
    /// Not connected.
    Away,
    /// Its name belongs to another foot by now.
    Replaced,
}

/// Finds the foot of a call that was begun before.
pub trait FootRecall: Send + Sync {
    /// The tool that a call went to. `public` is the name it was called by.
    fn recall(&self, scope: &Scope, target: &FootTarget, public: &ToolName) -> Recall;

    /// Asks the foot of a call to stop it. Its answer comes as any result does; a foot that is not here hears nothing.
    fn stop(&self, scope: &Scope, target: &FootTarget, call: &CallId);
}
