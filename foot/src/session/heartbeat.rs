//! Whether the other side is alive, and when to ask.

use std::time::Duration;

use footbridge_shared::limits::Limits;

/// Shortest time between heartbeats that a hub can ask for.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
/// Longest.
const MAX_INTERVAL: Duration = Duration::from_secs(300);
/// How much earlier than its interval a heartbeat may come, as a part of it.
const JITTER: f64 = 0.25;

/// What a heartbeat is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing, for this long.
    Wait(Duration),
    /// Send a ping.
    Ping,
    /// The other side is gone.
    Gone,
}

/// The heartbeat of one connection, on the clock that runs through suspend.
#[derive(Debug)]
pub(super) struct Heartbeat {
    interval: Duration,
    patience: Duration,
    heard: Duration,
    next_ping: Duration,
}

impl Heartbeat {
    /// As the hub wants it. The first ping is due at once: it sets the hub's clock.
    pub(super) fn new(limits: &Limits, now: Duration) -> Self {
        let interval = Duration::from_millis(limits.heartbeat_ms).clamp(MIN_INTERVAL, MAX_INTERVAL);
        Self { interval, patience: interval * limits.heartbeat_misses.clamp(1, 10), heard: now, next_ping: now }
    }

    /// Any frame is a sign of life.
    pub(super) fn heard(&mut self, now: Duration) {
        self.heard = now;
    }

    /// What is due. `unit` is random in `0.0..1.0`, and asked for when a ping is.
    pub(super) fn beat(&mut self, now: Duration, unit: impl FnOnce() -> f64) -> Beat {
        let gone_at = self.heard + self.patience;
        if now >= gone_at {
            return Beat::Gone;
        }
        if now >= self.next_ping {
            self.next_ping = now + self.interval.mul_f64(1.0 - JITTER * unit().clamp(0.0, 1.0));
            return Beat::Ping;
        }
        Beat::Wait(gone_at.min(self.next_ping) - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn two_misses_are_the_end_and_any_frame_is_a_sign_of_life() {
        let mut heartbeat = Heartbeat::new(&Limits::default(), s(100));
        assert_eq!(heartbeat.beat(s(100), || 0.0), Beat::Ping);
        assert_eq!(heartbeat.beat(s(101), || 0.0), Beat::Wait(s(14)));
        assert_eq!(heartbeat.beat(s(115), || 0.0), Beat::Ping);
        assert_eq!(heartbeat.beat(s(129), || 0.0), Beat::Wait(s(1)));
        heartbeat.heard(s(129));
        assert_eq!(heartbeat.beat(s(130), || 1.0), Beat::Ping);
        assert_eq!(heartbeat.beat(s(131), || 0.0), Beat::Wait(Duration::from_millis(10_250)), "a quarter earlier");
        assert_eq!(heartbeat.beat(s(159), || 0.0), Beat::Gone);
    }

    #[test]
    fn a_hub_cannot_ask_for_a_storm_of_pings() {
        let limits = Limits { heartbeat_ms: 0, heartbeat_misses: 0, ..Limits::default() };
        let mut heartbeat = Heartbeat::new(&limits, s(1));
        assert_eq!(heartbeat.beat(s(1), || 0.0), Beat::Ping);
        assert_eq!(heartbeat.beat(s(1), || 0.0), Beat::Wait(MIN_INTERVAL));
    }
}
