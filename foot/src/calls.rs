//! The calls of a foot: each runs at most once, answers once, and ends in time.
//!
//! Calls outlive connections. What runs goes on while the hub is away, and what is done is kept in memory until the hub
//! says that it has it. That a call was here, and how it ended, outlives the process as well: see [`crate::journal`].

mod kept;
mod live;
mod refusal;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::{CallId, Subject};
use footbridge_shared::limits::{MAX_MESSAGE_BYTES, MAX_RESULT_BYTES};
use footbridge_shared::message::{Call, CallResult, Cancel, FootToHub, InFlight, InFlightState};
use footbridge_shared::{ErrorCode, Outcome};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};

use crate::clock::SharedClock;
use crate::failure::Failure;
use crate::frame::{Frame, too_large};
use crate::journal::{self, Entry, Journal};
use crate::line::Line;
use crate::tools::context::Sign;
use crate::tools::{Registered, ToolOutput};
use kept::{Done, Kept};
pub(crate) use live::End;
use live::{Live, Stage, Stop};
pub(crate) use refusal::refusal;
use refusal::{busy, differ, id_conflict};

/// Signs of life that wait to be told.
const PROGRESS_QUEUE: usize = 256;

/// Longest time between two looks at the clock: it may have jumped with a suspend.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// How many calls there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    /// Running at once.
    pub(crate) running: usize,
    /// Waiting for others to end.
    pub(crate) queued: usize,
}

/// What is known of a call that comes in.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing.
    New,
    /// It is under way and will answer by itself.
    UnderWay,
    /// Its answer.
    Answered(Frame),
}

/// Something that happened to a call.
#[derive(Debug)]
pub(crate) enum Event {
    /// A sign of life.
    Sign(Sign),
    /// The work ended.
    Ended(Id, Result<End, JoinError>),
}

/// All calls that the foot knows of.
#[derive(Debug)]
pub(crate) struct Calls {
    capacity: Capacity,
    clock: SharedClock,
    message_bytes: usize,
    /// The way to the clients that calls came through.
    line: Line,
    /// Whose foot this is, once a hub said so.
    owner: Option<Subject>,
    live: HashMap<CallId, Live>,
    queue: VecDeque<CallId>,
    tasks: JoinSet<End>,
    task_calls: HashMap<Id, CallId>,
    kept: Kept,
    journal: Journal,
    told: (mpsc::Sender<Sign>, mpsc::Receiver<Sign>),
    /// When some limit may be reached next; never later than the truth.
    next_limit: Duration,
}

impl Calls {
    /// `before` is what the journal says of calls of other processes.
    pub(crate) fn new(capacity: Capacity, clock: SharedClock, journal: Journal, before: Vec<(CallId, Entry)>) -> Self {
        let mut kept = Kept::default();
        for (call, entry) in before {
            kept.keep_before(call, Done::before(entry));
        }
        Self {
            capacity,
            clock,
            message_bytes: MAX_MESSAGE_BYTES,
            line: Line::default(),
            owner: None,
            live: HashMap::new(),
            queue: VecDeque::new(),
            tasks: JoinSet::new(),
            task_calls: HashMap::new(),
            kept,
            journal,
            told: mpsc::channel(PROGRESS_QUEUE),
            next_limit: Duration::MAX,
        }
    }

    /// What the hub accepts as one message.
    pub(crate) fn set_message_bytes(&mut self, bytes: usize) {
        self.message_bytes = bytes.min(MAX_MESSAGE_BYTES);
    }

    /// With a way to the clients that calls came through.
    #[must_use]
    pub(crate) fn over(self, line: Line) -> Self {
        Self { line, ..self }
    }

    /// Whose foot this is.
    pub(crate) fn set_owner(&mut self, owner: Subject) {
        self.owner = Some(owner);
    }

    /// Whether a call was here before. Ask first: a call that is known is never run again.
    pub(crate) fn known(&mut self, call: &Call) -> Known {
        let now = self.clock.boot();
        if let Some(live) = self.live.get_mut(&call.call) {
            if differ(live.digest.as_deref(), call.digest.as_deref()) {
                return Known::Answered(refusal(call, id_conflict()));
            }
            // It comes from where the session goes on: that is where the answer belongs.
            live.origin.clone_from(&call.origin);
            return Known::UnderWay;
        }
        if let Some(done) = self.kept.get_mut(&call.call) {
            if differ(done.digest.as_deref(), call.digest.as_deref()) {
                return Known::Answered(refusal(call, id_conflict()));
            }
            return Known::Answered(done.answer_to(call, self.message_bytes));
        }
        if self.kept.was_cancelled(&call.call, now) {
            let failure = Failure::not_run(ErrorCode::Cancelled, "the call was cancelled before it started");
            return Known::Answered(refusal(call, failure));
        }
        Known::New
    }

    /// Starts or queues a call that is new and may take `left`. A frame is its answer at once: it does not run.
    pub(crate) fn admit(&mut self, call: Call, tool: Arc<Registered>, left: Duration) -> Option<Frame> {
        let now = self.clock.boot();
        if left.is_zero() {
            let failure = Failure::not_run(ErrorCode::DeadlineExceeded, "the call arrived after its deadline");
            return Some(refusal(&call, failure));
        }
        let must_wait = self.tasks.len() >= self.capacity.running;
        if self.kept.is_full_of_results() || (must_wait && self.queue.len() >= self.capacity.queued) {
            return Some(refusal(&call, busy()));
        }
        // What changes nothing need not be remembered.
        if self.kept.is_full() && !tool.tool.is_read_only() {
            return Some(refusal(&call, journal::full()));
        }
        let id = call.call.clone();
        let live = Live::queued(call, tool, now + left);
        self.next_limit = self.next_limit.min(live.next_limit(now));
        self.live.insert(id.clone(), live);
        self.queue.push_back(id);
        self.start_queued();
        None
    }

    /// Stops a call. A frame is its answer at once; else it answers when the work has ended.
    pub(crate) fn cancel(&mut self, cancel: &Cancel) -> Option<Frame> {
        let now = self.clock.boot();
        if let Some(done) = self.kept.get_mut(&cancel.call) {
            return Some(done.answer(&cancel.call, self.message_bytes));
        }
        if !self.live.contains_key(&cancel.call) {
            // The cancel overtook its call. Should that come yet, it does not run.
            self.kept.cancelled(cancel.call.clone(), now);
        }
        self.stop(&cancel.call, Stop::Cancelled, now)
    }

    /// The hub has the result: its payload may go.
    pub(crate) fn acked(&mut self, call: &CallId) {
        if self.kept.acked(call) {
            self.journal.acked(call.clone());
        }
    }

    /// Waits for something to happen. Losing this future loses nothing.
    pub(crate) async fn next(&mut self) -> Event {
        tokio::select! {
            biased;
            Some(sign) = self.told.1.recv() => Event::Sign(sign),
            Some(ended) = self.tasks.join_next_with_id() => match ended {
                Ok((id, result)) => Event::Ended(id, Ok(result)),
                Err(error) => Event::Ended(error.id(), Err(error)),
            },
            else => std::future::pending().await,
        }
    }

    /// Takes in what happened; the frames are to be sent, and for a hub that is away they are kept where it matters.
    pub(crate) fn settle(&mut self, event: Event) -> Vec<Frame> {
        let mut frames = Vec::new();
        match event {
            Event::Sign(sign) => frames.extend(self.tell(sign)),
            Event::Ended(id, result) => {
                // What the work said before it ended goes before its answer.
                while let Ok(sign) = self.told.1.try_recv() {
                    frames.extend(self.tell(sign));
                }
                frames.extend(self.ended(id, result));
                self.start_queued();
            }
        }
        frames
    }

    fn tell(&self, sign: Sign) -> Option<Frame> {
        self.live.contains_key(sign.call()).then(|| Frame::new(&sign.into()))
    }

    fn ended(&mut self, id: Id, end: Result<End, JoinError>) -> Option<Frame> {
        let call = self.task_calls.remove(&id)?;
        if !self.live.get(&call).is_some_and(|live| live.runs_as(id)) {
            tracing::debug!(%call, "a call that was given up has ended; its result is dropped");
            return None;
        }
        let live = self.live.remove(&call)?;
        let result = match end {
            Ok(End::Here(result)) => result,
            Ok(End::Before(entry)) => return Some(self.was_begun_before(call, &live, entry)),
            Err(broken) => Err(Failure::new(ErrorCode::Internal, Outcome::Unknown, "the tool broke off").cause(broken)),
        };
        let result = live.verdict(result);
        Some(self.answer(&call, live, result))
    }

    /// Answers a call that another process of this foot began; from now on that is known here.
    fn was_begun_before(&mut self, call: CallId, live: &Live, entry: Entry) -> Frame {
        tracing::warn!(%call, tool = live.tool, "another process of this foot began this call: it does not run again");
        let answer = if differ(entry.digest.as_deref(), live.digest.as_deref()) {
            Frame::new(&id_conflict().into_message(call.clone(), live.origin.clone()).into())
        } else {
            Done::before(Entry { origin: live.origin.clone(), ..entry.clone() }).answer(&call, self.message_bytes)
        };
        self.kept.keep_before(call, Done::before(entry));
        answer
    }

    /// Makes the one terminal message of a call, and keeps it if it ran.
    fn answer(&mut self, call: &CallId, live: Live, result: Result<ToolOutput, Failure>) -> Frame {
        if let Err(Failure { cause: Some(cause), code, .. }) = &result {
            tracing::warn!(%call, tool = live.tool, %code, cause, "call failed");
        }
        let outcome = result.as_ref().map_or_else(|failure| failure.outcome, |_| Outcome::Completed);
        let message = match result {
            Ok(ToolOutput { content, structured, is_error, meta, extra }) => {
                let origin = live.origin.clone();
                CallResult { call: call.clone(), origin, content, structured, is_error, meta, extra }.into()
            }
            Err(failure) => FootToHub::from(failure.into_message(call.clone(), live.origin.clone())),
        };
        let mut done = Done::new(message, outcome, &live, self.clock.boot());
        if let Some(ticket) = live.began() {
            self.journal.ended(call.clone(), ticket, outcome, done.forget_at);
        }
        let frame = done.answer(call, self.message_bytes);
        // A call that did not run may be sent again, and then runs: there is nothing to remember.
        if outcome != Outcome::NotRun {
            self.kept.keep(call.clone(), done, frame.text.len());
        }
        frame
    }

    /// Looks at the clock: ends what is over its limits.
    pub(crate) fn tick(&mut self) -> Vec<Frame> {
        let now = self.clock.boot();
        self.kept.sweep(now);
        if now < self.next_limit {
            return Vec::new();
        }
        let over: Vec<(CallId, Stop)> =
            self.live.iter().filter_map(|(call, live)| Some((call.clone(), live.over(now)?))).collect();
        let frames = over.into_iter().filter_map(|(call, why)| self.stop(&call, why, now)).collect();
        self.next_limit = self.live.values().map(|live| live.next_limit(now)).min().unwrap_or(Duration::MAX);
        frames
    }

    /// Stops a live call: at once if it only waits, else by asking the work to end, and after a while without it.
    fn stop(&mut self, call: &CallId, why: Stop, now: Duration) -> Option<Frame> {
        let live = self.live.get_mut(call)?;
        if let Stage::Running(running) = &mut live.stage {
            let until = running.stop(why, now);
            if now < until {
                self.next_limit = self.next_limit.min(until);
                return None;
            }
            tracing::warn!(%call, tool = live.tool, "the work did not end in time; answering without it");
        } else {
            self.queue.retain(|queued| queued != call);
        }
        let live = self.live.remove(call)?;
        let result = Err(live.unfinished(why));
        Some(self.answer(call, live, result))
    }

    /// How long until [`Self::tick`] is due.
    pub(crate) fn next_tick(&self) -> Duration {
        self.next_limit.saturating_sub(self.clock.boot()).min(TICK)
    }

    /// Gives up what has not begun to work: the hub was away for longer than anybody waits for it.
    pub(crate) fn drop_waiting(&mut self) {
        let now = self.clock.boot();
        for call in std::mem::take(&mut self.queue) {
            tracing::info!(%call, "dropped a waiting call: the hub was away for too long");
            self.live.remove(&call);
        }
        self.live.values_mut().for_each(|live| live.give_up(now));
        self.next_limit = self.live.values().map(|live| live.next_limit(now)).min().unwrap_or(Duration::MAX);
    }

    /// Returns when the journal is safe on disk, as far as it can be.
    pub(crate) async fn flush(&self) {
        self.journal.flush().await;
    }

    /// Stops everything. The frames answer what only waited; what runs answers as it ends.
    pub(crate) fn stop_all(&mut self) -> Vec<Frame> {
        let now = self.clock.boot();
        let all: Vec<CallId> = self.live.keys().cloned().collect();
        all.iter().filter_map(|call| self.stop(call, Stop::Leaving, now)).collect()
    }

    /// Whether nothing runs or waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether, on top of that, the hub has every answer.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_idle() && !self.kept.has_unacked()
    }

    /// All that the hub should know of, most important first.
    pub(crate) fn in_flight(&self) -> Vec<InFlight> {
        let in_state = |wanted: InFlightState| {
            self.live.iter().filter(move |(_, live)| live.state() == wanted).map(move |(call, live)| InFlight {
                call: call.clone(),
                digest: live.digest.clone(),
                state: wanted,
                origin: live.origin.clone(),
            })
        };
        // The hub sends again what it is not told of. What runs or is done is worth most then; what only waits can as well
        // be sent again.
        in_state(InFlightState::Running)
            .chain(in_state(InFlightState::Asking))
            .chain(self.kept.in_flight())
            .chain(in_state(InFlightState::Queued))
            .collect()
    }

    /// The answers that the hub has not acknowledged, oldest first.
    pub(crate) fn unacked(&mut self) -> Vec<Frame> {
        self.kept.unacked(self.message_bytes)
    }

    fn start_queued(&mut self) {
        while self.tasks.len() < self.capacity.running
            && let Some(call) = self.queue.pop_front()
        {
            if let Some(live) = self.live.get_mut(&call)
                && let Some(work) =
                    live.start(&call, &self.clock, &self.told.0, &self.journal, (&self.line, self.owner.as_ref()))
            {
                let id = self.tasks.spawn(bounded(work)).id();
                live.set_task(id);
                self.task_calls.insert(id, call);
            }
        }
    }
}

/// A result that is larger than any may be is refused where it is made.
async fn bounded(work: impl Future<Output = End>) -> End {
    match work.await {
        End::Here(Ok(output)) if output.wire_bytes() > MAX_RESULT_BYTES => {
            End::Here(Err(too_large(output.wire_bytes())))
        }
        end => end,
    }
}

#[cfg(test)]
mod tests;
