//! How long to wait before the next attempt.

use std::time::Duration;

use footbridge_shared::limits::{RECONNECT_MAX, RECONNECT_MIN};

/// A connection that lasted this long was a good one: the next attempt comes soon again. A hub that hangs up on a foot does
/// so sooner.
const GOOD_AFTER: Duration = Duration::from_secs(3);
/// Longest wait that a hub can ask for.
const MAX_ASKED: Duration = Duration::from_secs(600);

/// Full jitter: each wait is anything up to a limit that doubles.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A connection was there for this long.
    pub(crate) fn lasted(&mut self, time: Duration) {
        if time >= GOOD_AFTER {
            self.was_of_use();
        }
    }

    /// The hub took an answer: however short the connection will be, it is a good one.
    pub(crate) const fn was_of_use(&mut self) {
        self.failures = 0;
    }

    /// Whether the last connection was a good one.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.failures == 0
    }

    /// The next wait. `unit` is random in `0.0..1.0`; what the hub asked for is the least.
    pub(crate) fn next(&mut self, asked: Option<Duration>, unit: f64) -> Duration {
        let limit = RECONNECT_MIN.saturating_mul(2_u32.saturating_pow(self.failures)).min(RECONNECT_MAX);
        self.failures = self.failures.saturating_add(1);
        asked.unwrap_or_default().min(MAX_ASKED) + limit.mul_f64(unit.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_start_over_after_a_good_connection() {
        let mut backoff = Backoff::default();
        let limits: Vec<u128> = (0..9).map(|_| backoff.next(None, 1.0).as_millis()).collect();
        assert_eq!(limits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(backoff.next(None, 0.25).as_millis(), 7500);
        backoff.lasted(Duration::from_secs(1));
        assert_eq!(backoff.next(None, 1.0).as_millis(), 30_000, "a hub that hangs up at once is not stormed");
        backoff.lasted(GOOD_AFTER);
        assert_eq!([(); 2].map(|()| backoff.next(None, 1.0).as_millis()), [500, 1000]);
        backoff.was_of_use();
        assert_eq!(backoff.next(None, 1.0).as_millis(), 500);
    }

    #[test]
    fn what_the_hub_asks_for_is_the_least() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(Some(Duration::from_secs(7)), 0.5).as_millis(), 7250);
        assert_eq!(backoff.next(Some(Duration::MAX), 0.0), MAX_ASKED);
    }
}
