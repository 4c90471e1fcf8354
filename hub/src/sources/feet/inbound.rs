//! What a seated foot says.

mod parts;

use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::{CallId, FootName, ToolName};
use footbridge_shared::limits::{MAX_BAD_FRAMES, MAX_FRAME_BYTES};
use footbridge_shared::message::{
    DecodeError, FootToHub, Output, Progress, RejectedTool, Tools, ToolsAck, Upcall, UpcallResult, WireError,
};
use footbridge_shared::text::clean_and_cut;
use serde_json::value::to_raw_value;

use super::Core;
use super::calls::Told;
use super::connection::Seat;
use super::frame::Frame;
use super::intake::Checked;
use super::outbox::Outbox;
use super::pending::{Settled, settled_by_failure, settled_by_result};
use crate::domain::call::CallEvent;
use crate::domain::journal::Kept;

pub(super) use parts::go_on;

/// JSON-RPC: there is no such method here.
const METHOD_NOT_FOUND: i32 = -32601;
/// The MCP question whose answer has a word for no.
const ELICITATION: &str = "elicitation/create";

/// How much of a foot's own words gets into the log or an answer, in characters.
const MAX_SAID_CHARS: usize = 200;
/// Lines that the log gets about one connection's tools; what is wrong beyond that only the foot is told.
const MAX_LOGGED_TOOLS: u32 = 20;
/// Results that nobody waits for, of one connection, that get a line in the log; the others are only counted.
const MAX_LOGGED_ORPHANS: u32 = 100;

/// How much of what a foot should not send is borne with, on one connection.
#[derive(Debug, Default)]
pub(super) struct Patience {
    bad_frames: u32,
    orphans: u32,
    logged_tools: u32,
    parts: parts::PartsOfConnection,
}

impl Patience {
    /// Whether the log gets another line about this connection's tools.
    fn logs_tools(&mut self) -> bool {
        self.logged_tools += 1;
        self.logged_tools <= MAX_LOGGED_TOOLS
    }

    /// Notes what was wrong with a `tools` message: a line for each of the first tools whose texts were cleaned, and one
    /// for all that were rejected.
    fn note(&mut self, foot: &FootName, cleaned: &[(ToolName, usize)], rejected: &[RejectedTool]) {
        for (tool, removed) in cleaned {
            if !self.logs_tools() {
                break;
            }
            tracing::warn!(%foot, %tool, removed, "hidden characters were removed from the texts of a tool");
        }
        if let Some(first) = rejected.first()
            && self.logs_tools()
        {
            let RejectedTool { tool, code, message } = first;
            tracing::info!(%foot, tool, %code, reason = message, rejected = rejected.len(), "tools were rejected");
        }
    }

    /// Answers a malformed frame. `false`: that was one too many.
    pub(super) fn bear(&mut self, outbox: &Outbox, problem: String) -> bool {
        self.bad_frames += 1;
        // A parser quotes what it could not read.
        outbox.control(WireError { code: ErrorCode::BadFrame, message: said(&problem) });
        self.bad_frames < MAX_BAD_FRAMES
    }
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
    /// The foot says what it offers; [`offered`] takes it.
    Offers(Box<Offered>),
    /// The end of a call that nobody waits for; [`late`] takes it.
    Late(Box<Late>),
}

/// A `tools` message, and its entries that could not even be read.
#[derive(Debug)]
pub(super) struct Offered {
    tools: Tools,
    rejected: Vec<RejectedTool>,
}

/// Takes one frame of a seated foot.
pub(super) fn receive(core: &Core, seat: &Seat, outbox: &Outbox, patience: &mut Patience, frame: Frame) -> Next {
    let taken = match frame {
        Frame::Text(frame) => match std::str::from_utf8(&frame) {
            Ok(text) if text.len() > MAX_FRAME_BYTES => Err(DecodeError::TooLarge(text.len()).to_string()),
            Ok(text) => match read(text) {
                Ok(Ok(message)) => parts::whole(core, seat, outbox, patience, text.len(), message),
                Ok(Err(offered)) => Ok(Next::Offers(offered)),
                Err(problem) => Err(problem),
            },
            Err(error) => Err(error.to_string()),
        },
        Frame::Binary(frame) => parts::part(core, seat, outbox, patience, &frame),
        Frame::Heartbeat => Ok(Next::Goes),
        Frame::Close(_) => Ok(Next::Closed),
    };
    taken.unwrap_or_else(|problem| {
        core.totals.bad_frame();
        if patience.bear(outbox, problem) { Next::Goes } else { Next::BadFrames }
    })
}

/// Reads a message. What a foot offers can be read entry by entry, if not as a whole.
fn read(text: &str) -> Result<Result<FootToHub, Box<Offered>>, String> {
    FootToHub::decode(text).map(Ok).or_else(|error| match Tools::decode_each(text) {
        Some((tools, rejected)) => Ok(Err(Box::new(Offered { tools, rejected }))),
        None => Err(error.to_string()),
    })
}

fn offers(tools: Tools) -> Next {
    Next::Offers(Box::new(Offered { tools, rejected: Vec::new() }))
}

fn heard(
    core: &Core,
    seat: &Seat,
    outbox: &Outbox,
    patience: &mut Patience,
    message: FootToHub,
) -> Result<Next, String> {
    match message {
        FootToHub::Result(result) => {
            let call = result.call.clone();
            return Ok(ended(core, seat, outbox, patience, call, settled_by_result(result)));
        }
        FootToHub::Failure(failure) => {
            let call = failure.call.clone();
            return Ok(ended(core, seat, outbox, patience, call, settled_by_failure(failure)));
        }
        FootToHub::Progress(Progress { call, progress, total, message }) => {
            let message = message.as_deref().map(said);
            seat.foot.event(seat.epoch, &call, CallEvent::Progress { progress, total, message });
        }
        FootToHub::Output(Output { call, stream, data, skipped_bytes, .. }) => {
            let event = CallEvent::Output { stream, data, skipped_bytes: skipped_bytes.unwrap_or(0) };
            seat.foot.event(seat.epoch, &call, event);
        }
        FootToHub::Tools(tools) => return Ok(offers(tools)),
        FootToHub::Ping(ping) => outbox.control(core.node.pong(&ping)),
        FootToHub::Upcall(upcall) => outbox.answer(declined(upcall)),
        FootToHub::Bye(bye) => return Ok(Next::Bye(said(&bye.reason))),
        FootToHub::Error(WireError { code, message }) => {
            tracing::warn!(foot = %seat.foot.name, %code, message = said(&message), "a foot complains");
        }
        FootToHub::Credit(credit) => {
            if credit.bytes > 0 {
                seat.foot.takes_in(seat.epoch, &credit.call);
            }
            outbox.credit(&credit);
        }
        FootToHub::PartsFrom(wanted) => outbox.parts_from(&wanted),
        FootToHub::Unknown(kind) => core.totals.unknown_type(&kind),
        // Answers to what this hub does not ask yet, and signs of life.
        FootToHub::Pong(_)
        | FootToHub::UpcallCancel(_)
        | FootToHub::Response(_)
        | FootToHub::Notify(_)
        | FootToHub::Servers(_) => {}
        FootToHub::Hello(_) => return Err("a second `hello`".to_owned()),
    }
    Ok(Next::Goes)
}

/// Takes a terminal message. It is acknowledged once its caller has it, that of a keyed call once it is stored.
fn ended(core: &Core, seat: &Seat, outbox: &Outbox, patience: &mut Patience, call: CallId, settled: Settled) -> Next {
    outbox.settled(&call);
    match seat.foot.settle(seat.epoch, &call, settled) {
        Ok(Told::Done) => outbox.ack(call),
        Ok(Told::ToBeStored) => {}
        Err(settled) => {
            core.totals.orphan();
            patience.orphans += 1;
            return Next::Late(Box::new(Late { call, settled, logged: patience.orphans <= MAX_LOGGED_ORPHANS }));
        }
    }
    Next::Goes
}

/// A terminal message of a call that nobody waits for.
#[derive(Debug)]
pub(super) struct Late {
    call: CallId,
    settled: Settled,
    logged: bool,
}

/// Keeps the end of a keyed call whose caller is gone, and drops any other. Only this foot waits for that.
pub(super) async fn late(core: &Core, seat: &Seat, outbox: &Outbox, Late { call, settled, logged }: Late) {
    match core.late.keep(&seat.foot.scope, &seat.foot.key, &call, settled).await {
        Kept::Stored => outbox.ack(call),
        Kept::Unwanted => {
            if logged {
                tracing::info!(foot = %seat.foot.name, %call, "a result came that nobody waits for; it was dropped");
            }
            outbox.ack(call);
        }
        // Not acknowledged, the foot brings it again.
        Kept::NotNow => {}
    }
}

/// Takes what a foot offers. To compile foreign schemas may take a while: that happens off the tasks of connections, and
/// only this foot waits for it.
pub(super) async fn offered(core: &Arc<Core>, seat: &Seat, outbox: &Outbox, patience: &mut Patience, offered: Offered) {
    let Offered { tools, rejected } = offered;
    let revision = tools.revision;
    if !seat.foot.awaits(seat.epoch, revision) {
        tracing::debug!(foot = %seat.foot.name, revision, "a change of tools is not news");
        outbox.answer(ToolsAck { revision, rejected: Vec::new() });
        return;
    }
    let checking = {
        let core = core.clone();
        tokio::task::spawn_blocking(move || core.intake.check(tools, rejected))
    };
    let checked = match checking.await {
        Ok(checked) => checked,
        Err(error) => {
            tracing::error!(foot = %seat.foot.name, %error, "the tools of a foot could not be checked");
            let message = "the tools could not be checked";
            return outbox.control(WireError { code: ErrorCode::Internal, message: message.to_owned() });
        }
    };
    patience.note(&seat.foot.name, &checked.cleaned, &checked.rejected);
    let applied = seat.foot.apply(seat.epoch, revision, checked);
    if applied.changed {
        seat.roster.tools_changed();
    }
    outbox.answer(ToolsAck { revision, rejected: Checked::answer(applied.rejected) });
}

/// A foot's words, for the log and for an answer.
fn said(text: &str) -> String {
    clean_and_cut(text, MAX_SAID_CHARS)
}

/// No client that could be asked is known here: the local server gets its no at once.
fn declined(upcall: Upcall) -> UpcallResult {
    let Upcall { call, id, method, .. } = upcall;
    let (result, error) = if method == ELICITATION {
        (to_raw_value(&serde_json::json!({ "action": "decline" })).ok(), None)
    } else {
        let error = serde_json::json!({ "code": METHOD_NOT_FOUND, "message": "no client of this call can answer" });
        (None, to_raw_value(&error).ok())
    };
    UpcallResult { call, id, result, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_fills_the_log_with_its_tools_only_so_far() {
        let mut patience = Patience::default();
        let logged = (0..1_000).filter(|_| patience.logs_tools()).count();
        assert_eq!(logged, MAX_LOGGED_TOOLS as usize);
    }
}
