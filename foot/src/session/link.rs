//! One connection at work: the loop that reads, writes, keeps time and hands calls on. It never does any work itself.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::{CallId, Subject};
use footbridge_shared::limits::{
    BULK_BYTES, CLOSE_BAD_FRAMES, MAX_BAD_FRAMES, MAX_ENVELOPE_BYTES, MAX_FRAME_BYTES, MAX_RESULT_BYTES,
};
use footbridge_shared::message::{
    Bye, Call, FootToHub, HubToFoot, Ping, Pong, Request, Servers, ToolsAck, Welcome, WireError,
};
use footbridge_shared::part::Part;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::heartbeat::{Beat, Heartbeat};
use super::wire::{Incoming, Wire};
use crate::calls::{Known, refusal};
use crate::clock::{HubClock, millis};
use crate::connection::{Ended, Socket};
use crate::failure::{Failure, shown};
use crate::frame::Frame;
use crate::line::Line;
use crate::random;
use crate::servers::Infos;
use crate::tools::{Registered, Snapshot};

mod incoming;

/// Tools that the hub did not take which are told by name.
const MAX_NAMES_TOLD: usize = 5;
/// Close code of a clean leave.
pub(super) const CLOSE_NORMAL: u16 = 1000;
/// Smallest frame that a hub can restrict us to, in bytes: a failure fits.
const MIN_FRAME_BYTES: usize = 4 * 1024;
/// How long results may take to leave once there are no more to come.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How a connection was left.
pub(super) enum Left {
    /// As we were told to.
    Stopped,
    /// For a reason of its own.
    Ended(Ended),
}

/// One connection.
pub(super) struct Link<'a> {
    session: &'a mut Session,
    wire: Wire,
    tools: watch::Receiver<Snapshot>,
    servers: watch::Receiver<Infos>,
    owner: Subject,
    frame_bytes: usize,
    result_bytes: usize,
    heartbeat: Heartbeat,
    hub_clock: HubClock,
    bad_frames: u32,
    unknown_frames: u64,
    /// What the hub complained of last, if it has said nothing since.
    complaint: Option<WireError>,
    /// The hub goes down: when to leave it.
    leave_at: Option<Duration>,
    leaving: bool,
}

impl<'a> Link<'a> {
    pub(super) fn new(session: &'a mut Session, socket: Socket, welcome: Welcome) -> Self {
        let limit = usize::try_from(welcome.limits.frame_bytes).unwrap_or(MAX_FRAME_BYTES);
        Self {
            tools: session.tools.follow(),
            servers: session.servers.infos(),
            heartbeat: Heartbeat::new(&welcome.limits, session.clock.boot()),
            session,
            wire: Wire::new(socket),
            owner: welcome.owner,
            frame_bytes: limit.clamp(MIN_FRAME_BYTES, MAX_FRAME_BYTES),
            result_bytes: usize::try_from(welcome.limits.result_bytes).unwrap_or(MAX_RESULT_BYTES),
            hub_clock: HubClock::default(),
            bad_frames: 0,
            unknown_frames: 0,
            complaint: None,
            leave_at: None,
            leaving: false,
        }
    }

    /// Serves until the connection ends.
    pub(super) async fn serve(mut self, shutdown: &CancellationToken) -> Left {
        for wanted in self.session.unfinished.rejoin() {
            self.push(&wanted.into());
        }
        self.session.announcer.restart();
        self.session.calls.set_message_bytes(self.result_bytes.saturating_add(MAX_ENVELOPE_BYTES));
        self.session.calls.set_owner(self.owner.clone());
        self.wire.set_frame_bytes(self.frame_bytes);
        // Those that are gone meanwhile, too: a hub keeps what it knows until it is told.
        if self.session.told_servers || !self.servers.borrow().is_empty() {
            self.tell_servers();
        }
        self.announce();
        // What the hub has not acknowledged: a connection may have ended between result and `ack`.
        let line = self.session.servers.line().clone();
        let unacked = self.session.calls.unacked();
        self.push_all(unacked);
        loop {
            if let Some(ended) = self.tick() {
                return self.part(ended).await;
            }
            let pause = self.pause();
            let room = self.wire.has_room();
            tokio::select! {
                () = shutdown.cancelled() => return self.leave().await,
                incoming = self.wire.turn() => {
                    if let Some(ended) = self.take(incoming) {
                        return self.part(ended).await;
                    }
                }
                event = self.session.calls.next(), if room => {
                    // What was said during a call is of no use to anybody after its end.
                    self.pass_on(&line);
                    let frames = self.session.calls.settle(event);
                    self.push_all(frames);
                }
                Ok(()) = self.tools.changed() => self.announce(),
                Ok(()) = self.servers.changed() => self.tell_servers(),
                () = line.news(), if room => self.pass_on(&line),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// What time brings: heartbeats, limits of calls, the end of a silent connection.
    fn tick(&mut self) -> Option<Ended> {
        let now = self.session.clock.boot();
        match self.heartbeat.beat(now, random::unit) {
            Beat::Wait(_) => {}
            Beat::Ping => self.push(&Ping { sent_ms: millis(now) }.into()),
            Beat::Gone => return Some(Ended::lost("the hub is silent")),
        }
        if self.wire.is_stuck() {
            return Some(Ended::lost("the hub does not read"));
        }
        let frames = self.session.calls.tick();
        self.push_all(frames);
        let leaves = self.leave_at.is_some_and(|at| now >= at) && self.session.calls.is_settled();
        leaves.then(|| Ended::lost("the hub goes down"))
    }

    /// How long until [`Self::tick`] is due.
    fn pause(&mut self) -> Duration {
        let calls = self.session.calls.next_tick();
        match self.heartbeat.beat(self.session.clock.boot(), random::unit) {
            Beat::Wait(wait) => wait.min(calls),
            // Between tick and here the time has come.
            Beat::Ping => {
                self.push(&Ping { sent_ms: millis(self.session.clock.boot()) }.into());
                Duration::ZERO
            }
            Beat::Gone => Duration::ZERO,
        }
    }

    fn take(&mut self, incoming: Incoming) -> Option<Ended> {
        let name = self.session.config.name.as_str();
        match incoming {
            Incoming::Text(text) => {
                self.heartbeat.heard(self.session.clock.boot());
                match HubToFoot::decode_frame(&text) {
                    Ok(message) => self.heard(message, text.len()),
                    Err(error) => self.bad_frame(&error.to_string()),
                }
            }
            Incoming::Binary(frame) => {
                self.heartbeat.heard(self.session.clock.boot());
                match Part::decode(&frame) {
                    Ok(part) => self.take_part(&part, frame.len()),
                    Err(error) => self.bad_frame(&error.to_string()),
                }
            }
            Incoming::Life => {
                self.heartbeat.heard(self.session.clock.boot());
                None
            }
            Incoming::Closed(frame) => Some(Ended::closed(frame.as_ref(), self.complaint.as_ref(), name)),
            Incoming::Broken(_) if self.complaint.is_some() => Some(Ended::closed(None, self.complaint.as_ref(), name)),
            Incoming::Broken(why) => Some(Ended::lost(format!("the connection broke: {why}"))),
        }
    }

    /// Takes a message that came in one text frame, and returns it if it is bulk.
    fn heard(&mut self, message: HubToFoot, bytes: usize) -> Option<Ended> {
        if !matches!(message, HubToFoot::PartsFrom(_)) {
            self.wire.open();
        }
        if bytes >= BULK_BYTES
            && let Some(id) = message.call().and_then(CallId::to_bytes)
        {
            self.wire.took(id, bytes);
        }
        self.handle(message)
    }

    fn handle(&mut self, message: HubToFoot) -> Option<Ended> {
        let now = self.session.clock.boot();
        self.complaint = None;
        match message {
            HubToFoot::Call(call) => self.call(call, now),
            HubToFoot::Cancel(cancel) => {
                tracing::debug!(call = %cancel.call, reason = shown(&cancel.reason), "cancel");
                let answer = self.session.calls.cancel(&cancel);
                self.push_all(answer);
                self.session.servers.cancel(&cancel.call);
                self.forget_parts(&cancel.call);
            }
            HubToFoot::Ack(ack) => {
                self.session.backoff.was_of_use();
                self.session.calls.acked(&ack.call);
                self.wire.settled(&ack.call);
            }
            HubToFoot::Credit(credit) => self.wire.credit(&credit),
            HubToFoot::PartsFrom(wanted) => self.wire.parts_from(&wanted),
            HubToFoot::Ping(ping) => self.push(&Pong { echo_ms: ping.sent_ms, sent_ms: millis(now) }.into()),
            HubToFoot::Pong(pong) => self.hub_clock.heard(pong.echo_ms, pong.sent_ms, now),
            HubToFoot::ToolsAck(ack) => report(&ack),
            HubToFoot::Request(request) => self.request(request, now),
            HubToFoot::UpcallResult(result) => self.session.servers.line().answered(result),
            HubToFoot::Draining(draining) => {
                let wait = Duration::from_millis(draining.reconnect_after_ms);
                // The hub spreads its feet: it tells each of them something else.
                self.leave_at = Some(now + wait);
                tracing::info!(wait_ms = wait.as_millis(), "the hub goes down and wants us back");
            }
            HubToFoot::Superseded(_) => return Some(Ended::Superseded),
            HubToFoot::Error(error) => {
                tracing::warn!(code = %error.code, message = shown(&error.message), "the hub complains");
                self.complaint = Some(error);
            }
            HubToFoot::Unknown(kind) => {
                self.unknown_frames += 1;
                tracing::debug!(kind = shown(&kind), count = self.unknown_frames, "a type of message we do not know");
            }
            // Answers to what this foot never asks for, and a handshake that is over.
            HubToFoot::Challenge(_) | HubToFoot::Welcome(_) => {
                tracing::debug!("a message that is not awaited")
            }
        }
        None
    }

    fn call(&mut self, call: Call, now: Duration) {
        let answer = match self.session.calls.known(&call) {
            Known::UnderWay => None,
            Known::Answered(frame) => Some(frame),
            Known::New => match self.admit(&call, now) {
                Ok((tool, left)) => self.session.calls.admit(call, tool, left),
                Err(failure) => Some(refusal(&call, failure)),
            },
        };
        self.push_all(answer);
    }

    /// The tool, and how long it may take, if this foot works for the caller.
    fn admit(&self, call: &Call, now: Duration) -> Result<(Arc<Registered>, Duration), Failure> {
        if self.leaving {
            return Err(Failure::not_run(ErrorCode::FootUnavailable, "the foot is about to leave"));
        }
        // The hub checks this, too. For others the tools do not exist.
        let caller = &call.caller.subject;
        if !self.session.config.share.admits(&self.owner, caller) {
            tracing::warn!(call = %call.call, %caller, tool = shown(&call.tool), "refused a caller we are not shared with");
            return Err(Failure::unknown_tool(&call.tool));
        }
        let tool = self.session.tools.get(&call.tool).ok_or_else(|| Failure::unknown_tool(&call.tool))?;
        let left = Duration::from_millis(call.deadline_ms).saturating_sub(self.hub_clock.delay(call.sent_ms, now));
        Ok((tool, left))
    }

    /// Hands a request to the server that it is for: nothing waits for its answer here.
    fn request(&mut self, request: Request, now: Duration) {
        let caller = &request.caller.subject;
        if self.leaving || !self.session.config.share.admits(&self.owner, caller) {
            tracing::warn!(call = %request.call, %caller, server = shown(&request.server), "refused a request");
            return self.session.servers.refuse(request);
        }
        let delay = self.hub_clock.delay(request.sent_ms, now);
        let left = Duration::from_millis(request.deadline_ms).saturating_sub(delay);
        let by_owner = *caller == self.owner;
        self.session.servers.request(request, left, by_owner);
    }

    /// What local servers say, and answers to requests.
    fn pass_on(&mut self, line: &Line) {
        for message in line.take() {
            self.push(&message);
        }
    }

    fn tell_servers(&mut self) {
        let servers = self.servers.borrow_and_update().values().cloned().collect();
        self.session.told_servers = true;
        self.push(&Servers { servers }.into());
    }

    fn bad_frame(&mut self, message: &str) -> Option<Ended> {
        self.bad_frames += 1;
        tracing::warn!(message = shown(message), count = self.bad_frames, "a frame from the hub cannot be read");
        let error = WireError { code: ErrorCode::BadFrame, message: shown(message) };
        self.push(&error.into());
        (self.bad_frames >= MAX_BAD_FRAMES).then(|| Ended::lost("the hub does not speak our protocol"))
    }

    fn announce(&mut self) {
        let tools = self.tools.borrow_and_update().clone();
        for message in self.session.announcer.catch_up(&tools, self.frame_bytes) {
            tracing::debug!(revision = message.revision, upsert = message.upsert.len(), "tools");
            self.push(&message.into());
        }
    }

    fn push(&mut self, message: &FootToHub) {
        self.wire.push(Frame::new(message));
    }

    fn push_all(&mut self, frames: impl IntoIterator<Item = Frame>) {
        frames.into_iter().for_each(|frame| self.wire.push(frame));
    }

    /// Leaves a connection that is to end.
    async fn part(self, ended: Ended) -> Left {
        let now = self.session.clock.boot();
        if self.bad_frames >= MAX_BAD_FRAMES {
            self.wire.close(CLOSE_BAD_FRAMES, "malformed frames").await;
        } else if self.leave_at.is_some() {
            self.wire.close(CLOSE_NORMAL, "draining").await;
        }
        Left::Ended(match (ended, self.leave_at) {
            (Ended::Lost { why, .. }, Some(at)) => Ended::Lost { why, wait: Some(at.saturating_sub(now)) },
            (ended, _) => ended,
        })
    }

    /// Says good-bye: stops all calls, answers them, and closes.
    async fn leave(mut self) -> Left {
        self.leaving = true;
        let line = self.session.servers.line().clone();
        let stopped = self.session.calls.stop_all();
        self.push_all(stopped);
        let mut drained_by = None;
        while !self.session.calls.is_idle() || !self.wire.is_drained() {
            let now = self.session.clock.boot();
            if self.session.calls.is_idle() && now >= *drained_by.get_or_insert(now + DRAIN_TIMEOUT) {
                tracing::warn!("the hub did not take all results before we left");
                break;
            }
            let pause = self.session.calls.next_tick();
            tokio::select! {
                incoming = self.wire.turn() => {
                    if self.take(incoming).is_some() {
                        return Left::Stopped;
                    }
                }
                () = line.news() => self.pass_on(&line),
                event = self.session.calls.next() => {
                    self.pass_on(&line);
                    let frames = self.session.calls.settle(event);
                    self.push_all(frames);
                }
                () = tokio::time::sleep(pause) => {
                    let frames = self.session.calls.tick();
                    self.push_all(frames);
                }
            }
        }
        self.push(&Bye { reason: "stopped".to_owned() }.into());
        self.wire.close(CLOSE_NORMAL, "bye").await;
        Left::Stopped
    }
}

/// Tools that the hub did not take are still offered here, and somebody should know why nobody calls them.
fn report(ack: &ToolsAck) {
    let Some(first) = ack.rejected.first() else { return };
    let names: Vec<String> = ack.rejected.iter().take(MAX_NAMES_TOLD).map(|rejected| shown(&rejected.tool)).collect();
    let (count, tools, message) = (ack.rejected.len(), names.join(", "), shown(&first.message));
    tracing::warn!(count, tools, code = %first.code, message, "the hub did not take some tools; the first ones, and why");
}
