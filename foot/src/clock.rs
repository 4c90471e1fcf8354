//! Time as a foot needs it: a clock that runs through suspend, and the hub's clock as seen from here.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Elapsed time. Deadlines are kept on this clock, so that a laptop which slept does not run a call that is long over.
pub(crate) trait Clock: Send + Sync + fmt::Debug {
    /// Time since a fixed point in the past, time in suspend included.
    fn boot(&self) -> Duration;

    /// The time of day, since the start of 1970. It jumps when somebody sets it: only what has to outlive the machine's
    /// uptime goes by it.
    fn wall(&self) -> Duration;

    /// Which run of the machine this is: [`Self::boot`] of two processes can be compared if this is the same for both.
    /// Empty where that cannot be told.
    fn machine_run(&self) -> String;
}

/// A clock handed around.
pub(crate) type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn boot(&self) -> Duration {
        // Elsewhere the monotonic clock counts suspended time by itself (macOS) or there is none that does.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const ID: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const ID: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        // The clock counts from the start of the machine: it is never negative.
        Duration::try_from(rustix::time::clock_gettime(ID)).unwrap_or_default()
    }

    fn wall(&self) -> Duration {
        // A machine that believes it is before 1970 has no idea of the time.
        Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Realtime)).unwrap_or_default()
    }

    fn machine_run(&self) -> String {
        // Linux alone says so.
        let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        run.trim().to_owned()
    }
}

/// Milliseconds of a duration, as they stand on the wire.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Heartbeats whose round trip is remembered: the fastest of them says best how far apart the clocks are.
const SAMPLES: usize = 8;

/// Longest round trip that says anything about the clocks.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(60);

/// The hub's clock, estimated from heartbeats of one connection.
///
/// Another connection may lead to another hub node with another clock: it starts with a new estimate.
#[derive(Debug, Default)]
pub(crate) struct HubClock {
    samples: VecDeque<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    round_trip: Duration,
    /// Hub milliseconds minus foot milliseconds.
    offset_ms: i128,
}

impl HubClock {
    /// Learns from a pong: our ping said `echo_ms`, the hub answered at its `hub_ms`, and the answer came at `now`.
    pub(crate) fn heard(&mut self, echo_ms: u64, hub_ms: u64, now: Duration) {
        let sent = Duration::from_millis(echo_ms);
        let Some(round_trip) = now.checked_sub(sent).filter(|trip| *trip <= MAX_ROUND_TRIP) else {
            // No ping of this connection: nothing to learn.
            return;
        };
        let middle = i128::from(echo_ms) + i128::from(millis(round_trip) / 2);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { round_trip, offset_ms: i128::from(hub_ms) - middle });
    }

    /// How long a message was on its way that the hub sent at its `sent_ms` and that came at `now`.
    /// Nothing before the first pong.
    pub(crate) fn delay(&self, sent_ms: u64, now: Duration) -> Duration {
        let Some(best) = self.samples.iter().min_by_key(|sample| sample.round_trip) else {
            return Duration::ZERO;
        };
        let hub_now = i128::from(millis(now)) + best.offset_ms;
        Duration::from_millis(u64::try_from(hub_now - i128::from(sent_ms)).unwrap_or_default())
    }
}

/// A clock that moves when a test says so.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct ManualClock {
    boot_ms: std::sync::atomic::AtomicU64,
    wall_ms: std::sync::atomic::AtomicU64,
    run: std::sync::atomic::AtomicU64,
}

#[cfg(test)]
impl ManualClock {
    pub(crate) fn shared() -> Arc<Self> {
        Arc::new(Self { boot_ms: 1_000_000.into(), wall_ms: 1_800_000_000_000.into(), run: 1.into() })
    }

    /// Time passes.
    pub(crate) fn advance(&self, by: Duration) {
        use std::sync::atomic::Ordering::SeqCst;
        self.boot_ms.fetch_add(millis(by), SeqCst);
        self.wall_ms.fetch_add(millis(by), SeqCst);
    }

    /// Somebody sets the time of day.
    pub(crate) fn set_wall(&self, to: Duration) {
        self.wall_ms.store(millis(to), std::sync::atomic::Ordering::SeqCst);
    }

    /// The machine starts again: it counts from nothing.
    pub(crate) fn restart_machine(&self) {
        use std::sync::atomic::Ordering::SeqCst;
        self.boot_ms.store(10_000, SeqCst);
        self.run.fetch_add(1, SeqCst);
    }
}

#[cfg(test)]
impl Clock for ManualClock {
    fn boot(&self) -> Duration {
        Duration::from_millis(self.boot_ms.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn machine_run(&self) -> String {
        self.run.load(std::sync::atomic::Ordering::SeqCst).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_fastest_heartbeat_sets_the_hubs_clock() {
        let mut hub = HubClock::default();
        assert_eq!(hub.delay(5, ms(1_000)), ms(0), "nothing is known before the first pong");

        // The hub is 500,000 ms ahead. One slow round trip with a slow way back, one fast and even one.
        hub.heard(1_000, 501_010, ms(1_400));
        hub.heard(2_000, 502_005, ms(2_010));
        assert_eq!(hub.delay(503_000, ms(3_250)), ms(250));
        assert_eq!(hub.delay(504_000, ms(3_250)), ms(0), "a message from the future was not on its way at all");
    }

    #[test]
    fn a_pong_for_no_ping_of_ours_teaches_nothing() {
        let mut hub = HubClock::default();
        hub.heard(9_000, 1, ms(8_000));
        hub.heard(0, 1, ms(8_000_000));
        assert_eq!(hub.delay(0, ms(8_000)), ms(0));
    }

    #[test]
    fn the_machines_clock_moves_forward() {
        let first = SystemClock.boot();
        assert!(first > Duration::ZERO && SystemClock.boot() >= first);
        assert!(SystemClock.wall() > Duration::from_secs(1_700_000_000));
        assert_eq!(SystemClock.machine_run(), SystemClock.machine_run());
    }
}
