//! What a call said so far, as far back as there is room: a follower may come late, read slowly, and come again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::calls::{CallEntry, CallResult};
use crate::domain::call::CallEvent;

/// Events of one call that are kept.
pub const MAX_EVENTS: usize = 256;
/// Bytes of them that are kept.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;
/// What one event takes besides its texts, in bytes.
const EVENT_BYTES: usize = 64;

/// The last events of one call, numbered from 1.
#[derive(Debug)]
pub(super) struct EventLog {
    ring: Mutex<Ring>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<(CallEvent, usize)>,
    bytes: usize,
    last: u64,
}

impl Default for EventLog {
    fn default() -> Self {
        Self { ring: Mutex::default(), last: watch::Sender::new(0) }
    }
}

impl EventLog {
    pub(super) fn push(&self, event: CallEvent) {
        let bytes = weight(&event);
        let mut ring = self.ring.lock();
        ring.bytes += bytes;
        ring.events.push_back((event, bytes));
        ring.last += 1;
        while ring.events.len() > MAX_EVENTS || ring.bytes > MAX_EVENT_BYTES {
            let Some((_, bytes)) = ring.events.pop_front() else { break };
            ring.bytes -= bytes;
        }
        self.last.send_replace(ring.last);
    }

    /// What it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.ring.lock().bytes
    }

    /// What came after the event of this number; `None`: nothing did.
    fn after(&self, seen: u64) -> Option<Heard> {
        let ring = self.ring.lock();
        let kept_from = ring.last - ring.events.len() as u64;
        if seen >= ring.last {
            return None;
        }
        if seen < kept_from {
            return Some(Heard::Skipped { id: kept_from, events: kept_from - seen });
        }
        let index = usize::try_from(seen - kept_from).ok()?;
        ring.events.get(index).map(|(event, _)| Heard::Event { id: seen + 1, event: event.clone() })
    }
}

fn weight(event: &CallEvent) -> usize {
    EVENT_BYTES
        + match event {
            CallEvent::Progress { message, .. } => message.as_ref().map_or(0, String::len),
            CallEvent::Output { data, .. } => data.len(),
        }
}

/// What a follower hears.
#[derive(Debug)]
pub enum Heard {
    /// The call said something.
    Event {
        /// Counts up within the call, from 1.
        id: u64,
        /// What.
        event: CallEvent,
    },
    /// There is no room for what it said some time ago.
    Skipped {
        /// The number of the last event that is missing.
        id: u64,
        /// How many are.
        events: u64,
    },
    /// It ended; nothing follows.
    Ended {
        /// One more than that of the last event.
        id: u64,
        /// The result.
        result: CallResult,
        /// How long it took.
        took: Duration,
    },
}

/// Follows one call. It holds nothing of what it has not read: who reads slowly misses what the call has no room for.
#[derive(Debug)]
pub struct Follower {
    entry: Arc<CallEntry>,
    seen: u64,
    news: watch::Receiver<u64>,
}

impl Follower {
    pub(super) fn new(entry: Arc<CallEntry>, seen: u64) -> Self {
        let news = entry.log().last.subscribe();
        let last = *news.borrow();
        // Numbers that were never given are of another call, or of another hub's memory of this one. Behind those of a call
        // that has nothing more to say only its end follows.
        let seen = if last == 0 && entry.result().is_some() { seen } else { seen.min(last) };
        Self { entry, seen, news }
    }

    /// The call.
    pub fn entry(&self) -> &Arc<CallEntry> {
        &self.entry
    }

    /// The next thing. Can be dropped and asked again without losing anything.
    pub async fn next(&mut self) -> Heard {
        loop {
            // In this order: what was said before the end is heard before it.
            let end = self.entry.result();
            self.news.mark_unchanged();
            if let Some(heard) = self.entry.log().after(self.seen) {
                if let Heard::Event { id, .. } | Heard::Skipped { id, .. } = &heard {
                    self.seen = *id;
                }
                return heard;
            }
            if let Some((result, took)) = end {
                return Heard::Ended { id: self.seen + 1, result, took };
            }
            tokio::select! {
                // The log lives in the entry, so it cannot be gone.
                _ = self.news.changed() => {}
                _ = self.entry.wait() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(log: &EventLog, count: usize, text: &str) {
        for _ in 0..count {
            log.push(CallEvent::Progress { progress: 1.0, total: None, message: Some(text.to_owned()) });
        }
    }

    fn ids(log: &EventLog, mut seen: u64) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(heard) = log.after(seen) {
            match heard {
                Heard::Event { id, .. } => {
                    found.push(id.to_string());
                    seen = id;
                }
                Heard::Skipped { id, events } => {
                    found.push(format!("{events} up to {id}"));
                    seen = id;
                }
                Heard::Ended { .. } => unreachable!("a log knows no end"),
            }
        }
        found
    }

    #[test]
    fn events_are_numbered_and_a_gap_is_told() {
        let log = EventLog::default();
        assert!(log.after(0).is_none());
        say(&log, 3, "");
        assert_eq!(ids(&log, 0), ["1", "2", "3"]);
        assert_eq!(ids(&log, 2), ["3"]);
        say(&log, MAX_EVENTS, "");
        let late = ids(&log, 1);
        assert_eq!(late[..2], ["2 up to 3".to_owned(), "4".to_owned()]);
        assert_eq!(late.len(), 1 + MAX_EVENTS);
    }

    #[test]
    fn bytes_are_bounded_as_well_as_events() {
        let log = EventLog::default();
        say(&log, 10, &"x".repeat(MAX_EVENT_BYTES / 4));
        assert!(log.bytes() <= MAX_EVENT_BYTES);
        assert_eq!(ids(&log, 0)[0], "7 up to 7");
        say(&log, 1, &"x".repeat(MAX_EVENT_BYTES));
        assert_eq!(ids(&log, 10), ["1 up to 11"], "one that fits nowhere is a gap, too");
    }
}
