//! Answers of feet that come in parts: what is here of them belongs to the call, goes with it, and is bounded.
//!
//! A foot has some room and all feet together have some. Beyond it a part is dropped, and its message waits until there
//! is room again. The oldest message of a foot may exceed the foot's room, and one of all may exceed the hub's: so there is
//! always one that goes on, and at its end there is room.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use footbridge_shared::id::CallId;
use footbridge_shared::limits::{FOOT_PARTS_BYTES, HUB_PARTS_BYTES, MAX_MESSAGE_BYTES};
use footbridge_shared::message::PartsFrom;
use footbridge_shared::part::Part;
use footbridge_shared::parts::{Assembly, Taken, outlives_connection};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::foot::{Foot, State};
use super::outbox::Outbox;

/// Most answers in parts that nobody waits for and that may come in from one foot at a time. A foot keeps fewer of them.
const MAX_UNAWAITED: usize = 1024;

/// Most messages with ids of their own that may come in from one foot at a time. Their number is bounded by the window of
/// bulk at an honest foot: it sends a few in turns.
const MAX_ASIDE: usize = 256;
/// How messages begin that may have ids of their own.
const OWN: [&[u8]; 2] = [br#"{"type":"upcall""#, br#"{"type":"notify""#];

/// Room for unfinished messages of all feet.
#[derive(Debug)]
pub(super) struct HubRoom {
    limit: usize,
    used: AtomicUsize,
    /// Whether some message exceeds the limit, as one may.
    exceeded: AtomicBool,
    /// Told when room becomes free.
    freed: watch::Sender<()>,
}

impl Default for HubRoom {
    fn default() -> Self {
        Self {
            limit: HUB_PARTS_BYTES,
            used: AtomicUsize::new(0),
            exceeded: AtomicBool::new(false),
            freed: watch::Sender::default(),
        }
    }
}

impl HubRoom {
    /// Tells when some room becomes free.
    pub(super) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    /// Bytes that unfinished messages take.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Room for unfinished messages of one foot.
#[derive(Debug)]
pub(super) struct FootRoom {
    hub: Arc<HubRoom>,
    limit: usize,
    used: AtomicUsize,
    begun: AtomicU64,
    /// Numbers of those that are coming in.
    unfinished: Mutex<BTreeSet<u64>>,
}

impl FootRoom {
    pub(super) fn new(hub: Arc<HubRoom>) -> Self {
        let (begun, unfinished) = (AtomicU64::new(0), Mutex::default());
        Self { hub, limit: FOOT_PARTS_BYTES, used: AtomicUsize::new(0), begun, unfinished }
    }

    /// Begins a message.
    fn begin(self: &Arc<Self>) -> Share {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.unfinished.lock().insert(number);
        Share { room: self.clone(), number, bytes: 0, exceeds: false }
    }
}

/// Takes `bytes` from a room, if they fit or may exceed it.
fn take(used: &AtomicUsize, limit: usize, bytes: usize, may_exceed: impl Fn() -> bool) -> bool {
    let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit || may_exceed());
    used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_ok()
}

/// What one message takes of both rooms. Gives it back when dropped.
#[derive(Debug)]
struct Share {
    room: Arc<FootRoom>,
    /// Counts up within the foot.
    number: u64,
    bytes: usize,
    /// This is the one that may exceed the hub's room.
    exceeds: bool,
}

impl Share {
    /// Whether it has been coming in for longest.
    fn is_oldest(&self) -> bool {
        self.room.unfinished.lock().first() == Some(&self.number)
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let FootRoom { hub, limit, used, .. } = &*self.room;
        if !take(used, *limit, bytes, || self.is_oldest()) {
            return false;
        }
        let free = || hub.exceeded.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok();
        let fits = take(&hub.used, hub.limit, bytes, || false)
            || ((self.exceeds || free()) && {
                self.exceeds = true;
                take(&hub.used, hub.limit, bytes, || true)
            });
        if fits {
            self.bytes += bytes;
        } else {
            used.fetch_sub(bytes, Ordering::AcqRel);
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let FootRoom { hub, used, unfinished, .. } = &*self.room;
        unfinished.lock().remove(&self.number);
        used.fetch_sub(self.bytes, Ordering::AcqRel);
        hub.used.fetch_sub(self.bytes, Ordering::AcqRel);
        if self.exceeds {
            hub.exceeded.store(false, Ordering::Release);
        }
        hub.freed.send_replace(());
    }
}

/// To whom a message in parts belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// It is the end of a call.
    Call,
    /// It is the end of a request.
    Request,
    /// It has an id of its own.
    Own,
}

/// What is here of one answer.
#[derive(Debug)]
pub(super) struct Incoming {
    assembly: Assembly,
    share: Share,
}

impl Incoming {
    fn new(room: &Arc<FootRoom>) -> Self {
        Self { assembly: Assembly::default(), share: room.begin() }
    }
}

impl Foot {
    /// Takes a part of a message. `None`: nobody waits for it, or it is the middle of one that nobody waits for.
    pub(super) fn part(&self, epoch: u64, call: &CallId, part: &Part<'_>) -> Option<(Whose, Taken)> {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return None;
        }
        let State { pending, requests, unawaited, aside, .. } = &mut *state;
        let begin = || Box::new(Incoming::new(&self.parts));
        let (whose, incoming) = if let Some(pending) = pending.get_mut(call) {
            let incoming = pending.parts.get_or_insert_with(|| unawaited.remove(call).unwrap_or_else(begin));
            (Whose::Call, incoming)
        } else if let Some(request) = requests.get_mut(call) {
            (Whose::Request, request.parts.get_or_insert_with(begin))
        } else if let Some(incoming) = aside.get_mut(call) {
            (Whose::Own, incoming)
        } else if part.seq == 0 && !unawaited.contains_key(call) {
            if outlives_connection(part.data) {
                // Of a call with a key, perhaps: who keeps its end can say when it is whole.
                let fits = unawaited.len() < MAX_UNAWAITED;
                (Whose::Call, fits.then(|| unawaited.entry(call.clone()).or_insert_with(begin))?)
            } else {
                let fits = aside.len() < MAX_ASIDE && OWN.iter().any(|begin| part.data.starts_with(begin));
                (Whose::Own, fits.then(|| aside.entry(call.clone()).or_insert_with(begin))?)
            }
        } else {
            (Whose::Call, unawaited.get_mut(call)?)
        };
        let Incoming { assembly, share } = &mut **incoming;
        let taken = assembly.take(part, MAX_MESSAGE_BYTES, |bytes| share.grow(bytes));
        // An answer that is coming in is a sign of life, however slow the link is.
        let (kept, over) = (matches!(taken, Taken::Kept), matches!(taken, Taken::Whole(_) | Taken::TooLong));
        match whose {
            Whose::Call => {
                if let Some(pending) = pending.get_mut(call) {
                    if kept {
                        pending.ctx.clock.touch();
                    }
                    pending.parts.take_if(|_| over);
                } else if over {
                    unawaited.remove(call);
                }
            }
            Whose::Request => {
                if let Some(request) = requests.get_mut(call) {
                    if kept {
                        request.asker.clock.touch();
                    }
                    request.parts.take_if(|_| over);
                }
            }
            Whose::Own if over => _ = aside.remove(call),
            Whose::Own => {}
        }
        Some((whose, taken))
    }

    /// There is room again: what to ask for, and whether some messages still wait.
    pub(super) fn go_on(&self, epoch: u64) -> (Vec<PartsFrom>, bool) {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return (Vec::new(), false);
        }
        let mut held: Vec<(&CallId, &mut Incoming)> =
            state.parts().1.filter(|(_, incoming)| incoming.assembly.is_held()).collect();
        held.sort_by_key(|(_, incoming)| incoming.share.number);
        let (mut wanted, mut waits) = (Vec::new(), false);
        for (call, Incoming { assembly, share }) in held {
            match assembly.go_on(|bytes| share.grow(bytes)) {
                Some(seq) => wanted.push(PartsFrom { call: call.clone(), seq }),
                None => waits = true,
            }
        }
        (wanted, waits)
    }
}

impl State {
    /// The session goes on over a new connection: asks for the rest of every answer that is here in part.
    pub(super) fn ask_for_rest(&mut self) {
        let (outbox, parts) = self.parts();
        for (call, incoming) in parts {
            if let Some(seq) = incoming.assembly.rejoin() {
                outbox.control(PartsFrom { call: call.clone(), seq });
            }
        }
    }

    /// All answers that are here in part, and where to ask for more of them.
    fn parts(&mut self) -> (&Outbox, impl Iterator<Item = (&CallId, &mut Incoming)>) {
        let awaited =
            self.pending.iter_mut().filter_map(|(call, pending)| Some((call, &mut **pending.parts.as_mut()?)));
        let asked = self.requests.iter_mut().filter_map(|(call, request)| Some((call, &mut **request.parts.as_mut()?)));
        let others = self.unawaited.iter_mut().chain(&mut self.aside);
        let others = others.map(|(call, incoming)| (call, &mut **incoming));
        (&self.outbox, awaited.chain(asked).chain(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(hub: &Arc<HubRoom>) -> Arc<FootRoom> {
        Arc::new(FootRoom { limit: 100, ..FootRoom::new(hub.clone()) })
    }

    #[test]
    fn one_message_of_a_foot_and_one_of_all_may_exceed_their_room() {
        let hub = Arc::new(HubRoom { limit: 150, ..HubRoom::default() });
        let (one, other) = (room(&hub), room(&hub));
        let (mut first, mut younger) = (one.begin(), one.begin());
        let (mut second, mut third) = (other.begin(), room(&hub).begin());
        assert!(younger.grow(20) && first.grow(90), "the oldest of its foot");
        assert!(!younger.grow(20));
        assert!(second.grow(40));
        assert!(second.grow(40), "the one that may exceed the hub's room");
        assert!(!third.grow(1) && third.room.used.load(Ordering::Relaxed) == 0);
        let freed = hub.freed();
        drop(second);
        assert!(freed.has_changed().unwrap_or_default(), "those who wait hear of it");
        assert!(third.grow(40) && third.grow(40), "another one may");
        drop((first, third));
        assert!(younger.grow(100), "it is the oldest now");
        drop(younger);
        assert_eq!((hub.used(), hub.exceeded.load(Ordering::Relaxed)), (0, false));
    }
}
