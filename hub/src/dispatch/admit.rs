//! Calls with a key: at most once, with a known outcome.
//!
//! A key is admitted by one at a time. Whoever comes first writes the call down and then runs it, in a task of its own that
//! no caller's end ends. Whoever comes later joins it, gets its stored end, or has it collected from the foot where it was
//! when its hub was stopped.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::{ErrorCode, Outcome};
use jiff::SignedDuration;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::calls::CallEntry;
use super::{CallRequest, Dispatcher, Prepared, RunningCall, draining, run};
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallClock, CallContext, Caller, Keyed};
use crate::domain::failure::Failure;
use crate::domain::journal::{FootTarget, JournalEnd, JournalHead, JournalRow, KEY_LIFE, Recall};
use crate::domain::key::{IdempotencyKey, digest};
use crate::domain::mcp::McpClient;
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::domain::tool::Tool;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a key turned out to stand for.
struct Admitted {
    entry: Arc<CallEntry>,
    replayed: bool,
    /// Runs it, for who is first.
    work: Option<Work>,
}

impl Admitted {
    fn joined(entry: Arc<CallEntry>) -> Self {
        Self { entry, replayed: false, work: None }
    }
}

/// All that a keyed call runs with.
struct Launch {
    head: JournalHead,
    tool: Arc<Tool>,
    scope: Arc<Scope>,
    caller: Arc<Caller>,
    arguments: Arguments,
    client: Option<Arc<dyn McpClient>>,
    extra: Option<Arc<RawValue>>,
    clock: CallClock,
    permits: [OwnedSemaphorePermit; 2],
    /// It was begun before, by a hub that was stopped or by a run of this one that lost sight of it.
    again: bool,
}

impl Dispatcher {
    /// As [`Self::start`], for a call with a key. It runs to its end whatever becomes of the caller.
    pub(super) async fn start_keyed(&self, request: CallRequest, key: IdempotencyKey) -> Result<RunningCall, Failure> {
        let call = key.call_id(&request.scope, &request.caller);
        let digest = digest(&request.name, &request.arguments)?;
        let dispatcher = self.me.upgrade().ok_or_else(draining)?;
        let (tell, told) = oneshot::channel();
        // A caller that leaves in between must not leave half of this behind.
        self.lifecycle.spawn_work(async move {
            let admission = dispatcher.keyed.admit(&call).await;
            let (answer, work) = match dispatcher.admit(&call, digest, request).await {
                Ok(Admitted { entry, replayed, work }) => (Ok((entry, replayed)), work),
                Err(failure) => (Err(failure), None),
            };
            drop(admission);
            // The caller may be gone.
            let _ = tell.send(answer);
            if let Some(work) = work {
                work.await;
            }
        });
        let (entry, replayed) = told.await.unwrap_or_else(|_| Err(run::stopped()))?;
        Ok(RunningCall { entry, replayed, work: None, lifecycle: self.lifecycle.clone() })
    }

    /// Finds out what a key stands for. While it does, nobody else asks that of the same key.
    async fn admit(&self, call: &CallId, digest: String, request: CallRequest) -> Result<Admitted, Failure> {
        if let Some(entry) = self.calls.running(call) {
            let same = entry.keyed.as_ref().is_some_and(|keyed| keyed.digest() == digest);
            return if same { Ok(Admitted::joined(entry)) } else { Err(reused()) };
        }
        let prepared = self.prepare(&request).await;
        let (row, prepared) = match prepared {
            Ok(prepared) => {
                let head = self.head(call, digest.clone(), &request, &prepared);
                match self.keyed.journal.begin(&head).await? {
                    Some(row) => (row, Some(prepared)),
                    None => return self.first(head, request, prepared),
                }
            }
            // What does not resolve today may have run yesterday.
            Err(failure) => match self.keyed.journal.find(call).await? {
                Some(row) => (row, None),
                None => return Err(failure),
            },
        };
        if row.head.digest != digest {
            return Err(reused());
        }
        match row.head.target.clone() {
            _ if row.end.is_some() => Ok(self.replay(row)),
            Some(target) => self.again(row, &target, request, prepared).await,
            None => self.lost(row, stopped_under_it()).await,
        }
    }

    fn head(&self, call: &CallId, digest: String, request: &CallRequest, prepared: &Prepared) -> JournalHead {
        let now = self.keyed.clock.now();
        let left = SignedDuration::try_from(prepared.clock.left()).unwrap_or(SignedDuration::ZERO);
        JournalHead {
            call: call.clone(),
            scope: (*request.scope).clone(),
            subject: request.caller.subject.clone(),
            process: request.caller.process.clone(),
            tool: prepared.tool.spec.name.clone(),
            source: prepared.tool.spec.origin.kind(),
            digest,
            target: prepared.tool.handler.runs_on(),
            started_at: now,
            deadline_at: now.saturating_add(left).unwrap_or(now),
            expires_at: now.saturating_add(KEY_LIFE).unwrap_or(now),
        }
    }

    /// The call is written down: it runs.
    fn first(&self, head: JournalHead, request: CallRequest, prepared: Prepared) -> Result<Admitted, Failure> {
        let CallRequest { scope, caller, arguments, client, extra, .. } = request;
        let Prepared { tool, clock, permits } = prepared;
        self.launch(Launch { head, tool, scope, caller, arguments, client, extra, clock, permits, again: false })
    }

    /// The call went to a foot and has no end here: that very foot is asked again, and knows what it did.
    async fn again(
        &self,
        row: JournalRow,
        target: &FootTarget,
        request: CallRequest,
        prepared: Option<Prepared>,
    ) -> Result<Admitted, Failure> {
        if self.lifecycle.soft().is_cancelled() {
            return Err(Failure { outcome: Outcome::Unknown, ..draining() });
        }
        let tool = match self.feet.recall(&request.scope, target, &row.head.tool) {
            Recall::Here(tool) => tool,
            Recall::Away => return Err(away(target)),
            Recall::Replaced => return self.lost(row, replaced(target)).await,
        };
        let CallRequest { scope, caller, arguments, client, extra, .. } = request;
        let (mut clock, permits) = match prepared {
            Some(Prepared { clock, permits, .. }) => (clock, permits),
            None => {
                let unsure = |failure| Failure { outcome: Outcome::Unknown, retry_after_ms: None, ..failure };
                let (idle, hard) = tool.limits();
                (CallClock::start(idle, hard), self.permits(&scope.tenant).map_err(unsure)?)
            }
        };
        let left = Duration::try_from(row.head.deadline_at.duration_since(self.keyed.clock.now())).unwrap_or_default();
        if left > clock.left() {
            clock = CallClock::start(clock.idle(), left);
        }
        let admitted = self.launch(Launch {
            head: row.head,
            tool,
            scope,
            caller,
            arguments,
            client,
            extra,
            clock,
            permits,
            again: true,
        });
        self.keyed.wake();
        admitted
    }

    /// The call has an end that the journal knows.
    fn replay(&self, row: JournalRow) -> Admitted {
        Admitted { entry: CallEntry::of_row(row, self.keyed.clock.now()), replayed: true, work: None }
    }

    /// Nobody can say any more what became of the call. From now on that is what is said of it.
    async fn lost(&self, row: JournalRow, failure: Failure) -> Result<Admitted, Failure> {
        let row = self.keyed.give_up(row, failure).await?;
        Ok(self.replay(row))
    }

    fn launch(&self, launch: Launch) -> Result<Admitted, Failure> {
        let Launch { head, tool, scope, caller, arguments, client, extra, clock, permits, again } = launch;
        let dispatcher = self.me.upgrade().ok_or_else(draining)?;
        let keyed = Arc::new(Keyed::new(head.digest.clone()));
        let entry =
            CallEntry::new(head.call.clone(), scope.clone(), &caller, &tool, Some(keyed.clone()), head.started_at);
        self.calls.insert(entry.clone());
        let tools = dispatcher.clone();
        let mut ctx = CallContext::new(head.call.clone(), scope, caller, clock, tools, Some(entry.clone()));
        ctx.cancel = entry.cancel_token().clone();
        (ctx.client, ctx.extra) = (client, extra);
        ctx.keyed = Some(keyed);
        let running = entry.clone();
        let work = Box::pin(async move {
            let result = dispatcher.execute(&tool, arguments, &ctx).await;
            dispatcher.conclude(&running, &head, again, result).await;
            drop(permits);
        });
        Ok(Admitted { entry, replayed: false, work: Some(work) })
    }

    /// Writes down what a call came to, then tells those who wait, and the foot last: what it holds is safe now.
    async fn conclude(
        &self,
        entry: &Arc<CallEntry>,
        head: &JournalHead,
        again: bool,
        result: Result<ToolOutput, Failure>,
    ) {
        let receipt = entry.keyed.as_ref().and_then(|keyed| keyed.take_receipt());
        // What the foot itself did not say of a call that it may have had before is a guess.
        let guessed = head.target.is_some() && receipt.is_none();
        let result = match result {
            Err(failure) if guessed && again => {
                Err(Failure { outcome: Outcome::Unknown, retry_after_ms: None, ..failure }.hint(ASK_AGAIN))
            }
            result => result,
        };
        let result = Arc::new(result);
        let written = match &*result {
            Err(failure) if failure.outcome == Outcome::NotRun => {
                self.keyed.journal.remove(&head.call).await.map(|()| None)
            }
            // The row stays open: the foot may still say, or has said by now.
            Err(failure) if guessed && failure.outcome == Outcome::Unknown => {
                self.keyed.journal.find(&head.call).await.map(|row| row?.end)
            }
            _ => {
                let end = JournalEnd { result: result.clone(), took: entry.elapsed() };
                self.keyed.journal.end(&head.call, &end).await
            }
        };
        // The foot may have brought the result meanwhile, past this run: what is written down is what everybody is told.
        let first = written.as_ref().ok().and_then(|before| before.as_ref());
        let result = first.map_or(result, |first| first.result.clone());
        self.calls.end(entry, result);
        match (written, receipt) {
            (Ok(_), Some(receipt)) => receipt(),
            (Ok(_), None) => {}
            (Err(failure), _) => {
                tracing::warn!(
                    call = %head.call, tool = %head.tool, %failure, cause = failure.cause,
                    "what a keyed call came to could not be written down"
                );
            }
        }
    }
}

const ASK_AGAIN: &str = "ask again with the same key once the foot is here: the call runs at most once";

/// The key stands for another call. This one certainly did not run.
fn reused() -> Failure {
    Failure::not_run(
        ErrorCode::IdempotencyKeyReused,
        "the key was used for a call of another tool, or with other arguments",
    )
    .hint("use a new key for a new call")
}

/// The answer to a call that the hub ran itself when it was stopped without warning.
pub(super) fn stopped_under_it() -> Failure {
    Failure::new(
        ErrorCode::Draining,
        Outcome::Unknown,
        "the hub was stopped while the call ran; whether it ran to its end is unknown",
    )
    .hint("find out what it did; a call with a new key runs anew")
}

fn away(target: &FootTarget) -> Failure {
    let message =
        format!("the call went to the foot `{}`, which is not connected; whether it ran is unknown", target.foot);
    Failure::new(ErrorCode::FootUnavailable, Outcome::Unknown, message).hint(ASK_AGAIN)
}

fn replaced(target: &FootTarget) -> Failure {
    let message = format!(
        "the call went to a foot `{}` whose name another one bears now; whether it ran is unknown",
        target.foot
    );
    Failure::new(ErrorCode::FootGone, Outcome::Unknown, message)
        .hint("find out what it did; a call with a new key runs anew")
}
