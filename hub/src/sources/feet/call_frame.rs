//! A message to a foot that can be taken back, or that is large: a call, a request, the answer to a question.

use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use footbridge_shared::id::CallId;
use footbridge_shared::limits::{BULK_BYTES, MAX_FRAME_BYTES};
use footbridge_shared::parts::{Bulky, Flow};
use tokio::sync::OwnedSemaphorePermit;

use crate::clock::random_bytes;

/// A call on its way to a foot. The one who writes it and the one who takes it back race here, and one wins. A call that
/// goes in parts counts as written when its last part is: before that, no foot can run it.
#[derive(Debug)]
pub(super) struct CallFrame {
    /// Of one that is bulk.
    flow: Option<Flow>,
    text: Bytes,
    state: AtomicU8,
    /// What it takes of the room for questions, if it answers one.
    _room: Option<OwnedSemaphorePermit>,
}

const QUEUED: u8 = 0;
const WRITTEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl CallFrame {
    pub(super) fn new(call: &CallId, text: String) -> Self {
        let flow = (text.len() >= BULK_BYTES).then(|| Flow::of(call, random_bytes));
        Self { flow, text: text.into(), state: AtomicU8::new(QUEUED), _room: None }
    }

    /// The answer to a question of that call. The id of a call belongs to the call and its end: an answer in parts has one
    /// of its own.
    pub(super) fn answering(call: &CallId, text: String, room: OwnedSemaphorePermit) -> Self {
        let long = text.len() > MAX_FRAME_BYTES;
        let flow = if long { Flow::Other(random_bytes()) } else { Flow::of(call, random_bytes) };
        Self { flow: Some(flow), text: text.into(), state: AtomicU8::new(QUEUED), _room: Some(room) }
    }

    /// The same call, to be written to another connection, word for word.
    pub(super) fn anew(&self) -> Self {
        Self { flow: self.flow, text: self.text.clone(), state: AtomicU8::new(QUEUED), _room: None }
    }

    /// Among what it keeps its order, if it is bulk.
    pub(super) const fn flow(&self) -> Option<Flow> {
        self.flow
    }

    /// The message's text.
    pub(super) fn text(&self) -> &Bytes {
        &self.text
    }

    /// Whether it may have reached the foot.
    pub(super) fn was_written(&self) -> bool {
        self.state.load(Ordering::Acquire) == WRITTEN
    }

    /// Takes it back. `false`: it was written already.
    pub(super) fn withdraw(&self) -> bool {
        self.leave_queue(WITHDRAWN)
    }

    /// It is written now. `false`: it was taken back, or was written already.
    pub(super) fn write(&self) -> bool {
        self.leave_queue(WRITTEN)
    }

    fn leave_queue(&self, to: u8) -> bool {
        self.state.compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Bulky for CallFrame {
    fn text(&self) -> &[u8] {
        &self.text
    }

    fn is_taken_back(&self) -> bool {
        self.state.load(Ordering::Acquire) == WITHDRAWN
    }

    fn claim(&self) -> bool {
        // Its last part may be asked for again.
        self.write() || self.was_written()
    }
}
