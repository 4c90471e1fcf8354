//! The journal of keyed calls, over any store: rows ↔ JSON, errors ↔ failures, and the sweep of what has expired.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_mcp::RpcError;
use footbridge_shared::id::{CallId, Subject, ToolName};
use footbridge_shared::limits::MAX_RESULT_BYTES;
use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Store, StoreError, StoredCall};
use crate::domain::failure::Failure;
use crate::domain::journal::{CallJournal, FootTarget, JournalEnd, JournalHead, JournalRow};
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::domain::tool::SourceKind;
use crate::lifecycle::Lifecycle;

/// Time between two sweeps.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Rows that one sweep deletes at most, so that other writes need not wait for long.
const SWEPT_AT_ONCE: usize = 500;
/// Time until the next sweep when there was more to sweep. With it 5,000 rows go in a second: at least as many as come.
const SWEEP_AGAIN: Duration = Duration::from_millis(100);
/// Largest end that is kept, in bytes of JSON: a result of the largest size, and a little for what is around it.
const MAX_END_BYTES: usize = MAX_RESULT_BYTES + 64 * 1024;

/// See the module.
pub struct StoredJournal {
    store: Arc<dyn Store>,
}

impl StoredJournal {
    /// A journal in a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Deletes expired rows, some at a time, until the hub stops.
    pub fn sweep(&self, lifecycle: &Lifecycle) {
        let (store, stop) = (self.store.clone(), lifecycle.soft().clone());
        lifecycle.spawn("journal-sweep", async move {
            let mut pause = SWEEP_EVERY;
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = match store.purge_calls(SWEPT_AT_ONCE).await {
                    Ok(SWEPT_AT_ONCE) => SWEEP_AGAIN,
                    Ok(_) => SWEEP_EVERY,
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "expired keys could not be removed");
                        SWEEP_EVERY
                    }
                };
            }
        });
    }
}

#[async_trait]
impl CallJournal for StoredJournal {
    async fn begin(&self, head: &JournalHead) -> Result<Option<JournalRow>, Failure> {
        let text = serde_json::to_string(&HeadText::from(head.clone())).map_err(unreadable)?;
        let there = self.store.insert_call(&head.call, &text, head.expires_at).await.map_err(|error| match error {
            StoreError::Full => {
                Failure::not_run(ErrorCode::StorageFull, "there is no room to note the key of the call")
                    .hint("make room, then try again; a call without a key needs none")
            }
            error => unavailable(&error),
        })?;
        there.map(|there| row(&head.call, there)).transpose()
    }

    async fn find(&self, call: &CallId) -> Result<Option<JournalRow>, Failure> {
        let there = self.store.call(call).await.map_err(|error| unavailable(&error))?;
        there.map(|there| row(call, there)).transpose()
    }

    async fn end(&self, call: &CallId, end: &JournalEnd) -> Result<Option<JournalEnd>, Failure> {
        let mut text = serde_json::to_string(&EndText::from(end)).map_err(unreadable)?;
        if text.len() > MAX_END_BYTES {
            let message = "the result was too large to be kept";
            let result = Arc::new(Err(Failure::new(ErrorCode::ResultTooLarge, Outcome::Completed, message)));
            text = serde_json::to_string(&EndText::from(&JournalEnd { result, took: end.took })).map_err(unreadable)?;
        }
        match self.store.end_call(call, &text).await {
            Ok(true) => Ok(None),
            Ok(false) => {
                tracing::debug!(%call, "the call had an end before");
                Ok(self.find(call).await?.and_then(|row| row.end))
            }
            // Its key has expired and was swept: nobody can ask for it any more.
            Err(StoreError::NotFound) => Ok(None),
            Err(StoreError::Full) => {
                Err(Failure::new(ErrorCode::StorageFull, Outcome::Completed, "there is no room to keep the result"))
            }
            Err(error) => Err(unavailable(&error)),
        }
    }

    async fn remove(&self, call: &CallId) -> Result<(), Failure> {
        self.store.remove_call(call).await.map_err(|error| unavailable(&error))
    }
}

/// What became of a call whose row cannot be read or written is not known.
fn unavailable(error: &StoreError) -> Failure {
    let cause = match error {
        StoreError::Unavailable(cause) => cause.to_string(),
        other => other.to_string(),
    };
    Failure::new(ErrorCode::StorageUnavailable, Outcome::Unknown, "the journal of keyed calls does not answer")
        .hint("ask again with the same key: the call runs at most once")
        .cause(cause)
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::new(ErrorCode::Internal, Outcome::Unknown, "the journal holds something odd").cause(error)
}

fn row(call: &CallId, stored: StoredCall) -> Result<JournalRow, Failure> {
    let head: HeadText = serde_json::from_str(&stored.head).map_err(unreadable)?;
    let end = stored.end.as_deref().map(serde_json::from_str::<EndText>).transpose().map_err(unreadable)?;
    Ok(JournalRow { head: head.of(call), end: end.map(JournalEnd::from) })
}

/// A head as it is written. Fields are only ever added, with a default.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadText {
    scope: Scope,
    subject: Subject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    tool: ToolName,
    source: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<FootTarget>,
    started_at: Timestamp,
    deadline_at: Timestamp,
    expires_at: Timestamp,
}

impl From<JournalHead> for HeadText {
    fn from(head: JournalHead) -> Self {
        let JournalHead {
            call: _,
            scope,
            subject,
            process,
            tool,
            source,
            digest,
            target,
            started_at,
            deadline_at,
            expires_at,
        } = head;
        let source = source.as_str().to_owned();
        Self { scope, subject, process, tool, source, digest, target, started_at, deadline_at, expires_at }
    }
}

impl HeadText {
    fn of(self, call: &CallId) -> JournalHead {
        let Self { scope, subject, process, tool, source, digest, target, started_at, deadline_at, expires_at } = self;
        let source = SourceKind::from_text(&source).unwrap_or(SourceKind::BuiltIn);
        let call = call.clone();
        JournalHead { call, scope, subject, process, tool, source, digest, target, started_at, deadline_at, expires_at }
    }
}

/// An end as it is written. Payloads are raw JSON here too: they come back as they came.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndText {
    took_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<OutputText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<FailureText>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutputText {
    content: Raw,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    structured: Option<Raw>,
    is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extra: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FailureText {
    code: ErrorCode,
    message: String,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rpc: Option<Box<RpcError>>,
}

impl From<&JournalEnd> for EndText {
    fn from(end: &JournalEnd) -> Self {
        let took_ms = u64::try_from(end.took.as_millis()).unwrap_or(u64::MAX);
        match &*end.result {
            Ok(ToolOutput { content, structured, is_error, meta, extra, code, hint }) => {
                let (content, structured, meta) = (content.clone(), structured.clone(), meta.clone());
                let (is_error, extra, code, hint) = (*is_error, extra.clone(), *code, hint.clone());
                let output = OutputText { content, structured, is_error, meta, extra, code, hint };
                Self { took_ms, output: Some(output), failure: None }
            }
            // When to try again is no use a day later, and the cause is for the log alone.
            Err(Failure { code, message, hint, outcome, details, rpc, retry_after_ms: _, cause: _ }) => {
                let (message, hint, details) = (message.clone(), hint.clone(), details.clone());
                let failure = FailureText { code: *code, message, outcome: *outcome, hint, details, rpc: rpc.clone() };
                Self { took_ms, output: None, failure: Some(failure) }
            }
        }
    }
}

impl From<EndText> for JournalEnd {
    fn from(EndText { took_ms, output, failure }: EndText) -> Self {
        let result = match (output, failure) {
            (Some(OutputText { content, structured, is_error, meta, extra, code, hint }), _) => {
                Ok(ToolOutput { content, structured, is_error, meta, extra, code, hint })
            }
            (None, Some(FailureText { code, message, outcome, hint, details, rpc })) => {
                Err(Failure { hint, details, rpc, ..Failure::new(code, outcome, message) })
            }
            (None, None) => {
                Err(Failure::new(ErrorCode::ResultExpired, Outcome::Completed, "the result is not kept any more"))
            }
        };
        Self { result: Arc::new(result), took: Duration::from_millis(took_ms) }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::value::RawValue;

    use super::*;
    use crate::clock::Clock as _;
    use crate::clock::manual::ManualClock;
    use crate::store::memory::MemoryStore;

    fn raw(json: &str) -> Raw {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn head(clock: &ManualClock) -> JournalHead {
        let target = serde_json::json!({"owner": "ann", "foot": "dev", "key": "k".repeat(43), "instance": "i", "local": "build"});
        let now = clock.now();
        JournalHead {
            call: CallId::parse("c").unwrap(),
            scope: Scope::new("acme".parse().unwrap(), "shop".parse().unwrap()),
            subject: Subject::parse("ann").unwrap(),
            process: Some("p".to_owned()),
            tool: ToolName::parse("dev__build").unwrap(),
            source: SourceKind::Client,
            digest: "d".to_owned(),
            target: Some(serde_json::from_value(target).unwrap()),
            started_at: now,
            deadline_at: now + SignedDuration::from_secs(600),
            expires_at: now + SignedDuration::from_hours(24),
        }
    }

    #[tokio::test]
    async fn rows_come_back_as_they_were_and_payloads_to_the_byte() {
        let clock = ManualClock::new();
        let journal = StoredJournal::new(Arc::new(MemoryStore::new(clock.clone())));
        let head = head(&clock);
        assert!(journal.begin(&head).await.unwrap().is_none());
        let there = journal.begin(&head).await.unwrap().unwrap();
        assert!(there.head == head && there.end.is_none());

        let content = "[ {\"n\" :1.10,\"n\": 1e400 ,\"text\":\"\\u00e9\\/é\"} ]";
        let output = ToolOutput::relayed(raw(content), Some(raw("9007199254740993")), true, None);
        let end = JournalEnd { result: Arc::new(Ok(output)), took: Duration::from_millis(7) };
        assert!(journal.end(&head.call, &end).await.unwrap().is_none());
        let later = JournalEnd {
            result: Arc::new(Err(Failure::new(ErrorCode::ResultExpired, Outcome::Completed, "gone"))),
            took: Duration::ZERO,
        };
        assert!(journal.end(&head.call, &later).await.unwrap().is_some_and(|first| first.result.is_ok()));
        let end = journal.find(&head.call).await.unwrap().unwrap().end.unwrap();
        assert_eq!(end.took, Duration::from_millis(7));
        let output = end.result.as_ref().as_ref().unwrap();
        assert_eq!(output.content.get(), content);
        assert_eq!(output.structured.as_deref().map(RawValue::get), Some("9007199254740993"));
        assert_eq!((output.is_error, output.code), (true, Some(ErrorCode::ToolFailed)));
    }

    #[tokio::test]
    async fn a_failure_keeps_its_outcome_and_not_its_cause() {
        let clock = ManualClock::new();
        let journal = StoredJournal::new(Arc::new(MemoryStore::new(clock.clone())));
        let head = head(&clock);
        journal.begin(&head).await.unwrap();
        let failure = Failure::new(ErrorCode::ResultExpired, Outcome::Completed, "gone").hint("look").cause("secret");
        journal.end(&head.call, &JournalEnd { result: Arc::new(Err(failure)), took: Duration::ZERO }).await.unwrap();
        let end = journal.find(&head.call).await.unwrap().unwrap().end.unwrap();
        let failure = end.result.as_ref().as_ref().unwrap_err();
        assert_eq!((failure.code, failure.outcome), (ErrorCode::ResultExpired, Outcome::Completed));
        assert_eq!((failure.hint.as_deref(), failure.cause.as_deref()), (Some("look"), None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_expired_is_swept_a_part_at_a_time() {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let lifecycle = Lifecycle::new();
        for number in 0..=SWEPT_AT_ONCE {
            store.insert_call(&CallId::parse(&format!("c{number}")).unwrap(), "{}", clock.now()).await.unwrap();
        }
        StoredJournal::new(store.clone()).sweep(&lifecycle);
        tokio::time::sleep(SWEEP_EVERY + SWEEP_AGAIN / 2).await;
        assert_eq!(store.purge_calls(usize::MAX).await.unwrap(), 1, "the first sweep took what one may take");
        assert_eq!(lifecycle.shut_down(Duration::from_secs(1)).await, 0);
    }
}
