//! Messages that come in parts: to whom they belong, and what they come to.

use bytes::Bytes;
use footbridge_shared::id::CallId;
use footbridge_shared::limits::{BULK_BYTES, MAX_MESSAGE_BYTES, MAX_SERVERS_MESSAGE_BYTES, MAX_TOOLS_MESSAGE_BYTES};
use footbridge_shared::message::{FootToHub, PartsFrom};
use footbridge_shared::part::{Part, PartsId};
use footbridge_shared::parts::{Assembly, Taken};
use footbridge_shared::{ErrorCode, Outcome};

use super::{Inbound, Next, read};
use crate::domain::failure::Failure;
use crate::sources::feet::parts::Whose;

/// How messages begin that say what a foot offers.
const OFFERS: [&[u8]; 2] = [br#"{"type":"tools""#, br#"{"type":"servers""#];
/// Longest of them, in bytes of JSON.
const MAX_OFFER_BYTES: usize = if MAX_TOOLS_MESSAGE_BYTES > MAX_SERVERS_MESSAGE_BYTES {
    MAX_TOOLS_MESSAGE_BYTES
} else {
    MAX_SERVERS_MESSAGE_BYTES
};

/// The parts of one connection, beside those of calls.
#[derive(Debug, Default)]
pub(super) struct PartsOfConnection {
    /// A `tools` or `servers` message that is coming in. A foot sends one after the other.
    offer: Option<(PartsId, Assembly)>,
    /// Some answers wait for room.
    held: bool,
    /// The foot has said something but `partsFrom`.
    open: bool,
}

impl Inbound<'_> {
    /// Takes a message that came in one frame, and returns it if it is bulk.
    pub(super) fn whole(&mut self, bytes: usize, message: FootToHub) -> Result<Next, String> {
        if !matches!(message, FootToHub::PartsFrom(_)) {
            self.open();
        }
        if bytes < BULK_BYTES {
            return self.heard(message);
        }
        if let Some(id) = message.call().and_then(CallId::to_bytes) {
            self.outbox.owe(id, bytes);
        }
        let next = self.heard(message);
        // What was acknowledged by now is returned by that.
        self.outbox.repay();
        next
    }

    /// Takes one binary frame. The error says why it is malformed, or the message that it completes.
    pub(super) fn part(&mut self, frame: &Bytes) -> Result<Next, String> {
        let part = Part::decode(frame).map_err(|error| error.to_string())?;
        self.open();
        self.outbox.owe(part.id, frame.len());
        let next = self.offer(&part).unwrap_or_else(|| self.part_of_call(&part));
        self.outbox.repay();
        next
    }

    /// Some room is free again: answers that waited for it go on.
    pub(in crate::sources::feet) fn go_on(&mut self) {
        let (wanted, waits) = self.seat.foot.go_on(self.seat.epoch);
        self.parts.held = waits;
        for wanted in wanted {
            self.outbox.control(wanted);
        }
    }

    /// Whether answers wait for room.
    pub(in crate::sources::feet) const fn waits_for_room(&self) -> bool {
        self.parts.held
    }

    /// The foot has said something but `partsFrom`.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.parts.open, true) {
            self.outbox.open();
        }
    }

    fn part_of_call(&mut self, part: &Part<'_>) -> Result<Next, String> {
        let call = CallId::from_bytes(part.id);
        let Some((whose, taken)) = self.seat.foot.part(self.seat.epoch, &call, part) else {
            self.core.totals.unknown_part();
            return Ok(Next::Goes);
        };
        // What is wanted, or held, is said before bytes are returned: a message that is returned whole is forgotten.
        match taken {
            Taken::Kept | Taken::Dropped => {}
            Taken::Gap(seq) => self.outbox.control(PartsFrom { call, seq }),
            Taken::NoRoom => {
                self.parts.held = true;
                self.outbox.repay_now(part.id, true);
            }
            Taken::TooLong => {
                self.outbox.repay_now(part.id, false);
                let message = format!("the result is larger than {MAX_MESSAGE_BYTES} bytes");
                if whose == Whose::Own {
                    return Err(message);
                }
                let failure = Failure::new(ErrorCode::ResultTooLarge, Outcome::Completed, message);
                return Ok(self.ended(call, Err(failure)));
            }
            Taken::Whole(text) => {
                self.outbox.repay_now(part.id, false);
                return self.answer(whose, call, text);
            }
        }
        Ok(Next::Goes)
    }

    /// A message is here in full.
    fn answer(&mut self, whose: Whose, call: CallId, text: Vec<u8>) -> Result<Next, String> {
        let problem = match decoded(text) {
            Ok(message) if belongs(&message, whose, &call) => return self.heard(message),
            Ok(message) => format!("a `{}` that its parts do not belong to", message.kind()),
            Err(problem) => problem,
        };
        if whose == Whose::Own {
            return Err(problem);
        }
        let failure = Failure::new(ErrorCode::BadFrame, Outcome::Unknown, "the foot's answer cannot be read");
        // If nobody waits for it, nobody needs to know.
        self.ended(call, Err(failure));
        Err(problem)
    }

    /// A part of what the foot offers, perhaps; `None`: it is not.
    fn offer(&mut self, part: &Part<'_>) -> Option<Result<Next, String>> {
        let offer = &mut self.parts.offer;
        if offer.as_ref().is_none_or(|(id, _)| *id != part.id) {
            if part.seq != 0 || !OFFERS.iter().any(|begin| part.data.starts_with(begin)) {
                return None;
            }
            *offer = Some((part.id, Assembly::default()));
        }
        let (_, assembly) = offer.as_mut()?;
        match assembly.take(part, MAX_OFFER_BYTES, |_| true) {
            Taken::Whole(text) => {
                *offer = None;
                self.outbox.repay_now(part.id, false);
                let offered = String::from_utf8(text).map_err(|error| error.to_string()).and_then(|text| read(&text));
                Some(match offered {
                    Ok(Ok(message @ (FootToHub::Tools(_) | FootToHub::Servers(_)))) => self.heard(message),
                    Ok(Ok(message)) => Err(format!("a `{}` that its parts do not belong to", message.kind())),
                    Ok(Err(offered)) => Ok(Next::Offers(offered)),
                    Err(problem) => Err(problem),
                })
            }
            Taken::TooLong => {
                *offer = None;
                Some(Err(format!("an offer of more than {MAX_OFFER_BYTES} bytes")))
            }
            Taken::Gap(seq) => {
                self.outbox.control(PartsFrom { call: CallId::from_bytes(part.id), seq });
                Some(Ok(Next::Goes))
            }
            Taken::Kept | Taken::Dropped | Taken::NoRoom => Some(Ok(Next::Goes)),
        }
    }
}

/// Whether a message may have come in parts of that id.
fn belongs(message: &FootToHub, whose: Whose, call: &CallId) -> bool {
    let is_its_own = message.call() == Some(call);
    match message {
        FootToHub::Result(_) => whose == Whose::Call && is_its_own,
        FootToHub::Response(_) => whose == Whose::Request && is_its_own,
        FootToHub::Failure(_) => whose != Whose::Own && is_its_own,
        FootToHub::Upcall(_) | FootToHub::Notify(_) => whose == Whose::Own,
        _ => false,
    }
}

fn decoded(text: Vec<u8>) -> Result<FootToHub, String> {
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    FootToHub::decode(&text).map_err(|error| error.to_string())
}
