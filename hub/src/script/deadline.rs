//! A moment that two processes of one machine agree on.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A moment on the machine's monotonic clock. Sent as it is, so that a worker that starts late does not end late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Deadline {
    /// Since the clock's own zero, the same for every process.
    nanos: u64,
}

impl Deadline {
    /// The moment this much from now.
    pub(super) fn after(left: Duration) -> Self {
        Self { nanos: monotonic().saturating_add(nanos(left)) }
    }

    /// The same moment for this process. One beyond what the clock can say has passed: nobody sends that.
    pub(super) fn here(self) -> Instant {
        let (now, left) = (Instant::now(), Duration::from_nanos(self.nanos.saturating_sub(monotonic())));
        now.checked_add(left).unwrap_or(now)
    }
}

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    nanos(Duration::try_from(now).unwrap_or_default())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
