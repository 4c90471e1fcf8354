//! The sending side: bulk that waits for its turn.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Window;
use crate::id::CallId;
use crate::limits::{BULK_BYTES, MAX_FRAME_BYTES, PART_FRAME_BYTES};
use crate::part::{HEADER_BYTES, Part, PartsId};

/// Data of every part but the last, in bytes. The same on all connections of a session: numbers of parts are places.
const PART_DATA_BYTES: usize = PART_FRAME_BYTES - HEADER_BYTES;

/// An encoded message that can wait.
pub trait Bulky {
    /// Its JSON text.
    fn text(&self) -> &[u8];

    /// Whether nobody wants it sent any more.
    fn is_taken_back(&self) -> bool {
        false
    }

    /// It is about to be sent to its end. `false`: it was taken back, at the last moment.
    fn claim(&self) -> bool {
        true
    }
}

impl<M: Bulky> Bulky for Arc<M> {
    fn text(&self) -> &[u8] {
        (**self).text()
    }

    fn is_taken_back(&self) -> bool {
        (**self).is_taken_back()
    }

    fn claim(&self) -> bool {
        (**self).claim()
    }
}

/// What messages keep their order among themselves: those of one call, or of one other purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Of this call. Its text frames count as bulk if they are large.
    Call(PartsId),
    /// Of no call. Its text frames count for nothing; its parts have this id.
    Other(PartsId),
}

impl Flow {
    /// The flow of a call; `other` if its id stands for no bytes.
    pub fn of(call: &CallId, other: impl FnOnce() -> PartsId) -> Self {
        call.to_bytes().map_or_else(|| Self::Other(other()), Self::Call)
    }

    const fn id(&self) -> &PartsId {
        match self {
            Self::Call(id) | Self::Other(id) => id,
        }
    }
}

/// The next thing to send.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<M> {
    /// A message that fits a text frame.
    Text(M),
    /// A binary frame.
    Part(Vec<u8>),
    /// A message was taken back after some of its parts went out: the other side need not keep them.
    TakenBack(PartsId),
}

/// The messages of one flow: the first is being sent, the others wait for it.
#[derive(Debug)]
struct Lane<M> {
    flow: Flow,
    head: M,
    rest: VecDeque<M>,
    /// Number of the next part of `head`, if it goes in parts. Past the last one, it waits to be returned.
    next: u32,
    /// The other side may have parts of it.
    begun: bool,
    held: bool,
}

impl<M: Bulky> Lane<M> {
    /// The part that is due; `None` when all are out.
    fn part(&self) -> Option<Part<'_>> {
        let (from, bytes) = (place(self.next), self.head.text().len());
        let to = bytes.min(from.saturating_add(PART_DATA_BYTES));
        let data = self.head.text().get(from..to).filter(|data| !data.is_empty())?;
        Some(Part { id: *self.flow.id(), seq: self.next, last: to == bytes, data })
    }
}

/// Where a part begins in its message, in bytes.
fn place(seq: u32) -> usize {
    usize::try_from(seq).unwrap_or(usize::MAX).saturating_mul(PART_DATA_BYTES)
}

/// Bulk of one connection, in turns, within its window. See [`crate::parts`].
#[derive(Debug)]
pub struct Bulk<M> {
    /// Who is next, first.
    lanes: VecDeque<Lane<M>>,
    /// Messages in them.
    len: usize,
    window: Window,
    frame_bytes: usize,
    /// Whether parts may go out: the other side has had its chance to ask for the rest of what it has.
    open: bool,
}

impl<M> Default for Bulk<M> {
    fn default() -> Self {
        Self { lanes: VecDeque::new(), len: 0, window: Window::default(), frame_bytes: MAX_FRAME_BYTES, open: false }
    }
}

impl<M: Bulky> Bulk<M> {
    /// What the other side accepts in one text frame; never more than [`MAX_FRAME_BYTES`].
    pub fn set_frame_bytes(&mut self, bytes: usize) {
        self.frame_bytes = bytes.min(MAX_FRAME_BYTES);
    }

    /// The other side said something that is no `partsFrom`: parts may go out from now on.
    pub const fn open(&mut self) {
        self.open = true;
    }

    /// Queues a message. A long one that is on its way already is not queued again.
    pub fn push(&mut self, flow: Flow, message: M) {
        let lane = self.lanes.iter_mut().find(|lane| lane.flow == flow);
        let Some(lane) = lane else {
            self.len += 1;
            let rest = VecDeque::new();
            self.lanes.push_back(Lane { flow, head: message, rest, next: 0, begun: false, held: false });
            return;
        };
        let is_long = message.text().len() > self.frame_bytes;
        if !is_long || lane.rest.back().unwrap_or(&lane.head).text() != message.text() {
            self.len += 1;
            lane.rest.push_back(message);
        }
    }

    /// Whether there is something that may go out now.
    pub fn is_ready(&self) -> bool {
        self.ready().is_some()
    }

    /// Whether all that was queued went out.
    pub fn is_drained(&self) -> bool {
        self.lanes.iter().all(|lane| self.is_long(lane) && lane.rest.is_empty() && lane.part().is_none())
    }

    /// Messages that are queued or on their way.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next frame, if one may go out now.
    pub fn pop(&mut self) -> Option<Next<M>> {
        loop {
            let at = self.ready()?;
            // Whatever comes of this one, the others go before it next time.
            self.lanes.rotate_left(at);
            let mut lane = self.lanes.pop_front()?;
            let (flow, id) = (lane.flow, *lane.flow.id());
            if lane.head.is_taken_back() {
                let begun = lane.begun;
                self.advance(lane);
                if begun {
                    return Some(Next::TakenBack(id));
                }
            } else if self.is_long(&lane) {
                let Some(part) = lane.part() else { continue };
                if part.last && !lane.head.claim() {
                    self.advance(lane);
                    return Some(Next::TakenBack(id));
                }
                // The data of a part is far below what a part may have.
                let frame = part.encode().unwrap_or_default();
                (lane.next, lane.begun) = (lane.next + 1, true);
                self.lanes.push_back(lane);
                self.window.sent(id, frame.len());
                return Some(Next::Part(frame));
            } else {
                let message = self.advance(lane);
                if message.claim() {
                    if let Some(bytes) = counted(flow, message.text().len()) {
                        self.window.sent(id, bytes);
                    }
                    return Some(Next::Text(message));
                }
            }
        }
    }

    /// Bulk was returned, perhaps with the wish to wait.
    pub fn credit(&mut self, id: &PartsId, bytes: u64, hold: bool) {
        self.window.returned(id, bytes);
        let Some(at) = self.lanes.iter().position(|lane| lane.flow.id() == id) else { return };
        let Some(lane) = self.lanes.get_mut(at) else { return };
        lane.held |= hold && lane.begun;
        let is_over = !lane.held && lane.begun && lane.part().is_none() && !self.window.has_out(id);
        if is_over && let Some(lane) = self.lanes.remove(at) {
            self.advance(lane);
        }
    }

    /// The other side wants the parts of a message from this one on.
    pub fn parts_from(&mut self, id: &PartsId, seq: u32) {
        let frame_bytes = self.frame_bytes;
        let asked = self.lanes.iter_mut().find(|lane| lane.flow.id() == id);
        if let Some(lane) = asked
            && lane.head.text().len() > frame_bytes
            && place(seq) < lane.head.text().len()
        {
            (lane.next, lane.begun, lane.held) = (seq, true, false);
        }
    }

    /// The other side is done with this call: nothing of it is out, and nothing more is to be sent.
    pub fn settled(&mut self, id: &PartsId) {
        self.window.settled(id);
        if let Some(at) = self.lanes.iter().position(|lane| lane.flow == Flow::Call(*id))
            && let Some(lane) = self.lanes.remove(at)
        {
            self.len -= 1 + lane.rest.len();
        }
    }

    /// Whether nothing waits and nothing is out: there is nothing that could be returned or asked for.
    pub const fn is_quiet(&self) -> bool {
        self.len == 0 && self.window.total() == 0
    }

    fn is_long(&self, lane: &Lane<M>) -> bool {
        lane.head.text().len() > self.frame_bytes
    }

    /// The lane whose turn it is. One that the window is too small for is waited for: to let smaller frames pass would
    /// keep it waiting for ever.
    fn ready(&self) -> Option<usize> {
        let mut waiting = self.lanes.iter().enumerate().filter_map(|(at, lane)| {
            if lane.head.is_taken_back() {
                Some((at, 0))
            } else if self.is_long(lane) {
                let part = lane.part().filter(|_| self.open && !lane.held)?;
                Some((at, HEADER_BYTES + part.data.len()))
            } else {
                Some((at, counted(lane.flow, lane.head.text().len()).unwrap_or_default()))
            }
        });
        let (at, bytes) = waiting.next()?;
        (bytes == 0 || self.window.fits(bytes)).then_some(at)
    }

    /// Takes the first message out of a lane; the next one of its flow gets in line.
    fn advance(&mut self, mut lane: Lane<M>) -> M {
        self.len -= 1;
        let Some(next) = lane.rest.pop_front() else { return lane.head };
        let message = std::mem::replace(&mut lane.head, next);
        (lane.next, lane.begun, lane.held) = (0, false, false);
        self.lanes.push_back(lane);
        message
    }
}

/// Bytes for which a text frame counts as bulk.
fn counted(flow: Flow, bytes: usize) -> Option<usize> {
    (matches!(flow, Flow::Call(_)) && bytes >= BULK_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests;
