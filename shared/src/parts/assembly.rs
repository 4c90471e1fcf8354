//! The receiving side: a message that is put together.

use crate::limits::PARTS_STEP_BYTES;
use crate::part::Part;

/// What came of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It was kept; there are more to come.
    Kept,
    /// It was the last one: this is the message.
    Whole(Vec<u8>),
    /// It was dropped: known already, or out of order and the right one is on its way.
    Dropped,
    /// It was dropped: ask for the parts from this one on.
    Gap(u32),
    /// It was dropped: there is no room, and [`Assembly::go_on`] has to be asked when there is.
    NoRoom,
    /// The message is longer than it may be. What was kept of it is gone.
    TooLong,
}

/// A message of which some parts are here. It takes the parts in order, whatever comes.
#[derive(Debug, Default)]
pub struct Assembly {
    text: Vec<u8>,
    /// Bytes that were granted; `text` never takes more.
    room: usize,
    next: u32,
    /// The part `next` was asked for and has not come yet.
    asked: bool,
    held: bool,
    /// It came to its end, one way or another.
    over: bool,
}

impl Assembly {
    /// Takes a part of a message that may have `limit` bytes. `grant` is asked for more room, in bytes, as the message
    /// grows.
    pub fn take(&mut self, part: &Part<'_>, limit: usize, grant: impl FnOnce(usize) -> bool) -> Taken {
        if part.seq < self.next || self.held || self.over {
            return Taken::Dropped;
        }
        if part.seq > self.next {
            return if std::mem::replace(&mut self.asked, true) { Taken::Dropped } else { Taken::Gap(self.next) };
        }
        let bytes = self.text.len() + part.data.len();
        if bytes > limit {
            (self.text, self.over) = (Vec::new(), true);
            return Taken::TooLong;
        }
        if bytes > self.room && !self.grow(bytes - self.room, grant) {
            self.held = true;
            return Taken::NoRoom;
        }
        self.text.extend_from_slice(part.data);
        self.next += 1;
        (self.asked, self.over) = (false, part.last);
        if part.last { Taken::Whole(std::mem::take(&mut self.text)) } else { Taken::Kept }
    }

    /// Tries to go on after [`Taken::NoRoom`]. The number of the part to ask for, if there is room now.
    pub fn go_on(&mut self, grant: impl FnOnce(usize) -> bool) -> Option<u32> {
        if !self.held || !self.grow(PARTS_STEP_BYTES, grant) {
            return None;
        }
        (self.held, self.asked) = (false, true);
        Some(self.next)
    }

    /// There is a new connection: the number of the part to ask for first of all. `None`: nothing has come yet.
    pub fn rejoin(&mut self) -> Option<u32> {
        if self.next == 0 && !self.held {
            return None;
        }
        (self.held, self.asked) = (false, true);
        Some(self.next)
    }

    /// Whether it waits for room.
    pub const fn is_held(&self) -> bool {
        self.held
    }

    /// Bytes that it was granted.
    pub const fn room(&self) -> usize {
        self.room
    }

    fn grow(&mut self, missing: usize, grant: impl FnOnce(usize) -> bool) -> bool {
        let step = missing.max(PARTS_STEP_BYTES);
        let granted = grant(step);
        if granted {
            self.room += step;
            // A large block grows in place: the allocator moves its pages, not its bytes.
            self.text.reserve_exact(self.room - self.text.len());
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 10_000;

    fn part(seq: u32, data: &[u8], last: bool) -> Part<'_> {
        Part { id: [7; 16], seq, last, data }
    }

    fn take(assembly: &mut Assembly, seq: u32, data: &[u8], last: bool) -> Taken {
        assembly.take(&part(seq, data, last), LIMIT, |_| true)
    }

    #[test]
    fn parts_in_order_are_the_message_and_others_change_nothing() {
        let mut assembly = Assembly::default();
        assert_eq!(take(&mut assembly, 0, b"ab", false), Taken::Kept);
        assert_eq!(take(&mut assembly, 0, b"xx", false), Taken::Dropped, "known");
        assert_eq!(take(&mut assembly, 2, b"xx", true), Taken::Gap(1));
        assert_eq!(take(&mut assembly, 3, b"xx", true), Taken::Dropped, "asked for already");
        assert_eq!(take(&mut assembly, 1, b"cd", false), Taken::Kept);
        assert_eq!(take(&mut assembly, 3, b"xx", true), Taken::Gap(2), "another gap");
        assert_eq!(take(&mut assembly, 2, b"", true), Taken::Whole(b"abcd".to_vec()));
        assert_eq!(take(&mut assembly, 2, b"xx", true), Taken::Dropped, "the end twice");
    }

    #[test]
    fn a_message_that_is_too_long_keeps_nothing() {
        let mut assembly = Assembly::default();
        assert_eq!(take(&mut assembly, 0, &[0; LIMIT], false), Taken::Kept);
        assert_eq!(take(&mut assembly, 1, b"x", true), Taken::TooLong);
        assert_eq!(assembly.text.capacity(), 0);
    }

    #[test]
    fn without_room_it_waits_and_goes_on_where_it_stopped() {
        let mut assembly = Assembly::default();
        let full = PARTS_STEP_BYTES;
        let limit = 4 * full;
        assert_eq!(assembly.take(&part(0, &vec![1; full], false), limit, |_| true), Taken::Kept);
        assert_eq!(assembly.take(&part(1, b"x", false), limit, |_| false), Taken::NoRoom);
        assert_eq!(assembly.take(&part(1, b"x", false), limit, |_| true), Taken::Dropped, "it is held");
        assert_eq!(assembly.take(&part(2, b"x", false), limit, |_| true), Taken::Dropped, "no gap while it is held");
        assert_eq!(assembly.go_on(|_| false), None);
        assert_eq!(assembly.go_on(|_| true), Some(1));
        assert_eq!(assembly.take(&part(2, b"x", false), limit, |_| true), Taken::Dropped, "what was still on its way");
        assert_eq!(assembly.take(&part(1, b"x", false), limit, |_| false), Taken::Kept, "room was granted ahead");
        assert_eq!(assembly.room(), 2 * full);
    }

    #[test]
    fn a_new_connection_goes_on_where_the_last_one_broke() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.rejoin(), None);
        assert_eq!(take(&mut assembly, 0, b"ab", false), Taken::Kept);
        assert_eq!(assembly.rejoin(), Some(1));
        assert_eq!(take(&mut assembly, 0, b"ab", false), Taken::Dropped, "from the start, before it was asked");
        assert_eq!(take(&mut assembly, 1, b"cd", true), Taken::Whole(b"abcd".to_vec()));
    }

    proptest! {
        /// A sender that loses, repeats and shuffles parts and answers each gap: the text arrives, or nothing does.
        #[test]
        fn whatever_comes_the_message_is_exact_or_not_there(
            text in prop::collection::vec(any::<u8>(), 0..LIMIT),
            size in 1..500_usize,
            noise in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..100),
        ) {
            let cut: Vec<&[u8]> = if text.is_empty() { vec![&[]] } else { text.chunks(size).collect() };
            let count = u32::try_from(cut.len()).unwrap();
            let all: Vec<Part<'_>> = (0..).zip(&cut).map(|(seq, data)| part(seq, data, seq + 1 == count)).collect();
            let mut assembly = Assembly::default();
            let mut whole = None;
            let mut take = |assembly: &mut Assembly, part: &Part<'_>| {
                let taken = assembly.take(part, LIMIT, |_| true);
                if let Taken::Whole(message) = &taken {
                    assert!(whole.replace(message.clone()).is_none(), "once");
                }
                taken
            };
            for (index, honest) in noise {
                let any = index.get(&all);
                // A wrong end, and a part of nowhere.
                let strange = Part { seq: any.seq.saturating_add(count), last: true, ..*any };
                if let Taken::Gap(from) = take(&mut assembly, if honest { any } else { &strange }) {
                    prop_assert!(from < count);
                }
            }
            for part in &all {
                take(&mut assembly, part);
            }
            prop_assert_eq!(whole, Some(text));
        }

        #[test]
        fn no_parts_take_more_than_their_limit(
            parts in prop::collection::vec((0..20_u32, 0..3_000_usize, any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut assembly = Assembly::default();
            for (seq, bytes, last, room) in parts {
                let taken = assembly.take(&part(seq, &vec![0; bytes], last), LIMIT, |_| room);
                prop_assert!(assembly.text.len() <= LIMIT && assembly.text.len() <= assembly.room());
                match taken {
                    Taken::Whole(message) => prop_assert!(message.len() <= LIMIT),
                    Taken::NoRoom => prop_assert!(assembly.is_held() && !room),
                    _ => {}
                }
            }
        }
    }
}
