//! What a seated foot says.

mod mcp;
mod offers;
mod parts;

use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::CallId;
use footbridge_shared::limits::{MAX_BAD_FRAMES, MAX_FRAME_BYTES};
use footbridge_shared::message::{DecodeError, FootToHub, Output, Progress, UpcallCancel, WireError};
use footbridge_shared::text::clean_and_cut;

use super::Core;
use super::calls::Told;
use super::connection::Seat;
use super::frame::Frame;
use super::outbox::Outbox;
use super::pending::{Settled, settled_by_failure, settled_by_result};
use super::requests::unreadable;
use crate::domain::call::CallEvent;
use crate::domain::journal::Kept;
use crate::domain::mcp::rpc_error;

use offers::{Offered, read};
use parts::PartsOfConnection;

/// How much of a foot's own words gets into the log or an answer, in characters.
const MAX_SAID_CHARS: usize = 200;
/// Results that nobody waits for, of one connection, that get a line in the log; the others are only counted.
const MAX_LOGGED_ORPHANS: u32 = 100;

/// How many malformed frames are borne with, on one connection.
#[derive(Debug, Default)]
pub(super) struct Patience {
    bad_frames: u32,
}

impl Patience {
    /// Answers a malformed frame. `false`: that was one too many.
    pub(super) fn bear(&mut self, outbox: &Outbox, problem: String) -> bool {
        self.bad_frames += 1;
        // A parser quotes what it could not read.
        outbox.control(WireError { code: ErrorCode::BadFrame, message: said(&problem) });
        self.bad_frames < MAX_BAD_FRAMES
    }
}

/// The listening side of one connection.
pub(super) struct Inbound<'a> {
    core: &'a Arc<Core>,
    seat: &'a Seat,
    outbox: &'a Outbox,
    patience: Patience,
    orphans: u32,
    logged_tools: u32,
    parts: PartsOfConnection,
}

/// Whether a connection goes on after a frame.
#[derive(Debug)]
pub(super) enum Next {
    Goes,
    /// The foot leaves, for this reason.
    Bye(String),
    /// The foot closed the socket.
    Closed,
    BadFrames,
    /// The foot says what it offers; [`Inbound::offered`] takes it.
    Offers(Box<Offered>),
    /// The end of a call that nobody waits for; [`Inbound::late`] takes it.
    Late(Box<Late>),
}

/// A terminal message of a call that nobody waits for.
#[derive(Debug)]
pub(super) struct Late {
    call: CallId,
    settled: Settled,
    logged: bool,
}

impl<'a> Inbound<'a> {
    pub(super) fn new(core: &'a Arc<Core>, seat: &'a Seat, outbox: &'a Outbox) -> Self {
        let (patience, parts) = (Patience::default(), PartsOfConnection::default());
        Self { core, seat, outbox, patience, orphans: 0, logged_tools: 0, parts }
    }

    /// Takes one frame of a seated foot.
    pub(super) fn receive(&mut self, frame: Frame) -> Next {
        let taken = match frame {
            Frame::Text(frame) => match std::str::from_utf8(&frame) {
                Ok(text) if text.len() > MAX_FRAME_BYTES => Err(DecodeError::TooLarge(text.len()).to_string()),
                Ok(text) => match read(text) {
                    Ok(Ok(message)) => self.whole(text.len(), message),
                    Ok(Err(offered)) => Ok(Next::Offers(offered)),
                    Err(problem) => Err(problem),
                },
                Err(error) => Err(error.to_string()),
            },
            Frame::Binary(frame) => self.part(&frame),
            Frame::Heartbeat => Ok(Next::Goes),
            Frame::Close(_) => Ok(Next::Closed),
        };
        taken.unwrap_or_else(|problem| {
            self.core.totals.bad_frame();
            if self.patience.bear(self.outbox, problem) { Next::Goes } else { Next::BadFrames }
        })
    }

    /// Takes a message, however it came. The error says why it has no place here.
    fn heard(&mut self, message: FootToHub) -> Result<Next, String> {
        let Seat { foot, epoch, .. } = self.seat;
        match message {
            FootToHub::Result(result) => return Ok(self.ended(result.call.clone(), settled_by_result(result))),
            FootToHub::Failure(failure) => return Ok(self.ended(failure.call.clone(), settled_by_failure(failure))),
            FootToHub::Progress(Progress { call, progress, total, message }) => {
                let message = message.as_deref().map(said);
                foot.event(*epoch, &call, CallEvent::Progress { progress, total, message });
            }
            FootToHub::Output(Output { call, stream, data, skipped_bytes, .. }) => {
                let event = CallEvent::Output { stream, data, skipped_bytes: skipped_bytes.unwrap_or(0) };
                foot.event(*epoch, &call, event);
            }
            FootToHub::Tools(tools) => return Ok(Next::Offers(Offered::new(tools))),
            FootToHub::Ping(ping) => self.outbox.control(self.core.node.pong(&ping)),
            FootToHub::Upcall(upcall) => self.asked(upcall)?,
            FootToHub::UpcallCancel(UpcallCancel { call, id }) => foot.withdraw_question(*epoch, &call, &id),
            FootToHub::Response(response) => self.responded(response),
            FootToHub::Notify(notify) => self.notified(notify),
            FootToHub::Servers(servers) => self.serves(servers),
            FootToHub::Bye(bye) => return Ok(Next::Bye(said(&bye.reason))),
            FootToHub::Error(WireError { code, message }) => {
                tracing::warn!(foot = %foot.name, %code, message = said(&message), "a foot complains");
            }
            FootToHub::Credit(credit) => {
                if credit.bytes > 0 {
                    foot.takes_in(*epoch, &credit.call);
                }
                self.outbox.credit(&credit);
            }
            FootToHub::PartsFrom(wanted) => self.outbox.parts_from(&wanted),
            FootToHub::Unknown(kind) => self.core.totals.unknown_type(&kind),
            FootToHub::Pong(_) => {}
            FootToHub::Hello(_) => return Err("a second `hello`".to_owned()),
        }
        Ok(Next::Goes)
    }

    /// Takes a terminal message. It is acknowledged once its caller has it, that of a keyed call once it is stored.
    fn ended(&mut self, call: CallId, settled: Settled) -> Next {
        self.outbox.settled(&call);
        match self.seat.foot.settle(self.seat.epoch, &call, settled) {
            Ok(Told::Done) => self.outbox.ack(call),
            Ok(Told::ToBeStored) => {}
            Err(settled) => {
                // A foot may say so that a request cannot even be read.
                let answer =
                    settled.as_ref().map_or_else(|failure| Err(rpc_error(failure)), |_| Err(unreadable("it is none")));
                if self.seat.foot.responded(self.seat.epoch, &call, answer) {
                    self.outbox.ack(call);
                    return Next::Goes;
                }
                self.core.totals.orphan();
                self.orphans += 1;
                return Next::Late(Box::new(Late { call, settled, logged: self.orphans <= MAX_LOGGED_ORPHANS }));
            }
        }
        Next::Goes
    }

    /// Keeps the end of a keyed call whose caller is gone, and drops any other. Only this foot waits for that.
    pub(super) async fn late(&self, Late { call, settled, logged }: Late) {
        let foot = &self.seat.foot;
        match self.core.late.keep(&foot.scope, &foot.key, &call, settled).await {
            Kept::Stored => self.outbox.ack(call),
            Kept::Unwanted => {
                if logged {
                    tracing::info!(foot = %foot.name, %call, "a result came that nobody waits for; it was dropped");
                }
                self.outbox.ack(call);
            }
            // Not acknowledged, the foot brings it again.
            Kept::NotNow => {}
        }
    }
}

/// A foot's words, for the log and for an answer.
fn said(text: &str) -> String {
    clean_and_cut(text, MAX_SAID_CHARS)
}
