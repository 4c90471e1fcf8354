//! Frames that wait to be written: control before small before bulk, in order within each.

use std::collections::VecDeque;

use footbridge_shared::limits::SEND_QUEUE;

use crate::frame::{Frame, Lane};

/// Frames beyond which courtesies are dropped: progress of calls must not crowd out their results.
const COURTESY_LIMIT: usize = SEND_QUEUE / 4;

/// What waits to be written to one connection.
///
/// It is bounded by whoever fills it: when [`Outbox::has_room`] says no, the session neither reads nor takes results,
/// so that a hub which does not read slows itself down. Answers to limits still come in; there is one a call at most.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    lanes: [VecDeque<String>; 3],
}

impl Outbox {
    pub(super) fn push(&mut self, frame: Frame) {
        if frame.courtesy && self.len() >= COURTESY_LIMIT {
            return;
        }
        let [control, small, bulk] = &mut self.lanes;
        let lane = match frame.lane {
            Lane::Control => control,
            Lane::Small => small,
            Lane::Bulk => bulk,
        };
        lane.push_back(frame.text);
    }

    pub(super) fn pop(&mut self) -> Option<String> {
        self.lanes.iter_mut().find_map(VecDeque::pop_front)
    }

    pub(super) fn has_room(&self) -> bool {
        self.len() < SEND_QUEUE
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(lane: Lane, text: &str) -> Frame {
        Frame { lane, text: text.to_owned(), courtesy: false }
    }

    #[test]
    fn a_heartbeat_passes_results_and_small_results_pass_large_ones() {
        let mut outbox = Outbox::default();
        for (lane, text) in
            [(Lane::Bulk, "b1"), (Lane::Small, "s1"), (Lane::Bulk, "b2"), (Lane::Control, "c1"), (Lane::Small, "s2")]
        {
            outbox.push(frame(lane, text));
        }
        let order: Vec<String> = std::iter::from_fn(|| outbox.pop()).collect();
        assert_eq!(order, ["c1", "s1", "s2", "b1", "b2"]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn courtesies_are_dropped_long_before_there_is_no_room() {
        let mut outbox = Outbox::default();
        for n in 0..SEND_QUEUE {
            outbox.push(Frame { courtesy: true, ..frame(Lane::Small, &n.to_string()) });
        }
        assert_eq!(outbox.len(), COURTESY_LIMIT);
        while outbox.has_room() {
            outbox.push(frame(Lane::Small, "result"));
        }
        assert_eq!(outbox.len(), SEND_QUEUE);
    }
}
