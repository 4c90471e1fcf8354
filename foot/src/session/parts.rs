//! Long messages of the hub that are coming in. They belong to the session: a connection that breaks loses none of them.

use std::collections::HashMap;

use footbridge_shared::id::CallId;
use footbridge_shared::limits::{FOOT_PARTS_BYTES, MAX_MESSAGE_BYTES};
use footbridge_shared::message::PartsFrom;
use footbridge_shared::part::{Part, PartsId};
use footbridge_shared::parts::{Assembly, Taken, outlives_connection};

/// Unfinished messages of one session, and the room that they share.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    messages: HashMap<PartsId, Message>,
    /// Bytes that they were granted.
    used: usize,
    begun: u64,
}

#[derive(Debug)]
struct Message {
    assembly: Assembly,
    /// Counts up within the session.
    number: u64,
    /// Whether it goes on over the next connection.
    outlives: bool,
}

/// Whether a message may have so many bytes more. The oldest one may exceed the room: it ends, and frees its own.
fn grant(used: &mut usize, bytes: usize, is_oldest: bool) -> bool {
    let granted = is_oldest || *used + bytes <= FOOT_PARTS_BYTES;
    if granted {
        *used += bytes;
    }
    granted
}

impl Unfinished {
    /// Takes a part.
    pub(super) fn take(&mut self, part: &Part<'_>) -> Taken {
        if !self.messages.contains_key(&part.id) {
            if part.seq != 0 {
                // Of a message that was cancelled, or that the hub will send from its start.
                return Taken::Dropped;
            }
            let outlives = outlives_connection(part.data);
            let message = Message { assembly: Assembly::default(), number: self.begun, outlives };
            self.messages.insert(part.id, message);
            self.begun += 1;
        }
        let oldest = self.oldest();
        let Some(message) = self.messages.get_mut(&part.id) else { return Taken::Dropped };
        let (used, is_oldest) = (&mut self.used, oldest == Some(message.number));
        let taken = message.assembly.take(part, MAX_MESSAGE_BYTES, |bytes| grant(used, bytes, is_oldest));
        if matches!(taken, Taken::Whole(_) | Taken::TooLong) {
            self.forget(&part.id);
        }
        taken
    }

    /// Drops what is here of a message. `false`: nothing is.
    pub(super) fn forget(&mut self, id: &PartsId) -> bool {
        let message = self.messages.remove(id);
        self.used -= message.as_ref().map_or(0, |message| message.assembly.room());
        message.is_some()
    }

    /// Some message ended: what to ask for with the room that it left.
    pub(super) fn go_on(&mut self) -> Vec<PartsFrom> {
        let oldest = self.oldest();
        let held = self.messages.iter_mut().filter(|(_, message)| message.assembly.is_held());
        let mut held: Vec<(&PartsId, &mut Message)> = held.collect();
        held.sort_by_key(|(_, message)| message.number);
        let mut wanted = Vec::new();
        for (id, message) in held {
            let (used, is_oldest) = (&mut self.used, oldest == Some(message.number));
            if let Some(seq) = message.assembly.go_on(|bytes| grant(used, bytes, is_oldest)) {
                wanted.push(PartsFrom { call: CallId::from_bytes(*id), seq });
            }
        }
        wanted
    }

    /// The session goes on over a new connection: what to ask for first of all.
    pub(super) fn rejoin(&mut self) -> Vec<PartsFrom> {
        let gone: Vec<PartsId> =
            self.messages.iter().filter(|(_, message)| !message.outlives).map(|(id, _)| *id).collect();
        for id in gone {
            self.forget(&id);
        }
        let wanted = |(id, message): (&PartsId, &mut Message)| {
            Some(PartsFrom { call: CallId::from_bytes(*id), seq: message.assembly.rejoin()? })
        };
        self.messages.iter_mut().filter_map(wanted).collect()
    }

    /// The session is over.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn oldest(&self) -> Option<u64> {
        self.messages.values().map(|message| message.number).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_shared::limits::PARTS_STEP_BYTES;

    const fn part(id: u8, seq: u32, data: &[u8], last: bool) -> Part<'_> {
        Part { id: [id; 16], seq, last, data }
    }

    #[test]
    fn room_is_shared_and_the_oldest_message_always_goes_on() {
        let mut unfinished = Unfinished::default();
        let step = vec![0; PARTS_STEP_BYTES];
        let fits = u8::try_from(FOOT_PARTS_BYTES / PARTS_STEP_BYTES).unwrap();
        for id in 0..fits {
            assert_eq!(unfinished.take(&part(id, 0, &step, false)), Taken::Kept);
        }
        assert_eq!(unfinished.take(&part(fits, 0, b"x", false)), Taken::NoRoom);
        assert_eq!(unfinished.take(&part(1, 1, b"x", false)), Taken::NoRoom);
        assert_eq!(unfinished.take(&part(0, 1, b"x", true)), Taken::Whole([step.as_slice(), b"x"].concat()));
        let mut go_on = || -> Vec<(CallId, u32)> {
            unfinished.go_on().into_iter().map(|wanted| (wanted.call, wanted.seq)).collect()
        };
        assert_eq!(go_on(), [(CallId::from_bytes([1; 16]), 1)], "oldest first");
        assert_eq!(go_on(), []);
        for id in 1..=fits {
            assert!(unfinished.forget(&[id; 16]));
        }
        assert_eq!((unfinished.used, unfinished.forget(&[0; 16])), (0, false));
    }

    #[test]
    fn calls_outlive_a_connection_and_requests_and_answers_do_not() {
        let mut unfinished = Unfinished::default();
        for (id, kind) in [(1, "call"), (2, "request"), (3, "upcallResult")] {
            let begin = format!(r#"{{"type":"{kind}","call""#);
            assert_eq!(unfinished.take(&part(id, 0, begin.as_bytes(), false)), Taken::Kept);
        }
        let wanted: Vec<_> = unfinished.rejoin().into_iter().map(|wanted| (wanted.call, wanted.seq)).collect();
        assert_eq!(wanted, [(CallId::from_bytes([1; 16]), 1)]);
        assert_eq!(unfinished.messages.len(), 1);
    }

    #[test]
    fn parts_of_a_message_that_was_forgotten_begin_none() {
        let mut unfinished = Unfinished::default();
        assert_eq!(unfinished.take(&part(1, 0, b"a", false)), Taken::Kept);
        assert!(unfinished.forget(&[1; 16]));
        assert_eq!(unfinished.take(&part(1, 1, b"b", true)), Taken::Dropped);
        assert!(unfinished.messages.is_empty());
    }
}
