//! Frames that wait to be written: control before small before bulk, in order within each. Bulk goes out within what the
//! hub returns ([`footbridge_shared::parts`]).

use std::collections::VecDeque;

use footbridge_shared::id::CallId;
use footbridge_shared::limits::SEND_QUEUE;
use footbridge_shared::message::{Credit, FootToHub, PartsFrom};
use footbridge_shared::part::PartsId;
use footbridge_shared::parts::{Bulk, Bulky, Dues, Flow, Next};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::frame::{Frame, Lane};
use crate::random;

/// Frames beyond which courtesies are dropped: progress of calls must not crowd out their results.
const COURTESY_LIMIT: usize = SEND_QUEUE / 4;

/// What waits to be written to one connection.
///
/// It is bounded by whoever fills it. When [`Outbox::has_room`] says no, the session takes no results; when
/// [`Outbox::may_read`] does, it does not read either, so that a hub which does not read slows itself down. Bulk is no
/// reason not to read: what lets it go comes from there. Answers to limits still come in; there is one a call at most.
#[derive(Debug)]
pub(super) struct Outbox {
    control: VecDeque<Utf8Bytes>,
    small: VecDeque<Utf8Bytes>,
    bulk: Bulk<Text>,
    /// Of what belongs to no call.
    own: Flow,
    /// What the hub gets back for its own bulk.
    dues: Dues,
}

#[derive(Debug)]
struct Text(Utf8Bytes);

impl Bulky for Text {
    fn text(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            control: VecDeque::new(),
            small: VecDeque::new(),
            bulk: Bulk::default(),
            own: Flow::Other(random::bytes()),
            dues: Dues::default(),
        }
    }
}

impl Outbox {
    pub(super) fn push(&mut self, frame: Frame) {
        if frame.courtesy && self.len() >= COURTESY_LIMIT {
            return;
        }
        match frame.lane {
            Lane::Control => self.control.push_back(frame.text.into()),
            Lane::Small => self.small.push_back(frame.text.into()),
            Lane::Bulk(flow) => self.bulk.push(flow.unwrap_or(self.own), Text(frame.text.into())),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        if let Some(text) = self.control.pop_front().or_else(|| self.small.pop_front()) {
            return Some(Message::Text(text));
        }
        match self.bulk.pop()? {
            Next::Text(Text(text)) => Some(Message::Text(text)),
            Next::Part(part) => Some(Message::binary(part)),
            // Nobody here takes a message back.
            Next::TakenBack(_) => None,
        }
    }

    /// Whether something can be written now.
    pub(super) fn is_ready(&self) -> bool {
        !self.control.is_empty() || !self.small.is_empty() || self.bulk.is_ready()
    }

    /// Whether everything was written.
    pub(super) fn is_drained(&self) -> bool {
        self.control.is_empty() && self.small.is_empty() && self.bulk.is_drained()
    }

    /// Gives bulk up, for a connection that ends.
    pub(super) fn drop_bulk(&mut self) {
        self.bulk = Bulk::default();
    }

    pub(super) fn has_room(&self) -> bool {
        self.len() < SEND_QUEUE
    }

    pub(super) fn may_read(&self) -> bool {
        self.control.len() + self.small.len() < SEND_QUEUE
    }

    fn len(&self) -> usize {
        self.control.len() + self.small.len() + self.bulk.len()
    }

    /// What the hub accepts in one text frame.
    pub(super) fn set_frame_bytes(&mut self, bytes: usize) {
        self.bulk.set_frame_bytes(bytes);
    }

    /// The hub said something that is no `partsFrom`: parts may go out.
    pub(super) const fn open(&mut self) {
        self.bulk.open();
    }

    /// The hub returns bulk.
    pub(super) fn credit(&mut self, credit: &Credit) {
        if let Some(id) = credit.call.to_bytes() {
            self.bulk.credit(&id, credit.bytes, credit.hold);
        }
    }

    /// The hub wants the parts of a message from some place on.
    pub(super) fn parts_from(&mut self, wanted: &PartsFrom) {
        if let Some(id) = wanted.call.to_bytes() {
            self.bulk.parts_from(&id, wanted.seq);
        }
    }

    /// The hub has the answer to a call: it needs nothing more of it.
    pub(super) fn settled(&mut self, call: &CallId) {
        if !self.bulk.is_quiet()
            && let Some(id) = call.to_bytes()
        {
            self.bulk.settled(&id);
        }
    }

    /// Bulk of the hub was taken in; [`Self::repay`] returns it.
    pub(super) fn owe(&mut self, id: PartsId, bytes: usize) {
        self.dues.owe(id, bytes);
    }

    /// Returns what must be returned by now.
    pub(super) fn repay(&mut self) {
        for credit in self.dues.due() {
            self.push(Frame::new(&FootToHub::from(credit)));
        }
    }

    /// Returns what is owed for one message now, perhaps with the wish to wait with the rest of it.
    pub(super) fn repay_now(&mut self, id: PartsId, hold: bool) {
        let credit = self.dues.now(id, hold);
        self.push(Frame::new(&FootToHub::from(credit)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_shared::limits::{BULK_WINDOW_BYTES, MAX_FRAME_BYTES};

    fn frame(lane: Lane, text: &str) -> Frame {
        Frame { lane, text: text.to_owned(), courtesy: false }
    }

    const BULK: Lane = Lane::Bulk(Some(Flow::Call([1; 16])));

    #[test]
    fn a_heartbeat_passes_results_and_small_results_pass_large_ones() {
        let mut outbox = Outbox::default();
        for (lane, text) in
            [(BULK, "b1"), (Lane::Small, "s1"), (BULK, "b2"), (Lane::Control, "c1"), (Lane::Small, "s2")]
        {
            outbox.push(frame(lane, text));
        }
        let order: Vec<String> = std::iter::from_fn(|| outbox.pop()).map(|text| text.to_string()).collect();
        assert_eq!(order, ["c1", "s1", "s2", "b1", "b2"]);
        assert!(outbox.is_drained());
    }

    #[test]
    fn courtesies_are_dropped_long_before_there_is_no_room() {
        let mut outbox = Outbox::default();
        for n in 0..SEND_QUEUE {
            outbox.push(Frame { courtesy: true, ..frame(Lane::Small, &n.to_string()) });
        }
        assert_eq!(outbox.len(), COURTESY_LIMIT);
        while outbox.has_room() {
            outbox.push(frame(Lane::Small, "result"));
        }
        assert_eq!(outbox.len(), SEND_QUEUE);
        assert!(!outbox.may_read());
    }

    #[test]
    fn bulk_that_waits_for_the_hub_does_not_keep_the_foot_from_reading() {
        let mut outbox = Outbox::default();
        let large = "x".repeat(MAX_FRAME_BYTES);
        for n in 0..SEND_QUEUE {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&n.to_be_bytes());
            outbox.push(frame(Lane::Bulk(Some(Flow::Call(id))), &large));
        }
        let out = std::iter::from_fn(|| outbox.pop()).count();
        assert_eq!(out, BULK_WINDOW_BYTES / MAX_FRAME_BYTES);
        outbox.push(frame(Lane::Small, "small"));
        assert!(outbox.is_ready() && outbox.may_read());
        assert_eq!(outbox.pop().map(|text| text.to_string()).as_deref(), Some("small"));
        assert!(!outbox.is_ready());
        outbox.settled(&CallId::from_bytes([0; 16]));
        assert!(outbox.is_ready());
    }
}
