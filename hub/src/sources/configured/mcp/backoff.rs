//! How long to wait before something that failed is tried again.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::random_bytes;

/// Longest wait after the first failure.
const FIRST: Duration = Duration::from_millis(500);
/// Longest wait after many.
const LONGEST: Duration = Duration::from_secs(60);
/// What lived so long counts as good: the next failure is a first one.
pub(super) const GOOD_AFTER: Duration = Duration::from_secs(30);

/// Waits that double, each drawn between nothing and its most, so that what failed together does not come back together.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    not_before: Option<Instant>,
}

impl Backoff {
    /// It failed.
    pub(super) fn failed(&mut self) {
        let most = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let fraction = f64::from(u32::from_le_bytes(random_bytes())) / f64::from(u32::MAX);
        self.not_before = Some(Instant::now() + most.mul_f64(fraction));
    }

    /// It went well and ended after so long. What ends soon has failed.
    pub(super) fn ended_after(&mut self, lived: Duration) {
        if lived >= GOOD_AFTER {
            self.reset();
        } else {
            self.failed();
        }
    }

    /// It may be tried at once, as if nothing had happened.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// When it may be tried; `None`: now.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.not_before.filter(|at| *at > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_up_to_a_minute_and_start_over_after_a_good_time() {
        let mut backoff = Backoff::default();
        for round in 0..100 {
            backoff.failed();
            let most = FIRST.saturating_mul(1 << round.min(10)).min(LONGEST);
            assert!(backoff.not_before().is_none_or(|at| at <= Instant::now() + most), "round {round}");
        }
        backoff.ended_after(GOOD_AFTER);
        assert_eq!((backoff.failures, backoff.not_before()), (0, None));
        backoff.ended_after(Duration::ZERO);
        assert_eq!(backoff.failures, 1);
    }
}
