//! Who owes whom how many bytes of bulk.

use std::collections::HashMap;

use crate::id::CallId;
use crate::limits::{BULK_WINDOW_BYTES, CREDIT_GROUP_BYTES};
use crate::message::Credit;
use crate::part::PartsId;

/// The sender's account of one connection: bulk that is out.
#[derive(Debug, Default)]
pub struct Window {
    out: HashMap<PartsId, usize>,
    total: usize,
}

impl Window {
    /// Whether a frame of so many bytes may go out now.
    pub const fn fits(&self, bytes: usize) -> bool {
        self.total == 0 || self.total + bytes <= BULK_WINDOW_BYTES
    }

    /// A frame went out.
    pub fn sent(&mut self, id: PartsId, bytes: usize) {
        *self.out.entry(id).or_default() += bytes;
        self.total += bytes;
    }

    /// So many bytes were returned. More than are out cannot be.
    pub fn returned(&mut self, id: &PartsId, bytes: u64) {
        let Some(out) = self.out.get_mut(id) else { return };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(*out);
        *out -= bytes;
        self.total -= bytes;
        if *out == 0 {
            self.out.remove(id);
        }
    }

    /// All that is out for this id was returned.
    pub fn settled(&mut self, id: &PartsId) {
        self.total -= self.out.remove(id).unwrap_or_default();
    }

    /// Whether anything is out for this id.
    pub fn has_out(&self, id: &PartsId) -> bool {
        self.out.contains_key(id)
    }

    /// Bytes that are out.
    pub const fn total(&self) -> usize {
        self.total
    }
}

/// The receiver's account of one connection: bulk that was taken in and not returned yet.
#[derive(Debug, Default)]
pub struct Dues {
    owed: Vec<(PartsId, usize)>,
    total: usize,
}

impl Dues {
    /// A frame was taken in.
    pub fn owe(&mut self, id: PartsId, bytes: usize) {
        match self.owed.iter_mut().find(|(owed, _)| *owed == id) {
            Some((_, owed)) => *owed += bytes,
            None => self.owed.push((id, bytes)),
        }
        self.total += bytes;
    }

    /// What must be returned now: nothing, or all of it.
    pub fn due(&mut self) -> impl Iterator<Item = Credit> + use<> {
        let due = if self.total >= CREDIT_GROUP_BYTES { std::mem::take(self).owed } else { Vec::new() };
        due.into_iter().map(|(id, bytes)| credit(id, bytes, false))
    }

    /// All that is owed for one id, now; with `hold`, its sender is to wait.
    pub fn now(&mut self, id: PartsId, hold: bool) -> Credit {
        credit(id, self.settle(&id), hold)
    }

    /// Whether nothing is owed.
    pub const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// What was owed for this id, which is returned in another way.
    pub fn settle(&mut self, id: &PartsId) -> usize {
        let Some(at) = self.owed.iter().position(|(owed, _)| owed == id) else { return 0 };
        let (_, bytes) = self.owed.swap_remove(at);
        self.total -= bytes;
        bytes
    }
}

fn credit(id: PartsId, bytes: usize, hold: bool) -> Credit {
    Credit { call: CallId::from_bytes(id), bytes: bytes as u64, hold }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_FRAME_BYTES, PART_FRAME_BYTES};
    use proptest::prelude::*;

    const ID: PartsId = [1; 16];

    #[test]
    fn what_is_out_is_bounded_and_a_lone_frame_always_goes() {
        let mut window = Window::default();
        assert!(window.fits(10 * BULK_WINDOW_BYTES), "nothing could make room for it");
        window.sent(ID, BULK_WINDOW_BYTES - 10);
        assert!(window.fits(10) && !window.fits(11));
        window.returned(&[2; 16], 100);
        assert!(!window.fits(11), "somebody else's credit is none");
        window.returned(&ID, u64::MAX);
        assert_eq!(window.total(), 0);
        window.returned(&ID, 1);
        window.sent(ID, 5);
        window.settled(&ID);
        window.settled(&ID);
        assert_eq!((window.total(), window.out.len()), (0, 0));
    }

    #[test]
    fn small_debts_wait_for_company() {
        let mut dues = Dues::default();
        dues.owe(ID, CREDIT_GROUP_BYTES - 1);
        assert_eq!(dues.due().count(), 0);
        dues.owe([2; 16], 1);
        let due: Vec<u64> = dues.due().map(|credit| credit.bytes).collect();
        assert_eq!(due, [CREDIT_GROUP_BYTES as u64 - 1, 1]);
        assert_eq!(dues.due().count(), 0);
        dues.owe(ID, 7);
        assert_eq!(dues.settle(&ID), 7);
        assert_eq!((dues.settle(&ID), dues.total), (0, 0));
        let hold = dues.now(ID, true);
        assert!(hold.hold && hold.bytes == 0);
    }

    proptest! {
        /// Two accounts at the two ends of a pipe: they agree, and nobody ever waits for good.
        #[test]
        fn the_accounts_of_both_ends_agree(
            frames in prop::collection::vec((0..4_u8, 1..=MAX_FRAME_BYTES, 0..8_u8), 0..300),
        ) {
            let (mut window, mut dues) = (Window::default(), Dues::default());
            for (id, bytes, what) in frames {
                let id = [id; 16];
                prop_assert!(window.fits(bytes), "all but a little was returned");
                window.sent(id, bytes);
                dues.owe(id, bytes);
                match what {
                    0 => {
                        dues.settle(&id);
                        window.settled(&id);
                    }
                    1 => {
                        let credit = dues.now(id, true);
                        window.returned(&id, credit.bytes);
                    }
                    _ => {}
                }
                for credit in dues.due() {
                    window.returned(&credit.call.to_bytes().unwrap(), credit.bytes);
                }
                prop_assert_eq!(window.total(), dues.total);
                prop_assert_eq!(window.total(), window.out.values().sum::<usize>());
                prop_assert!(window.total() < CREDIT_GROUP_BYTES);
            }
        }

        #[test]
        fn no_credit_makes_a_window_negative(
            steps in prop::collection::vec((0..3_u8, 0..4_u8, any::<u32>()), 0..200),
        ) {
            let mut window = Window::default();
            for (what, id, bytes) in steps {
                match what {
                    0 if window.fits(bytes as usize % PART_FRAME_BYTES) => {
                        window.sent([id; 16], bytes as usize % PART_FRAME_BYTES);
                    }
                    1 => window.returned(&[id; 16], u64::from(bytes)),
                    _ => window.settled(&[id; 16]),
                }
                prop_assert_eq!(window.total(), window.out.values().sum::<usize>());
                prop_assert!(window.total() <= BULK_WINDOW_BYTES);
            }
        }
    }
}
