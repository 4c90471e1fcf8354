//! Counters of what feet did since the hub started.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the module; [`Totals::read`] gives the numbers.
#[derive(Debug, Default)]
pub(super) struct Totals {
    connected: AtomicU64,
    resumed: AtomicU64,
    refused: AtomicU64,
    bad_frames: AtomicU64,
    unknown_types: AtomicU64,
    orphans: AtomicU64,
    unknown_parts: AtomicU64,
}

/// What feet did since the hub started.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FeetMetrics {
    /// Connections that got their `welcome`.
    pub connected: u64,
    /// Those of them that went on with a session.
    pub resumed: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Malformed frames.
    pub bad_frames: u64,
    /// Frames of a type that this build does not know.
    pub unknown_types: u64,
    /// Results that nobody waited for.
    pub orphan_results: u64,
    /// Parts of messages that nobody waited for.
    pub unknown_parts: u64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Totals {
    pub(super) fn arrived(&self, resumed: bool) {
        count(&self.connected);
        if resumed {
            count(&self.resumed);
        }
    }

    pub(super) fn refused(&self) {
        count(&self.refused);
    }

    pub(super) fn bad_frame(&self) {
        count(&self.bad_frames);
    }

    pub(super) fn unknown_type(&self, kind: &str) {
        count(&self.unknown_types);
        tracing::debug!(?kind, "a frame of an unknown type was ignored");
    }

    pub(super) fn orphan(&self) {
        count(&self.orphans);
    }

    pub(super) fn unknown_part(&self) {
        count(&self.unknown_parts);
    }

    /// The numbers so far.
    #[cfg(test)]
    pub(super) fn read(&self) -> FeetMetrics {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FeetMetrics {
            connected: value(&self.connected),
            resumed: value(&self.resumed),
            refused: value(&self.refused),
            bad_frames: value(&self.bad_frames),
            unknown_types: value(&self.unknown_types),
            orphan_results: value(&self.orphans),
            unknown_parts: value(&self.unknown_parts),
        }
    }
}
