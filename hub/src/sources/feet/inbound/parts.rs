//! Messages that come in parts: to whom they belong, and what they come to.

use bytes::Bytes;
use footbridge_shared::id::CallId;
use footbridge_shared::limits::{BULK_BYTES, MAX_MESSAGE_BYTES, MAX_TOOLS_MESSAGE_BYTES};
use footbridge_shared::message::{FootToHub, PartsFrom};
use footbridge_shared::part::{Part, PartsId};
use footbridge_shared::parts::{Assembly, Taken};
use footbridge_shared::{ErrorCode, Outcome};

use super::{Next, Patience, ended, heard, read};
use crate::domain::failure::Failure;
use crate::sources::feet::Core;
use crate::sources::feet::connection::Seat;
use crate::sources::feet::outbox::Outbox;

/// How a message without a call begins that a foot may send in parts.
const TOOLS: &[u8] = br#"{"type":"tools""#;

/// The parts of one connection, beside those of calls.
#[derive(Debug, Default)]
pub(in crate::sources::feet) struct PartsOfConnection {
    /// A `tools` message that is coming in. A foot sends one after the other.
    tools: Option<(PartsId, Assembly)>,
    /// Some answers wait for room.
    held: bool,
    /// The foot has said something but `partsFrom`.
    open: bool,
}

impl PartsOfConnection {
    /// The foot has said something but `partsFrom`.
    fn open(&mut self, outbox: &Outbox) {
        if !std::mem::replace(&mut self.open, true) {
            outbox.open();
        }
    }
}

/// Takes a message that came in one frame, and returns it if it is bulk.
pub(super) fn whole(
    core: &Core,
    seat: &Seat,
    outbox: &Outbox,
    patience: &mut Patience,
    bytes: usize,
    message: FootToHub,
) -> Result<Next, String> {
    if !matches!(message, FootToHub::PartsFrom(_)) {
        patience.parts.open(outbox);
    }
    if bytes < BULK_BYTES {
        return heard(core, seat, outbox, patience, message);
    }
    if let Some(id) = message.call().and_then(CallId::to_bytes) {
        outbox.owe(id, bytes);
    }
    let next = heard(core, seat, outbox, patience, message);
    // What was acknowledged by now is returned by that.
    outbox.repay();
    next
}

/// Takes one binary frame. The error says why it is malformed, or the message that it completes.
pub(super) fn part(
    core: &Core,
    seat: &Seat,
    outbox: &Outbox,
    patience: &mut Patience,
    frame: &Bytes,
) -> Result<Next, String> {
    let part = Part::decode(frame).map_err(|error| error.to_string())?;
    patience.parts.open(outbox);
    let call = CallId::from_bytes(part.id);
    outbox.owe(part.id, frame.len());
    if let Some(next) = offer(outbox, patience, &part) {
        outbox.repay();
        return next;
    }
    let Some(taken) = seat.foot.part(seat.epoch, &call, &part) else {
        core.totals.unknown_part();
        outbox.repay();
        return Ok(Next::Goes);
    };
    // What is wanted, or held, is said before bytes are returned: a message that is returned whole is forgotten.
    match taken {
        Taken::Kept | Taken::Dropped => {}
        Taken::Gap(seq) => outbox.control(PartsFrom { call, seq }),
        Taken::NoRoom => {
            patience.parts.held = true;
            outbox.repay_now(part.id, true);
        }
        Taken::TooLong => {
            outbox.repay_now(part.id, false);
            let message = format!("the result is larger than {MAX_MESSAGE_BYTES} bytes");
            let failure = Failure::new(ErrorCode::ResultTooLarge, Outcome::Completed, message);
            return Ok(ended(core, seat, outbox, patience, call, Err(failure)));
        }
        Taken::Whole(text) => {
            outbox.repay_now(part.id, false);
            return answer(core, seat, outbox, patience, call, text);
        }
    }
    outbox.repay();
    Ok(Next::Goes)
}

/// Some room is free again: answers that waited for it go on.
pub(in crate::sources::feet) fn go_on(seat: &Seat, outbox: &Outbox, patience: &mut Patience) {
    let (wanted, waits) = seat.foot.go_on(seat.epoch);
    patience.parts.held = waits;
    for wanted in wanted {
        outbox.control(wanted);
    }
}

impl Patience {
    /// Whether answers wait for room.
    pub(in crate::sources::feet) const fn waits_for_room(&self) -> bool {
        self.parts.held
    }
}

/// The answer to a call is here in full.
fn answer(
    core: &Core,
    seat: &Seat,
    outbox: &Outbox,
    patience: &mut Patience,
    call: CallId,
    text: Vec<u8>,
) -> Result<Next, String> {
    let problem = match String::from_utf8(text) {
        Ok(text) => match FootToHub::decode(&text) {
            Ok(message @ (FootToHub::Result(_) | FootToHub::Failure(_))) if message.call() == Some(&call) => {
                return heard(core, seat, outbox, patience, message);
            }
            Ok(message) => format!("a `{}` that its parts do not belong to", message.kind()),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    let failure = Failure::new(ErrorCode::BadFrame, Outcome::Unknown, "the foot's answer cannot be read");
    // If nobody waits for it, nobody needs to know.
    ended(core, seat, outbox, patience, call, Err(failure));
    Err(problem)
}

/// A part of what the foot offers, perhaps; `None`: it is not.
fn offer(outbox: &Outbox, patience: &mut Patience, part: &Part<'_>) -> Option<Result<Next, String>> {
    let tools = &mut patience.parts.tools;
    if tools.as_ref().is_none_or(|(id, _)| *id != part.id) {
        if part.seq != 0 || !part.data.starts_with(TOOLS) {
            return None;
        }
        *tools = Some((part.id, Assembly::default()));
    }
    let (_, assembly) = tools.as_mut()?;
    match assembly.take(part, MAX_TOOLS_MESSAGE_BYTES, |_| true) {
        Taken::Whole(text) => {
            *tools = None;
            outbox.repay_now(part.id, false);
            let offered = String::from_utf8(text).map_err(|error| error.to_string()).and_then(|text| read(&text));
            Some(match offered {
                Ok(Ok(FootToHub::Tools(tools))) => Ok(super::offers(tools)),
                Ok(Ok(message)) => Err(format!("a `{}` that its parts do not belong to", message.kind())),
                Ok(Err(offered)) => Ok(Next::Offers(offered)),
                Err(problem) => Err(problem),
            })
        }
        Taken::TooLong => {
            *tools = None;
            Some(Err(format!("`tools` of more than {MAX_TOOLS_MESSAGE_BYTES} bytes")))
        }
        Taken::Gap(seq) => {
            outbox.control(PartsFrom { call: CallId::from_bytes(part.id), seq });
            Some(Ok(Next::Goes))
        }
        Taken::Kept | Taken::Dropped | Taken::NoRoom => Some(Ok(Next::Goes)),
    }
}
