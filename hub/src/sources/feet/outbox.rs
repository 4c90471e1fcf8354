//! What waits to be written to one connection: control before small before bulk, all of it bounded.
//!
//! Anybody may put frames in; the connection's task alone takes them out. The outbox is also how others tell that task
//! to end, so that it has one place to listen to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use bytes::Bytes;
use footbridge_shared::id::CallId;
use footbridge_shared::message::{Ack, HubToFoot};
use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::frame::{Ending, Frame};

/// Frames from this size on are bulk, in bytes: they let smaller ones pass.
const BULK_BYTES: usize = 4 * 1024;
/// Most bytes of calls that may wait for one connection.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// Acknowledgements from this number on wait for nothing.
const ACK_BATCH: usize = 32;

/// A call on its way to a foot. The one who writes it and the one who takes it back race here, and one wins.
#[derive(Debug)]
pub(super) struct CallFrame {
    text: Bytes,
    state: AtomicU8,
}

const QUEUED: u8 = 0;
const WRITTEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl CallFrame {
    pub(super) fn new(text: String) -> Self {
        Self { text: text.into(), state: AtomicU8::new(QUEUED) }
    }

    /// The frame's text.
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

    fn leave_queue(&self, to: u8) -> bool {
        self.state.compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// There is no room for another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Debug)]
enum Item {
    Answer(Bytes),
    Call(Arc<CallFrame>),
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Self::Answer(text) => text.len(),
            Self::Call(call) => call.text.len(),
        }
    }
}

#[derive(Debug, Default)]
struct Queues {
    control: VecDeque<Frame>,
    acks: VecDeque<CallId>,
    small: VecDeque<Item>,
    bulk: VecDeque<Item>,
    /// Bytes in `small` and `bulk`.
    waiting_bytes: usize,
    ended: bool,
    /// Present from the end until the connection's task takes it.
    ending: Option<Ending>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Outbox {
    queues: Mutex<Queues>,
    task: AtomicWaker,
    capacity: usize,
}

impl Outbox {
    /// An outbox whose queues hold `capacity` frames each.
    pub(super) fn new(capacity: usize) -> Self {
        Self { queues: Mutex::default(), task: AtomicWaker::new(), capacity }
    }

    /// Queues a frame that goes before all others. A foot that lets these pile up does not read: the connection ends.
    pub(super) fn control(&self, message: impl Into<HubToFoot>) {
        let frame = Frame::from(message.into());
        let mut queues = self.queues.lock();
        if queues.ended {
            return;
        }
        queues.control.push_back(frame);
        if queues.control.len() > self.capacity {
            queues.end(not_reading());
        }
        drop(queues);
        self.task.wake();
    }

    /// Queues an acknowledgement: control, too, but it may wait for company.
    pub(super) fn ack(&self, call: CallId) {
        let mut queues = self.queues.lock();
        if queues.ended {
            return;
        }
        queues.acks.push_back(call);
        if queues.acks.len() > self.capacity {
            queues.end(not_reading());
        }
        drop(queues);
        self.task.wake();
    }

    /// Queues an ordinary answer, beyond what calls may fill. A foot that lets these pile up does not read: the
    /// connection ends.
    pub(super) fn answer(&self, message: impl Into<HubToFoot>) {
        let item = Item::Answer(message.into().encode().into());
        let mut queues = self.queues.lock();
        if queues.ended {
            return;
        }
        queues.waiting_bytes += item.bytes();
        queues.small.push_back(item);
        if queues.small.len() > 2 * self.capacity || queues.waiting_bytes > 2 * MAX_WAITING_BYTES {
            queues.end(not_reading());
        }
        drop(queues);
        self.task.wake();
    }

    /// Queues a call.
    ///
    /// # Errors
    /// [`Full`] when as much waits as may wait.
    pub(super) fn call(&self, call: Arc<CallFrame>) -> Result<(), Full> {
        let mut queues = self.queues.lock();
        if queues.ended
            || queues.small.len() + queues.bulk.len() >= self.capacity
            || queues.waiting_bytes + call.text.len() > MAX_WAITING_BYTES
        {
            return Err(Full);
        }
        queues.push_call(call);
        drop(queues);
        self.task.wake();
        Ok(())
    }

    /// Queues a call that was accepted earlier, room or no room: their number is bounded where they are kept.
    pub(super) fn call_again(&self, call: Arc<CallFrame>) {
        let mut queues = self.queues.lock();
        if !queues.ended {
            queues.push_call(call);
        }
        drop(queues);
        self.task.wake();
    }

    /// Ends the connection. The first reason counts; what waits is dropped.
    pub(super) fn end(&self, ending: Ending) {
        self.queues.lock().end(ending);
        self.task.wake();
    }

    /// Makes `waker` the one that is woken by new frames and by the end.
    pub(super) fn register(&self, waker: &Waker) {
        self.task.register(waker);
    }

    /// The reason to end, once.
    pub(super) fn take_ending(&self) -> Option<Ending> {
        self.queues.lock().ending.take()
    }

    /// Whether the connection was told to end.
    #[cfg(test)]
    pub(super) fn ended(&self) -> bool {
        self.queues.lock().ended
    }

    /// What there is to write.
    pub(super) fn waiting(&self) -> Waiting {
        let queues = self.queues.lock();
        let others = !(queues.control.is_empty() && queues.small.is_empty() && queues.bulk.is_empty());
        if others || queues.acks.len() >= ACK_BATCH {
            Waiting::Frames
        } else if !queues.acks.is_empty() {
            Waiting::Acks
        } else {
            Waiting::Nothing
        }
    }

    /// The next control frame that is no acknowledgement.
    pub(super) fn pop_control(&self) -> Option<Frame> {
        self.queues.lock().control.pop_front()
    }

    /// The next frame to write. A call leaves the queue as written.
    pub(super) fn pop(&self) -> Option<Frame> {
        let mut queues = self.queues.lock();
        if let Some(frame) = queues.control.pop_front() {
            return Some(frame);
        }
        if let Some(call) = queues.acks.pop_front() {
            drop(queues);
            return Some(HubToFoot::from(Ack { call }).into());
        }
        while let Some(item) = queues.small.pop_front().or_else(|| queues.bulk.pop_front()) {
            queues.waiting_bytes -= item.bytes();
            match item {
                Item::Answer(text) => return Some(Frame::Text(text)),
                Item::Call(call) if call.leave_queue(WRITTEN) => return Some(Frame::Text(call.text.clone())),
                Item::Call(_) => {}
            }
        }
        None
    }
}

/// What waits in an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    /// Only acknowledgements, which can wait for company.
    Acks,
    Frames,
}

impl Queues {
    fn push_call(&mut self, call: Arc<CallFrame>) {
        self.waiting_bytes += call.text.len();
        let queue = if call.text.len() < BULK_BYTES { &mut self.small } else { &mut self.bulk };
        queue.push_back(Item::Call(call));
    }

    fn end(&mut self, ending: Ending) {
        if !self.ended {
            *self = Self { ended: true, ending: Some(ending), ..Self::default() };
        }
    }
}

fn not_reading() -> Ending {
    Ending::timeout("the foot does not read what it is sent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_shared::message::{Ping, ToolsAck};

    fn call(text: &str) -> Arc<CallFrame> {
        Arc::new(CallFrame::new(text.to_owned()))
    }

    fn texts(outbox: &Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop())
            .map(|frame| match frame {
                Frame::Text(text) => String::from_utf8_lossy(&text).into_owned(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn control_goes_before_small_and_small_before_bulk() {
        let outbox = Outbox::new(8);
        let bulk = "b".repeat(BULK_BYTES);
        assert_eq!(outbox.call(call(&bulk)), Ok(()));
        assert_eq!(outbox.call(call("small")), Ok(()));
        outbox.ack(CallId::parse("c").unwrap());
        outbox.control(Ping { sent_ms: 1 });
        assert_eq!(
            texts(&outbox),
            [r#"{"type":"ping","sentMs":1}"#, r#"{"type":"ack","call":"c"}"#, "small", bulk.as_str()]
        );
        assert_eq!(outbox.waiting(), Waiting::Nothing);
    }

    #[test]
    fn a_full_outbox_refuses_calls_and_a_withdrawn_call_is_never_written() {
        let outbox = Outbox::new(2);
        let (first, second) = (call("1"), call("2"));
        assert_eq!(outbox.call(first.clone()), Ok(()));
        assert_eq!(outbox.call(second.clone()), Ok(()));
        assert_eq!(outbox.call(call("3")), Err(Full));
        assert!(first.withdraw());
        assert_eq!(texts(&outbox), ["2"]);
        assert!(second.was_written() && !second.withdraw());
        assert_eq!(outbox.call(call("4")), Ok(()));
    }

    #[test]
    fn bytes_are_bounded_as_well_as_frames() {
        let outbox = Outbox::new(10_000);
        let large = "x".repeat(64 * 1024);
        let accepted = (0..10_000).take_while(|_| outbox.call(call(&large)).is_ok()).count();
        assert_eq!(accepted, MAX_WAITING_BYTES / large.len());
    }

    #[test]
    fn a_reader_that_stops_reading_ends_the_connection_and_frees_what_waited() {
        let outbox = Outbox::new(4);
        for revision in 0..100 {
            outbox.answer(ToolsAck { revision, rejected: Vec::new() });
        }
        assert!(outbox.ended() && outbox.waiting() == Waiting::Nothing);
        assert_eq!(outbox.take_ending(), Some(not_reading()));

        let outbox = Outbox::new(4);
        for _ in 0..100 {
            outbox.ack(CallId::parse("c").unwrap());
        }
        assert!(outbox.ended());
    }

    #[test]
    fn the_first_reason_to_end_counts() {
        let outbox = Outbox::new(4);
        outbox.end(Ending::superseded());
        outbox.end(Ending::drained());
        assert_eq!(outbox.take_ending(), Some(Ending::superseded()));
        assert_eq!(outbox.call(call("late")), Err(Full));
    }
}
