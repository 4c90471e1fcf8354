//! What the foot remembers of calls that are over: results until the hub has them, and that a call was here.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::limits::RESUME_GRACE;
use footbridge_shared::message::{Call, FootToHub, InFlight, InFlightState};
use footbridge_shared::{ErrorCode, Outcome};

use super::live::Live;
use crate::failure::Failure;
use crate::frame::{Frame, too_large};

/// Calls that are remembered; beyond that new ones are refused, for to forget one is to run it twice.
const MAX_CALLS: usize = 100_000;
/// Results that wait for the hub, in bytes, before new calls are refused.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// How long a call with an idempotency key is remembered: as long as the hub remembers the key.
const KEYED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long past its deadline the result of any other call may still be asked for.
const UNKEYED_FOR: Duration = RESUME_GRACE.saturating_mul(2);
/// Cancelled calls that are remembered in case the call itself comes late; the oldest goes first.
const MAX_CANCELLED: usize = 4096;
/// How long: a call that was overtaken by its cancel comes within a resume. Not for good, since a caller who cancelled
/// may think again and use the same key.
const CANCELLED_FOR: Duration = RESUME_GRACE.saturating_mul(2);
/// Time between two looks for what can be forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// A call that is over.
#[derive(Debug)]
pub(super) struct Done {
    message: Option<FootToHub>,
    outcome: Outcome,
    keyed: bool,
    pub(super) digest: Option<String>,
    forget_at: Duration,
    /// What it counts for, settled when it was kept.
    bytes: usize,
    sequence: u64,
}

impl Done {
    pub(super) fn new(message: FootToHub, outcome: Outcome, live: &Live, now: Duration) -> Self {
        let forget_at = if live.keyed { now + KEYED_FOR } else { now.max(live.deadline) + UNKEYED_FOR };
        let (keyed, digest) = (live.keyed, live.digest.clone());
        Self { message: Some(message), outcome, keyed, digest, forget_at, bytes: 0, sequence: 0 }
    }

    /// The terminal message, or that there is none any more. A result that does not fit turns into a failure.
    pub(super) fn answer(&mut self, call: &CallId, frame_bytes: usize) -> Frame {
        let Some(message) = &self.message else {
            return Frame::new(&self.expired().into_message(call.clone(), String::new()).into());
        };
        let frame = Frame::new(message);
        if frame.text.len() <= frame_bytes {
            return frame;
        }
        let origin = match message {
            FootToHub::Result(result) => result.origin.clone(),
            FootToHub::Failure(failure) => failure.origin.clone(),
            _ => String::new(),
        };
        let message: FootToHub = too_large(frame.text.len()).into_message(call.clone(), origin).into();
        let frame = Frame::new(&message);
        self.message = Some(message);
        frame
    }

    /// The same for a call that came again: its answer goes where this one comes from.
    pub(super) fn answer_to(&mut self, call: &Call, frame_bytes: usize) -> Frame {
        match &mut self.message {
            Some(FootToHub::Result(result)) => result.origin.clone_from(&call.origin),
            Some(FootToHub::Failure(failure)) => failure.origin.clone_from(&call.origin),
            _ => return super::refusal(call, self.expired()),
        }
        self.answer(&call.call, frame_bytes)
    }

    fn expired(&self) -> Failure {
        Failure::new(ErrorCode::ResultExpired, self.outcome, "the result is no longer kept")
    }
}

/// Calls that are over.
#[derive(Debug, Default)]
pub(super) struct Kept {
    done: HashMap<CallId, Done>,
    bytes: usize,
    sequence: u64,
    cancelled: HashMap<CallId, Duration>,
    cancelled_order: VecDeque<CallId>,
    next_sweep: Duration,
}

impl Kept {
    pub(super) fn is_full(&self) -> bool {
        self.done.len() >= MAX_CALLS || self.bytes >= MAX_BYTES
    }

    /// Whether an answer waits for its `ack`.
    pub(super) fn has_unacked(&self) -> bool {
        self.bytes > 0
    }

    /// Keeps an answer that takes this many bytes.
    pub(super) fn keep(&mut self, call: CallId, mut done: Done, bytes: usize) {
        self.sequence += 1;
        (done.sequence, done.bytes) = (self.sequence, bytes);
        self.bytes += bytes;
        self.done.insert(call, done);
    }

    pub(super) fn get_mut(&mut self, call: &CallId) -> Option<&mut Done> {
        self.done.get_mut(call)
    }

    /// Drops the payload. That the call was here is remembered as long as it may come again: with a key, that is.
    pub(super) fn acked(&mut self, call: &CallId) {
        let Some(done) = self.done.get_mut(call) else { return };
        self.bytes -= std::mem::take(&mut done.bytes);
        done.message = None;
        if !done.keyed {
            self.done.remove(call);
        }
    }

    /// Remembers that a call was cancelled, should it come yet.
    pub(super) fn cancelled(&mut self, call: CallId, now: Duration) {
        if self.cancelled.insert(call.clone(), now + CANCELLED_FOR).is_none() {
            self.cancelled_order.push_back(call);
        }
        if self.cancelled_order.len() > MAX_CANCELLED {
            self.forget_cancelled();
        }
    }

    fn forget_cancelled(&mut self) {
        if let Some(oldest) = self.cancelled_order.pop_front() {
            self.cancelled.remove(&oldest);
        }
    }

    pub(super) fn was_cancelled(&self, call: &CallId, now: Duration) -> bool {
        self.cancelled.get(call).is_some_and(|until| now < *until)
    }

    /// Forgets what nobody can ask for any more.
    pub(super) fn sweep(&mut self, now: Duration) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP_EVERY;
        while self.cancelled_order.front().is_some_and(|oldest| !self.was_cancelled(oldest, now)) {
            self.forget_cancelled();
        }
        let bytes = &mut self.bytes;
        self.done.retain(|call, done| {
            let keep = now < done.forget_at;
            if !keep {
                *bytes -= done.bytes;
                if done.message.is_some() {
                    tracing::info!(%call, "forgot a result that the hub never acknowledged");
                }
            }
            keep
        });
    }

    pub(super) fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        self.done.iter().filter_map(|(call, done)| {
            let origin = match done.message.as_ref()? {
                FootToHub::Result(result) => result.origin.clone(),
                FootToHub::Failure(failure) => failure.origin.clone(),
                _ => return None,
            };
            Some(InFlight { call: call.clone(), digest: done.digest.clone(), state: InFlightState::Done, origin })
        })
    }

    pub(super) fn unacked(&mut self, frame_bytes: usize) -> Vec<Frame> {
        let mut waiting: Vec<(&CallId, &mut Done)> =
            self.done.iter_mut().filter(|(_, done)| done.message.is_some()).collect();
        waiting.sort_by_key(|(_, done)| done.sequence);
        waiting.into_iter().map(|(call, done)| done.answer(call, frame_bytes)).collect()
    }
}
