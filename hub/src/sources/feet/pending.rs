//! Calls that run on a foot: who waits for each, and what becomes of it when the foot goes away.

use std::sync::Arc;

use footbridge_shared::id::{CallId, FootName};
use footbridge_shared::limits::MAX_FRAME_BYTES;
use footbridge_shared::message::{CallFailure, CallResult, HubToFoot};
use footbridge_shared::text::clean_and_cut;
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::call_frame::CallFrame;
use super::config::millis;
use super::foot::Foot;
use super::parts::Incoming;
use super::questions::Questions;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;

/// Longest message or hint that a foot's failure may carry to a caller, in characters.
const MAX_MESSAGE_CHARS: usize = 4 * 1024;

/// How a call ended.
pub(super) type Settled = Result<ToolOutput, Failure>;

/// What its caller gets.
#[derive(Debug)]
pub(super) struct Reply {
    settled: Settled,
    /// Whether the foot itself said so.
    by_foot: bool,
}

/// One call that runs on a foot, or is about to. It belongs to the foot, not to a connection.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) frame: Arc<CallFrame>,
    pub(super) ctx: CallContext,
    pub(super) reply: oneshot::Sender<Reply>,
    /// Whether its caller wants it stopped.
    pub(super) stopped: bool,
    /// What is here of an answer that comes in parts.
    pub(super) parts: Option<Box<Incoming>>,
    /// What its servers ask its client.
    pub(super) questions: Questions,
    /// What its frame takes of the foot's room, until it ends.
    pub(super) _room: OwnedSemaphorePermit,
}

impl Pending {
    /// Hands the end over. A caller that is gone needs none.
    pub(super) fn settle(self, settled: Settled) {
        let _ = self.reply.send(Reply { settled, by_foot: false });
    }

    /// As [`Self::settle`], with the foot's own word.
    pub(super) fn answered(self, settled: Settled) {
        let _ = self.reply.send(Reply { settled, by_foot: true });
    }

    /// The foot will not answer any more.
    pub(super) fn lost(self, foot: &FootName, why: Lost) {
        let failure = if self.frame.was_written() {
            match why {
                Lost::Gone => gone(foot),
                Lost::Restarted => Failure::new(
                    ErrorCode::FootRestarted,
                    Outcome::Unknown,
                    format!(
                        "the foot `{foot}` came back as a new process while the call ran; whether it ran to its end is unknown"
                    ),
                ),
            }
        } else {
            unavailable(foot)
        };
        self.settle(Err(failure));
    }

    /// The frame to send again, with what is left of the time by now.
    pub(super) fn sent_again(&mut self, now_ms: u64, call: &CallId) -> Arc<CallFrame> {
        if self.frame.text().len() > MAX_FRAME_BYTES {
            // The foot may have parts of it, and the others must fit them. What was left when it was made still says
            // when it ends.
            self.frame = Arc::new(self.frame.anew());
            return self.frame.clone();
        }
        let text = std::str::from_utf8(self.frame.text()).unwrap_or_default();
        let text = match HubToFoot::decode(text) {
            Ok(HubToFoot::Call(mut call)) => {
                call.deadline_ms = millis(self.ctx.clock.left());
                call.sent_ms = now_ms;
                HubToFoot::from(call).encode()
            }
            // It was written by this hub; were it not a call, the first time of sending would still hold.
            _ => text.to_owned(),
        };
        self.frame = Arc::new(CallFrame::new(call, text));
        self.frame.clone()
    }
}

/// Why a foot will not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// It went away and did not come back in time, or left.
    Gone,
    /// It came back as another process, or without its session.
    Restarted,
}

/// The foot went away while the call ran there.
pub(super) fn gone(foot: &FootName) -> Failure {
    Failure::new(
        ErrorCode::FootGone,
        Outcome::Unknown,
        format!("the foot `{foot}` went away while the call ran; whether it ran to its end is unknown"),
    )
}

/// The call never reached the foot.
pub(super) fn unavailable(foot: &FootName) -> Failure {
    Failure::not_run(ErrorCode::FootUnavailable, format!("the foot `{foot}` is not connected"))
        .hint("`foot_list` shows which feet are here")
}

/// The call was taken back before the foot saw it.
pub(super) fn not_started() -> Failure {
    Failure::not_run(ErrorCode::Cancelled, "the call was cancelled before the foot had it")
}

/// The waiting side of a call. Dropped before the end, it takes the call back: nobody wants it any more.
#[derive(Debug)]
pub(super) struct Waiting {
    foot: Arc<Foot>,
    call: CallId,
    reply: oneshot::Receiver<Reply>,
    settled: bool,
}

impl Waiting {
    pub(super) fn new(foot: Arc<Foot>, call: CallId, reply: oneshot::Receiver<Reply>) -> Self {
        Self { foot, call, reply, settled: false }
    }

    /// Waits for the one terminal message. When `ctx.cancel` fires the foot is told to stop, and says what became of
    /// the work.
    pub(super) async fn end(mut self, ctx: &CallContext) -> Settled {
        let reply = tokio::select! {
            biased;
            reply = &mut self.reply => reply,
            () = ctx.cancel.cancelled() => {
                self.foot.stop(&self.call);
                (&mut self.reply).await
            }
        };
        self.settled = true;
        // Nothing drops the other end unused; if it did, nothing would be known.
        let Ok(Reply { settled, by_foot }) = reply else { return Err(gone(&self.foot.name)) };
        if let Some(keyed) = ctx.keyed.as_ref().filter(|_| by_foot) {
            let (foot, call) = (self.foot.clone(), self.call.clone());
            keyed.answered(Box::new(move || foot.acknowledge(call)));
        }
        settled
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.settled {
            self.foot.forget(&self.call);
        }
    }
}

/// A foot's `result`, for the caller.
pub(super) fn settled_by_result(result: CallResult) -> Settled {
    let CallResult { content, structured, is_error, meta, extra, .. } = result;
    // What says nothing about the result beside its own fields is not passed on.
    let extra = extra.filter(|extra| extra.get().starts_with('{'));
    if content.get().starts_with('[') {
        Ok(ToolOutput { extra, ..ToolOutput::relayed(content, structured, is_error, meta) })
    } else {
        let message = "the foot's result has no list of content blocks";
        Err(Failure::new(ErrorCode::BadFrame, Outcome::Completed, message))
    }
}

/// Longest wait that a foot may suggest, in milliseconds: an hour.
const MAX_RETRY_AFTER_MS: u64 = 3_600_000;

/// A foot's `failure`, for the caller.
pub(super) fn settled_by_failure(failure: CallFailure) -> Settled {
    let CallFailure { code, message, hint, outcome, retryable, retry_after_ms, rpc, .. } = failure;
    let mut settled = Failure::new(code_of_a_foot(code), outcome, shown(&message));
    settled.hint = hint.as_deref().map(shown);
    settled.rpc = rpc.and_then(|rpc| serde_json::from_str(rpc.get()).ok()).map(Box::new);
    let retry = retry_after_ms.filter(|_| retryable && outcome == Outcome::NotRun);
    settled.retry_after_ms = retry.map(|ms| ms.min(MAX_RETRY_AFTER_MS));
    Err(settled)
}

/// The code under which a caller sees a foot's failure. What the hub alone can know, of tokens, scopes or itself, a foot
/// cannot claim: to its caller that is a failure of the tool.
const fn code_of_a_foot(code: ErrorCode) -> ErrorCode {
    use ErrorCode as C;
    match code {
        C::NotFound
        | C::PathDenied
        | C::NotAFile
        | C::PermissionDenied
        | C::InvalidArguments
        | C::UnknownTool
        | C::FootBusy
        | C::FootRestarted
        | C::FootUnavailable
        | C::ResultTooLarge
        | C::ResultExpired
        | C::PayloadTooLarge
        | C::DeadlineExceeded
        | C::Timeout
        | C::Cancelled
        | C::IdConflict
        | C::IdempotencyKeyReused
        | C::FileChanged
        | C::NoMatch
        | C::AlreadyExists
        | C::SandboxUnavailable
        | C::TooManyJobs
        | C::StorageFull
        | C::ServerUnavailable
        | C::BadAnswer
        | C::NotSupported => code,
        C::Draining => C::FootUnavailable,
        _ => C::ToolFailed,
    }
}

fn shown(text: &str) -> String {
    clean_and_cut(text, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_as(code: ErrorCode) -> ErrorCode {
        let failure = serde_json::json!({
            "call": "c", "origin": "hub", "code": code, "message": "no", "outcome": "completed", "retryable": false
        });
        settled_by_failure(serde_json::from_value(failure).unwrap()).unwrap_err().code
    }

    #[test]
    fn a_foot_cannot_speak_for_the_hub() {
        for code in [ErrorCode::NotFound, ErrorCode::PathDenied, ErrorCode::FootBusy, ErrorCode::DeadlineExceeded] {
            assert_eq!(seen_as(code), code);
        }
        assert_eq!(seen_as(ErrorCode::Draining), ErrorCode::FootUnavailable);
        for code in [ErrorCode::Unauthorized, ErrorCode::Forbidden, ErrorCode::Internal, ErrorCode::StorageUnavailable]
        {
            assert_eq!(seen_as(code), ErrorCode::ToolFailed, "{code}");
        }
    }
}
