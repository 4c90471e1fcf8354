//! A clock that stands still until a test moves it.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::Clock;

/// Starts at a fixed time of day; [`Self::advance`] is all that moves it.
pub(crate) struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// The second at which every one starts: 2026-11-29T00:00:00Z.
    const START: i64 = 1_795_910_400;

    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Timestamp::from_second(Self::START).expect("a valid time"))))
    }

    /// Moves the time; backwards with a negative duration.
    pub(crate) fn advance(&self, by: SignedDuration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
