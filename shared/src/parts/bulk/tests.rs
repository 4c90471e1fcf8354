use super::*;
use crate::limits::BULK_WINDOW_BYTES;
use crate::parts::{Assembly, Dues, Taken};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Text(Vec<u8>, Rc<Cell<bool>>);

impl Bulky for Text {
    fn text(&self) -> &[u8] {
        &self.0
    }

    fn is_taken_back(&self) -> bool {
        self.1.get()
    }

    fn claim(&self) -> bool {
        !self.1.get()
    }
}

fn text(byte: u8, bytes: usize) -> Text {
    Text(vec![byte; bytes], Rc::default())
}

const fn call(n: u8) -> Flow {
    Flow::Call([n; 16])
}

fn open() -> Bulk<Text> {
    let mut bulk = Bulk::default();
    bulk.open();
    bulk
}

/// What goes out now, in short: the first byte of the data, and the number of a part.
fn out(bulk: &mut Bulk<Text>) -> Vec<String> {
    std::iter::from_fn(|| bulk.pop())
        .map(|next| match next {
            Next::Text(Text(text, _)) => format!("{}", char::from(text[0])),
            Next::Part(frame) => {
                let part = Part::decode(&frame).unwrap();
                format!("{}{}{}", char::from(part.data[0]), part.seq, if part.last { "." } else { "" })
            }
            Next::TakenBack(id) => format!("-{}", id[0]),
        })
        .collect()
}

const LONG: usize = 100_000;

#[test]
fn messages_take_turns_and_a_window_is_all_that_is_out() {
    let mut bulk = open();
    bulk.push(call(1), text(b'a', LONG));
    bulk.push(call(2), text(b'b', LONG));
    bulk.push(call(3), text(b'c', BULK_BYTES - 1));
    assert_eq!(out(&mut bulk), ["a0", "b0", "c", "a1", "b1"]);
    bulk.credit(&[2; 16], PART_FRAME_BYTES as u64, false);
    assert_eq!(out(&mut bulk), ["a2"]);
    bulk.credit(&[1; 16], 3 * PART_FRAME_BYTES as u64, false);
    assert!(bulk.is_ready() && !bulk.is_drained());
    assert_eq!(out(&mut bulk), ["b2", "a3.", "b3."]);
    assert!(bulk.is_drained() && !bulk.is_empty(), "the other side may still ask for some of it");
    bulk.settled(&[1; 16]);
    bulk.credit(&[2; 16], LONG as u64, false);
    assert!(bulk.is_empty());
}

#[test]
fn a_large_text_is_not_overtaken_for_ever() {
    let mut bulk = open();
    bulk.push(call(1), text(b'a', 10 * LONG));
    assert_eq!(out(&mut bulk).len(), 4);
    bulk.push(call(2), text(b'b', MAX_FRAME_BYTES));
    for _ in 0..2 {
        bulk.credit(&[1; 16], PART_FRAME_BYTES as u64, false);
    }
    assert_eq!(out(&mut bulk)[..1], ["a4"], "its turn was first");
    bulk.credit(&[1; 16], 2 * PART_FRAME_BYTES as u64, false);
    assert_eq!(out(&mut bulk)[..1], ["b"]);
}

#[test]
fn what_is_held_waits_alone_and_comes_again_when_it_is_wanted() {
    let mut bulk = open();
    bulk.push(call(1), text(b'a', LONG));
    assert_eq!(out(&mut bulk), ["a0", "a1", "a2", "a3."]);
    // The other side kept two parts.
    bulk.credit(&[1; 16], 3 * PART_FRAME_BYTES as u64, true);
    bulk.credit(&[1; 16], PART_FRAME_BYTES as u64, false);
    bulk.push(call(2), text(b'b', 10));
    assert_eq!(out(&mut bulk), ["b"]);
    assert!(!bulk.is_empty());
    bulk.parts_from(&[1; 16], 2);
    assert_eq!(out(&mut bulk), ["a2", "a3."]);
    bulk.parts_from(&[1; 16], 4);
    bulk.parts_from(&[9; 16], 0);
    assert_eq!(out(&mut bulk), [""; 0], "there is no such part, and no such message");
}

#[test]
fn on_a_new_connection_parts_wait_until_they_could_be_asked_for() {
    let mut bulk = Bulk::default();
    bulk.push(call(1), text(b'a', LONG));
    bulk.push(call(2), text(b'b', LONG));
    bulk.push(call(3), text(b'c', 20_000));
    assert_eq!(out(&mut bulk), ["c"], "texts need not wait");
    bulk.parts_from(&[1; 16], 3);
    assert!(!bulk.is_ready());
    bulk.open();
    assert_eq!(out(&mut bulk), ["a3.", "b0", "b1", "b2", "b3."]);
}

#[test]
fn what_is_taken_back_is_not_sent_and_the_other_side_hears_of_it_only_if_it_has_some() {
    let mut bulk = open();
    let (begun, fresh) = (text(b'a', 4 * LONG), text(b'b', LONG));
    bulk.push(call(1), begun.clone());
    assert_eq!(out(&mut bulk).len(), BULK_WINDOW_BYTES / PART_FRAME_BYTES);
    bulk.push(call(2), fresh.clone());
    begun.1.set(true);
    fresh.1.set(true);
    assert_eq!(out(&mut bulk), ["-1"]);
    assert!(bulk.is_empty());
}

#[test]
fn a_flow_keeps_its_order_and_the_same_again_is_one() {
    let mut bulk = open();
    let tools = Flow::Other([7; 16]);
    bulk.push(tools, text(b'a', LONG));
    bulk.push(tools, text(b'b', 10));
    bulk.push(tools, text(b'c', 30_000));
    bulk.push(call(1), text(b'r', LONG));
    bulk.push(call(1), text(b'r', LONG));
    assert_eq!(bulk.len(), 4);
    let mut all = Vec::new();
    loop {
        let now = out(&mut bulk);
        if now.is_empty() {
            break;
        }
        all.extend(now);
        bulk.credit(&[7; 16], u64::MAX, false);
        bulk.credit(&[1; 16], u64::MAX, false);
    }
    let of = |letters: &str| all.iter().filter(|out| out.starts_with(|c| letters.contains(c))).cloned().collect();
    let (tools, call): (Vec<String>, Vec<String>) = (of("abc"), of("r"));
    assert_eq!(tools, ["a0", "a1", "a2", "a3.", "b", "c"]);
    assert_eq!(call, ["r0", "r1", "r2", "r3."]);
}

/// The receiver of a test: little room, and all of the rules.
#[derive(Default)]
struct Receiver {
    open: HashMap<PartsId, Assembly>,
    dues: Dues,
    whole: HashMap<PartsId, Vec<u8>>,
}

impl Receiver {
    /// Takes a frame; `room` says whether there is any. What it answers goes to `bulk`.
    fn take(&mut self, frame: &[u8], room: bool, bulk: &mut Bulk<Text>) {
        let part = Part::decode(frame).unwrap();
        self.dues.owe(part.id, frame.len());
        let taken = self.open.entry(part.id).or_default().take(&part, usize::MAX, |_| room);
        match taken {
            Taken::NoRoom => {
                let credit = self.dues.now(part.id, true);
                bulk.credit(&part.id, credit.bytes, true);
            }
            Taken::Gap(seq) => bulk.parts_from(&part.id, seq),
            Taken::Whole(message) => {
                self.open.remove(&part.id);
                assert!(self.whole.insert(part.id, message).is_none(), "once");
                bulk.credit(&part.id, self.dues.settle(&part.id) as u64, false);
            }
            Taken::Kept | Taken::Dropped | Taken::TooLong => {}
        }
        for credit in self.dues.due() {
            bulk.credit(&credit.call.to_bytes().unwrap(), credit.bytes, credit.hold);
        }
    }
}

proptest! {
    /// Both ends, a wire that may be cut at any frame, and room that comes and goes: every message arrives, exactly.
    #[test]
    fn every_message_arrives_whatever_the_connection_does(
        sizes in prop::collection::vec(MAX_FRAME_BYTES + 1..8 * MAX_FRAME_BYTES, 1..5),
        fate in prop::collection::vec(0..10_u8, 0..60),
    ) {
        let messages: Vec<(Flow, Text)> =
            (1..).zip(sizes).map(|(n, bytes)| (call(n), Text((0..bytes).map(|i| (i % 251) as u8).collect(), Rc::default()))).collect();
        let mut receiver = Receiver::default();
        let mut fate = fate.into_iter();
        let mut bulk = Bulk::default();
        let mut connections = 0;
        while receiver.whole.len() < messages.len() {
            connections += 1;
            prop_assert!(connections < 100, "it ends");
            bulk = Bulk::default();
            receiver.dues = Dues::default();
            for (flow, message) in &messages {
                if !receiver.whole.contains_key(flow.id()) {
                    bulk.push(*flow, message.clone());
                }
            }
            for (id, assembly) in &mut receiver.open {
                if let Some(seq) = assembly.rejoin() {
                    bulk.parts_from(id, seq);
                }
            }
            bulk.open();
            loop {
                let held: Vec<PartsId> =
                    receiver.open.iter().filter(|(_, assembly)| assembly.is_held()).map(|(id, _)| *id).collect();
                let Some(next) = bulk.pop() else {
                    if held.is_empty() {
                        break;
                    }
                    for id in held {
                        let seq = receiver.open.get_mut(&id).and_then(|assembly| assembly.go_on(|_| true));
                        bulk.parts_from(&id, seq.unwrap());
                    }
                    continue;
                };
                let Next::Part(frame) = next else { panic!("{next:?}") };
                match fate.next() {
                    // The connection breaks; the frame was on its way.
                    Some(0) => break,
                    Some(1..4) => receiver.take(&frame, false, &mut bulk),
                    _ => receiver.take(&frame, true, &mut bulk),
                }
            }
        }
        for (flow, message) in &messages {
            prop_assert_eq!(receiver.whole.get(flow.id()), Some(&message.0));
        }
        prop_assert!(bulk.is_drained());
    }
}
