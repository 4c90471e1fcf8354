//! What can be set about feet. Tests scale the times down.

use std::time::Duration;

use footbridge_shared::limits::{self, Limits};

/// How long the tools of a replaced foot process stay listed while the new one has not said what it offers.
const TAKEOVER_GRACE: Duration = Duration::from_secs(5);
/// How long an acknowledgement may wait for another frame to travel with.
const ACK_DELAY: Duration = Duration::from_millis(5);
/// How long the other side has to answer a close.
const CLOSE_LINGER: Duration = Duration::from_secs(1);
/// Earliest reconnect after a drain.
const DRAIN_MIN: Duration = Duration::from_millis(500);
/// Reconnects after a drain are spread over this long.
const DRAIN_SPREAD: Duration = Duration::from_secs(5);
/// How long feet keep trying after a drain.
const DRAIN_TRY_FOR: Duration = Duration::from_secs(600);
/// Connected feet that one subject may have in one project.
const MAX_CONNECTIONS: usize = 256;
/// Names that one subject may have bound in one project.
const MAX_NAMES: usize = 1_000;
/// Name of a hub that runs alone.
const DEFAULT_NODE: &str = "hub";

/// Settings of the feet registry.
#[derive(Debug, Clone)]
pub struct FeetConfig {
    /// Name of this hub node: `node` in `welcome`, `origin` of its calls. It outlives a restart, and no two hubs of one
    /// store share it: calls of this origin that nobody waits for are stopped when their foot comes back.
    pub node: String,
    /// How long a foot has to say `hello`.
    pub hello_timeout: Duration,
    /// Time between heartbeats, before jitter.
    pub heartbeat_interval: Duration,
    /// Heartbeats in a row that may go unanswered before a foot counts as gone.
    pub heartbeat_misses: u32,
    /// How long the socket may refuse to take more before the foot counts as gone.
    pub write_timeout: Duration,
    /// How long callers wait for a dropped foot to resume.
    pub resume_grace: Duration,
    /// How long the tools of a replaced foot process stay listed while the new one has not said what it offers.
    pub takeover_grace: Duration,
    /// How long an acknowledgement may wait for another frame to travel with.
    pub ack_delay: Duration,
    /// How long the other side has to answer a close.
    pub close_linger: Duration,
    /// Earliest reconnect after a drain.
    pub drain_min: Duration,
    /// Reconnects after a drain are spread over this long.
    pub drain_spread: Duration,
    /// How long feet keep trying after a drain.
    pub drain_try_for: Duration,
    /// Frames that may wait to be written to one foot; also the bound of its control frames.
    pub send_queue: usize,
    /// Connected feet that one subject may have in one project; another one is told to try later.
    pub max_connections: usize,
    /// Names that one subject may have bound in one project; another one is refused.
    pub max_names: usize,
}

impl Default for FeetConfig {
    fn default() -> Self {
        Self {
            node: DEFAULT_NODE.to_owned(),
            hello_timeout: limits::HELLO_TIMEOUT,
            heartbeat_interval: limits::HEARTBEAT_INTERVAL,
            heartbeat_misses: limits::HEARTBEAT_MISSES,
            write_timeout: limits::WRITE_TIMEOUT,
            resume_grace: limits::RESUME_GRACE,
            takeover_grace: TAKEOVER_GRACE,
            ack_delay: ACK_DELAY,
            close_linger: CLOSE_LINGER,
            drain_min: DRAIN_MIN,
            drain_spread: DRAIN_SPREAD,
            drain_try_for: DRAIN_TRY_FOR,
            send_queue: limits::SEND_QUEUE,
            max_connections: MAX_CONNECTIONS,
            max_names: MAX_NAMES,
        }
    }
}

impl FeetConfig {
    /// What `welcome` says of these settings.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            heartbeat_ms: millis(self.heartbeat_interval),
            heartbeat_misses: self.heartbeat_misses,
            resume_grace_ms: millis(self.resume_grace),
            ..Limits::default()
        }
    }
}

/// Whole milliseconds, as the wire counts.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
