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
use crate::journal::{Entry, KEYED_FOR, MAX_ENTRIES, UNKEYED_FOR};

/// Results that wait for the hub, in bytes, before new calls are refused.
const MAX_BYTES: usize = 32 * 1024 * 1024;
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
    /// The answer, as long as the hub may want it. The journal has none.
    message: Option<FootToHub>,
    /// `None`: another process of this foot began it, and what came of it is not known.
    outcome: Option<Outcome>,
    keyed: bool,
    pub(super) digest: Option<String>,
    /// As it came with the call.
    origin: String,
    /// It is in the journal, too.
    journaled: bool,
    /// The hub has what there is to know.
    acked: bool,
    pub(super) forget_at: Duration,
    /// What it counts for, settled when it was kept.
    bytes: usize,
    sequence: u64,
}

impl Done {
    pub(super) fn new(message: FootToHub, outcome: Outcome, live: &Live, now: Duration) -> Self {
        let forget_at = if live.keyed { now + KEYED_FOR } else { now.max(live.deadline) + UNKEYED_FOR };
        Self {
            message: Some(message),
            outcome: Some(outcome),
            keyed: live.keyed,
            digest: live.digest.clone(),
            origin: live.origin.clone(),
            journaled: live.began().is_some(),
            acked: false,
            forget_at,
            bytes: 0,
            sequence: 0,
        }
    }

    /// What the journal says of a call of another process.
    pub(super) fn before(entry: Entry) -> Self {
        let Entry { keyed, digest, origin, outcome, acked, until } = entry;
        let (message, journaled) = (None, true);
        Self { message, outcome, keyed, digest, origin, journaled, acked, forget_at: until, bytes: 0, sequence: 0 }
    }

    /// The terminal message, or that there is none any more. A result that does not fit turns into a failure.
    pub(super) fn answer(&mut self, call: &CallId, message_bytes: usize) -> Frame {
        let Some(message) = &self.message else {
            return Frame::new(&self.gone().into_message(call.clone(), self.origin.clone()).into());
        };
        let frame = Frame::new(message);
        if frame.text.len() <= message_bytes {
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
    pub(super) fn answer_to(&mut self, call: &Call, message_bytes: usize) -> Frame {
        self.origin.clone_from(&call.origin);
        match &mut self.message {
            Some(FootToHub::Result(result)) => result.origin.clone_from(&call.origin),
            Some(FootToHub::Failure(failure)) => failure.origin.clone_from(&call.origin),
            _ => {}
        }
        self.answer(&call.call, message_bytes)
    }

    /// There is no answer any more, or there never was one.
    fn gone(&self) -> Failure {
        match self.outcome {
            Some(outcome) if self.acked || outcome != Outcome::Unknown => {
                Failure::new(ErrorCode::ResultExpired, outcome, "the result is no longer kept")
            }
            // Killed with its foot, or stopped when that ended in order: to whoever asks now it is the same.
            _ => Failure::new(
                ErrorCode::FootRestarted,
                Outcome::Unknown,
                "the process of the foot that began this call has ended, and did not say whether the work was done",
            )
            .hint("find out what the call has done before you send it anew"),
        }
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
    /// Whether as many calls are remembered as may be. Only time helps: the keys of a day have to pass.
    pub(super) fn is_full(&self) -> bool {
        self.done.len() >= MAX_ENTRIES
    }

    /// Whether as many results wait for the hub as may be. It helps to wait until the hub has taken some.
    pub(super) const fn is_full_of_results(&self) -> bool {
        self.bytes >= MAX_BYTES
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

    /// Remembers a call of another process.
    pub(super) fn keep_before(&mut self, call: CallId, done: Done) {
        self.done.insert(call, done);
    }

    pub(super) fn get_mut(&mut self, call: &CallId) -> Option<&mut Done> {
        self.done.get_mut(call)
    }

    /// Drops the payload. That the call was here is remembered as long as it may come again: with a key, that is.
    /// Returns whether the journal wants to know.
    pub(super) fn acked(&mut self, call: &CallId) -> bool {
        let crowded = self.is_full();
        let Some(done) = self.done.get_mut(call) else { return false };
        self.bytes -= std::mem::take(&mut done.bytes);
        done.message = None;
        let news = done.journaled && !std::mem::replace(&mut done.acked, true);
        // Where room is short, a call that changed nothing may as well be run again.
        if !done.keyed || (crowded && !done.journaled) {
            self.done.remove(call);
        }
        news
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

    /// What the hub has not acknowledged: first that for which there is an answer, then calls with a key that another
    /// process began, of which the hub may still want to know.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = InFlight> + '_ {
        let with = |wanted: fn(&Done) -> bool| {
            self.done.iter().filter(move |(_, done)| wanted(done)).map(|(call, done)| InFlight {
                call: call.clone(),
                digest: done.digest.clone(),
                state: InFlightState::Done,
                origin: done.origin.clone(),
            })
        };
        with(|done| done.message.is_some()).chain(with(|done| done.message.is_none() && done.keyed && !done.acked))
    }

    pub(super) fn unacked(&mut self, message_bytes: usize) -> Vec<Frame> {
        let mut waiting: Vec<(&CallId, &mut Done)> =
            self.done.iter_mut().filter(|(_, done)| done.message.is_some()).collect();
        waiting.sort_by_key(|(_, done)| done.sequence);
        waiting.into_iter().map(|(call, done)| done.answer(call, message_bytes)).collect()
    }
}
