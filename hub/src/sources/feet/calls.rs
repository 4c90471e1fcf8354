//! The calls of a foot: begun, stopped, forgotten and settled.

use std::sync::Arc;

use footbridge_shared::id::{CallId, ToolName};
use footbridge_shared::limits::{BUSY_RETRY_AFTER_MS, FOOT_QUEUE, MAX_MESSAGE_BYTES};
use footbridge_shared::message::{Call, HubToFoot};
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::call_frame::CallFrame;
use super::config::millis;
use super::foot::{Foot, Link, cancel};
use super::pending::{Pending, Settled, Waiting, gone, not_started, unavailable};
use super::questions::Questions;
use super::requests::caller;
use crate::clock::random_id;
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallContext, CallEvent};
use crate::domain::failure::Failure;

/// To whom the end of a call was handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// To its caller, who has it: the foot may forget it.
    Done,
    /// To the caller of a keyed call, who stores it first.
    ToBeStored,
}

impl Foot {
    /// Puts a call on its way; [`Waiting::end`] gives its end.
    ///
    /// # Errors
    /// The call certainly does not run: the foot is not the caller's, is not here, or has as much to do as it may have.
    pub(super) fn begin(
        self: &Arc<Self>,
        public: &ToolName,
        local: &ToolName,
        arguments: Arguments,
        ctx: &CallContext,
    ) -> Result<Waiting, Failure> {
        // Calls that one call from outside makes on its way share its id: a foot needs to tell them apart. A call with a key
        // is no call on another's way, and its foot has to know it again.
        let call = match &ctx.keyed {
            Some(_) => ctx.call.clone(),
            None => CallId::parse(&random_id())
                .map_err(|error| Failure::not_run(ErrorCode::Internal, "no call id could be made").cause(error))?,
        };
        let message = Call {
            call: call.clone(),
            keyed: ctx.keyed.is_some(),
            digest: ctx.keyed.as_ref().map(|keyed| keyed.digest().to_owned()),
            tool: local.to_string(),
            arguments: arguments.into_raw(),
            deadline_ms: millis(ctx.clock.left()),
            idle_ms: millis(ctx.clock.idle()),
            sent_ms: self.node.now_ms(),
            origin: self.node.name.clone(),
            extra: ctx.extra.as_ref().map(|extra| RawValue::to_owned(extra)),
            caller: caller(ctx),
        };
        let text = HubToFoot::from(message).encode();
        if text.len() > MAX_MESSAGE_BYTES {
            let message =
                format!("the arguments make a message of {} bytes, the limit is {MAX_MESSAGE_BYTES}", text.len());
            return Err(Failure::not_run(ErrorCode::PayloadTooLarge, message));
        }
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let frame = Arc::new(CallFrame::new(&call, text));
        let (reply, end) = oneshot::channel();

        let mut state = self.state.lock();
        if *ctx.scope != *self.scope || !state.share.admits(&self.owner, &ctx.caller.subject) {
            return Err(Failure::unknown_tool(public.as_str()));
        }
        if state.link != Link::Open {
            return Err(unavailable(&self.name));
        }
        let busy = || {
            Failure::not_run(ErrorCode::FootBusy, format!("the foot `{}` has enough to do", self.name))
                .retry_after_ms(BUSY_RETRY_AFTER_MS)
        };
        if state.pending.len() >= state.max_concurrent + FOOT_QUEUE {
            return Err(busy());
        }
        if state.pending.contains_key(&call) {
            let message = "the foot has not given up an earlier try of this call";
            return Err(
                Failure::new(ErrorCode::IdConflict, Outcome::Unknown, message).hint("ask again with the same key")
            );
        }
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| busy())?;
        state.outbox.call(frame.clone()).map_err(|_| busy())?;
        let questions = Questions::default();
        let pending = Pending { frame, ctx: ctx.clone(), reply, stopped: false, parts: None, questions, _room: room };
        state.pending.insert(call.clone(), pending);
        drop(state);
        Ok(Waiting::new(self.clone(), call, end))
    }

    /// The caller wants the call stopped. If the foot can say what became of the work, it is asked to; otherwise the
    /// call ends here.
    pub(super) fn stop(&self, call: &CallId) {
        let mut state = self.state.lock();
        let here = state.link == Link::Open;
        let Some(pending) = state.pending.get_mut(call) else { return };
        let settled = if pending.frame.withdraw() {
            Err(not_started())
        } else if here {
            pending.stopped = true;
            state.outbox.control(cancel(call));
            return;
        } else {
            Err(gone(&self.name))
        };
        let pending = state.pending.remove(call);
        drop(state);
        if let Some(pending) = pending {
            pending.settle(settled);
        }
    }

    /// The caller is gone, and does not wait for what becomes of the work.
    pub(super) fn forget(&self, call: &CallId) {
        let mut state = self.state.lock();
        let Some(mut pending) = state.pending.remove(call) else { return };
        if pending.frame.withdraw() {
            return;
        }
        let parts = pending.parts.take();
        let (keyed, here) = (pending.ctx.keyed.is_some(), state.link == Link::Open);
        match parts {
            // The end of a keyed call is wanted, whoever waits for it.
            Some(parts) if keyed => _ = state.unawaited.insert(call.clone(), parts),
            // The foot is sending its answer: it can spare itself the rest.
            Some(_) if here => state.outbox.ack(call.clone()),
            None if here && !pending.stopped => state.outbox.control(cancel(call)),
            _ => {}
        }
        drop(state);
    }

    /// Hands the end of a call, as the foot tells it, to its caller.
    ///
    /// # Errors
    /// Nobody waits for it: gives it back.
    pub(super) fn settle(&self, epoch: u64, call: &CallId, settled: Settled) -> Result<Told, Settled> {
        let mut state = self.state.lock();
        let pending = if state.epoch == epoch { state.pending.remove(call) } else { None };
        drop(state);
        let Some(pending) = pending else { return Err(settled) };
        let keyed = pending.ctx.keyed.is_some();
        pending.answered(settled);
        Ok(if keyed { Told::ToBeStored } else { Told::Done })
    }

    /// The end of a keyed call is stored: over whatever connection the foot has now it hears that it may forget it. One that
    /// is away brings it again, and hears it then.
    pub(super) fn acknowledge(&self, call: CallId) {
        let state = self.state.lock();
        if state.link == Link::Open {
            state.outbox.ack(call);
        }
    }

    /// Asks for the end of a call that nobody here waits for.
    pub(super) fn stop_unawaited(&self, call: &CallId) {
        let state = self.state.lock();
        if state.link == Link::Open {
            state.outbox.control(cancel(call));
        }
    }

    /// The foot takes in a call that goes to it in parts: that is a sign of life, however slow the link is.
    pub(super) fn takes_in(&self, epoch: u64, call: &CallId) {
        let state = self.state.lock();
        if let Some(pending) = state.pending.get(call).filter(|_| state.epoch == epoch) {
            pending.ctx.clock.touch();
        }
    }

    /// Passes on what a call says while it runs. `false`: nobody listens.
    pub(super) fn event(&self, epoch: u64, call: &CallId, event: CallEvent) -> bool {
        let state = self.state.lock();
        let pending = if state.epoch == epoch { state.pending.get(call) } else { None };
        pending.map(|pending| pending.ctx.emit(event)).is_some()
    }
}
