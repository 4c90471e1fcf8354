//! What waits to be written to one connection: control before small before bulk, all of it bounded. Bulk goes out within
//! what the foot returns ([`footbridge_shared::parts`]).
//!
//! Anybody may put frames in; the connection's task alone takes them out. The outbox is also how others tell that task
//! to end, so that it has one place to listen to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use footbridge_mcp::{RpcError, codes};
use footbridge_shared::id::CallId;
use footbridge_shared::limits::{BULK_BYTES, CREDIT_GROUP_BYTES, MAX_MESSAGE_BYTES};
use footbridge_shared::message::{Ack, Credit, HubToFoot, PartsFrom, UpcallResult};
use footbridge_shared::part::PartsId;
use footbridge_shared::parts::{Bulk, Dues, Next};
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::call_frame::CallFrame;
use super::foot::cancel;
use super::frame::{Ending, Frame};
use super::questions::answer;

/// Most bytes of answers that may wait for one connection. Calls are bounded where they are kept.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Acknowledgements from this number on wait for nothing.
const ACK_BATCH: usize = 32;

/// There is no room for another call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

#[derive(Debug)]
enum Item {
    Answer(Bytes),
    Call(Arc<CallFrame>),
}

#[derive(Debug, Default)]
struct Queues {
    control: VecDeque<Frame>,
    acks: VecDeque<CallId>,
    /// Bulk that `acks` return, in bytes.
    acked_bytes: usize,
    small: VecDeque<Item>,
    bulk: Bulk<Arc<CallFrame>>,
    /// Bytes of answers in `small`.
    answer_bytes: usize,
    /// What the foot gets back for its own bulk.
    dues: Dues,
    /// The foot has returned bulk since somebody asked: it reads.
    progress: bool,
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
        if !queues.dues.is_empty()
            && let Some(id) = call.to_bytes()
        {
            queues.acked_bytes += queues.dues.settle(&id);
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
        self.answer_text(message.into().encode());
    }

    fn answer_text(&self, text: String) {
        let text = Bytes::from(text);
        let mut queues = self.queues.lock();
        if queues.ended {
            return;
        }
        queues.answer_bytes += text.len();
        queues.small.push_back(Item::Answer(text));
        if queues.small.len() > 2 * self.capacity || queues.answer_bytes > MAX_ANSWER_BYTES {
            queues.end(not_reading());
        }
        drop(queues);
        self.task.wake();
    }

    /// Queues the answer to a question. Large ones keep the question's room until they are out.
    pub(super) fn answer_question(&self, said: UpcallResult, room: OwnedSemaphorePermit) {
        let (call, id) = (said.call.clone(), said.id.clone());
        let mut text = HubToFoot::from(said).encode();
        if text.len() > MAX_MESSAGE_BYTES {
            let error =
                RpcError::new(codes::INTERNAL_ERROR, format!("the answer has more than {MAX_MESSAGE_BYTES} bytes"));
            text = HubToFoot::from(answer(&call, &id, Err(error))).encode();
        }
        if text.len() < BULK_BYTES {
            return self.answer_text(text);
        }
        self.call_again(Arc::new(CallFrame::answering(&call, text, room)));
    }

    /// Queues a call.
    ///
    /// # Errors
    /// [`Full`] when as much waits as may wait.
    pub(super) fn call(&self, call: Arc<CallFrame>) -> Result<(), Full> {
        let mut queues = self.queues.lock();
        if queues.ended || queues.small.len() + queues.bulk.len() >= self.capacity {
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

    /// The foot said something that is no `partsFrom`: parts may go out.
    pub(super) fn open(&self) {
        self.queues.lock().bulk.open();
    }

    /// The foot returns bulk.
    pub(super) fn credit(&self, credit: &Credit) {
        let Some(id) = credit.call.to_bytes() else { return };
        let mut queues = self.queues.lock();
        queues.bulk.credit(&id, credit.bytes, credit.hold);
        queues.progress = true;
    }

    /// The foot wants the parts of a call from some place on.
    pub(super) fn parts_from(&self, wanted: &PartsFrom) {
        if let Some(id) = wanted.call.to_bytes() {
            self.queues.lock().bulk.parts_from(&id, wanted.seq);
        }
    }

    /// The foot has answered a call: it needs nothing more of it.
    pub(super) fn settled(&self, call: &CallId) {
        let mut queues = self.queues.lock();
        if !queues.bulk.is_quiet()
            && let Some(id) = call.to_bytes()
        {
            queues.bulk.settled(&id);
        }
    }

    /// Bulk of the foot was taken in; [`Self::repay`] returns it, or an `ack` does.
    pub(super) fn owe(&self, id: PartsId, bytes: usize) {
        self.queues.lock().dues.owe(id, bytes);
    }

    /// Returns what must be returned by now.
    pub(super) fn repay(&self) {
        let mut queues = self.queues.lock();
        for credit in queues.dues.due() {
            queues.control_credit(credit);
        }
    }

    /// Returns what is owed for one message now, perhaps with the wish to wait with the rest of it.
    pub(super) fn repay_now(&self, id: PartsId, hold: bool) {
        let mut queues = self.queues.lock();
        let credit = queues.dues.now(id, hold);
        queues.control_credit(credit);
    }

    /// Whether the foot has returned bulk since the last time this was asked.
    pub(super) fn take_progress(&self) -> bool {
        std::mem::take(&mut self.queues.lock().progress)
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
        let others = !(queues.control.is_empty() && queues.small.is_empty()) || queues.bulk.is_ready();
        if others || queues.acks.len() >= ACK_BATCH || queues.acked_bytes >= CREDIT_GROUP_BYTES {
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
            if queues.acks.is_empty() {
                queues.acked_bytes = 0;
            }
            drop(queues);
            return Some(HubToFoot::from(Ack { call }).into());
        }
        while let Some(item) = queues.small.pop_front() {
            match item {
                Item::Answer(text) => {
                    queues.answer_bytes -= text.len();
                    return Some(Frame::Text(text));
                }
                Item::Call(call) if call.write() => return Some(Frame::Text(call.text().clone())),
                Item::Call(_) => {}
            }
        }
        Some(match queues.bulk.pop()? {
            Next::Text(call) => Frame::Text(call.text().clone()),
            Next::Part(part) => Frame::Binary(part.into()),
            Next::TakenBack(id) => HubToFoot::from(cancel(&CallId::from_bytes(id))).into(),
        })
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
        match call.flow() {
            Some(flow) => self.bulk.push(flow, call),
            None => self.small.push_back(Item::Call(call)),
        }
    }

    fn control_credit(&mut self, credit: Credit) {
        if !self.ended {
            self.control.push_back(HubToFoot::from(credit).into());
        }
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
mod tests;
