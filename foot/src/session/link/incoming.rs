//! Messages of the hub that come in parts.

use footbridge_shared::ErrorCode;
use footbridge_shared::id::CallId;
use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use footbridge_shared::message::{HubToFoot, PartsFrom};
use footbridge_shared::part::Part;
use footbridge_shared::parts::Taken;

use super::Link;
use crate::connection::Ended;
use crate::failure::Failure;

impl Link<'_> {
    /// Takes a part that came in a frame of so many bytes.
    pub(super) fn take_part(&mut self, part: &Part<'_>, bytes: usize) -> Option<Ended> {
        self.wire.open();
        let taken = self.session.unfinished.take(part);
        // What is wanted, or held, is said before bytes are returned: a message that is returned whole is forgotten.
        match taken {
            Taken::Kept | Taken::Dropped => self.wire.took(part.id, bytes),
            Taken::Gap(seq) => {
                self.push(&PartsFrom { call: CallId::from_bytes(part.id), seq }.into());
                self.wire.took(part.id, bytes);
            }
            Taken::NoRoom => self.wire.took_last(part.id, bytes, true),
            Taken::TooLong => {
                self.wire.took_last(part.id, bytes, false);
                let message = format!("the call is larger than {MAX_MESSAGE_BYTES} bytes");
                self.refuse(CallId::from_bytes(part.id), Failure::not_run(ErrorCode::PayloadTooLarge, message));
                self.ask_for_more();
            }
            Taken::Whole(text) => {
                self.wire.took_last(part.id, bytes, false);
                self.ask_for_more();
                return self.whole(CallId::from_bytes(part.id), text);
            }
        }
        None
    }

    /// A message is here in full.
    fn whole(&mut self, call: CallId, text: Vec<u8>) -> Option<Ended> {
        let problem = match String::from_utf8(text) {
            Ok(text) => match HubToFoot::decode(&text) {
                Ok(message @ (HubToFoot::Call(_) | HubToFoot::Request(_))) if message.call() == Some(&call) => {
                    return self.handle(message);
                }
                // The id of its call belongs to the call and its end.
                Ok(message @ HubToFoot::UpcallResult(_)) => return self.handle(message),
                Ok(message) => format!("a `{}` that its parts do not belong to", message.kind()),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        self.refuse(call, Failure::not_run(ErrorCode::BadFrame, "the call cannot be read"));
        self.bad_frame(&problem)
    }

    /// Nobody waits for a call any more. If only a part of it is here, nothing else will answer.
    pub(super) fn forget_parts(&mut self, call: &CallId) {
        if call.to_bytes().is_some_and(|id| self.session.unfinished.forget(&id)) {
            let failure = Failure::not_run(ErrorCode::Cancelled, "the call was cancelled before all of it was here");
            self.refuse(call.clone(), failure);
            self.ask_for_more();
        }
    }

    /// Answers a call of which no more than its id is known.
    fn refuse(&mut self, call: CallId, failure: Failure) {
        self.push(&failure.into_message(call, String::new()).into());
    }

    /// Some room is free: asks for what waited for it.
    fn ask_for_more(&mut self) {
        for wanted in self.session.unfinished.go_on() {
            self.push(&wanted.into());
        }
    }
}
