//! Limits of the wire, each with its unit. The hub announces those a foot needs in `welcome`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Largest JSON text frame, in bytes. A longer message needs parts.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;
/// Largest WebSocket message the library reads before it drops the connection, in bytes.
pub const MAX_SOCKET_MESSAGE_BYTES: usize = 1024 * 1024;
/// Malformed frames after which a connection is closed with 4400.
pub const MAX_BAD_FRAMES: u32 = 3;
/// Largest result, in bytes of JSON: content, structured result and `meta` together.
pub const MAX_RESULT_BYTES: usize = 16 * 1024 * 1024;
/// Room for a message's other fields beside its payload, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = 64 * 1024;
/// Largest message that is put together from parts, in bytes of JSON.
pub const MAX_MESSAGE_BYTES: usize = MAX_RESULT_BYTES + MAX_ENVELOPE_BYTES;
/// Largest `tools` message, in bytes of JSON: one tool with the largest schema and all its texts.
pub const MAX_TOOLS_MESSAGE_BYTES: usize = 1024 * 1024;
/// One part frame, header included, in bytes: little enough for others to pass between two of them.
pub const PART_FRAME_BYTES: usize = 32 * 1024;
/// Text frames from this size on are bulk, in bytes.
pub const BULK_BYTES: usize = 8 * 1024;
/// Most bulk on one connection that its receiver has not returned, in bytes. See [`crate::parts`].
pub const BULK_WINDOW_BYTES: usize = 128 * 1024;
/// What a receiver may owe before it must return it, in bytes.
pub const CREDIT_GROUP_BYTES: usize = 32 * 1024;
/// Room that a message in parts takes at a time while it grows, in bytes.
pub const PARTS_STEP_BYTES: usize = 256 * 1024;
/// Room for unfinished messages of one foot in its hub, or of the hub in a foot, in bytes. The oldest may exceed it.
pub const FOOT_PARTS_BYTES: usize = 32 * 1024 * 1024;
/// Room for unfinished messages of all feet of a hub, in bytes. One may exceed it.
pub const HUB_PARTS_BYTES: usize = 256 * 1024 * 1024;
/// Largest input schema of one tool, in bytes of JSON.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Most local MCP servers of one foot.
pub const MAX_SERVERS_PER_FOOT: usize = 64;
/// What one local MCP server may say of itself: capabilities, `serverInfo` and instructions together, in bytes.
pub const MAX_SERVER_BYTES: usize = 64 * 1024;
/// Largest `servers` message, in bytes of JSON.
pub const MAX_SERVERS_MESSAGE_BYTES: usize = 1024 * 1024;
/// Most questions to clients (`upcall`) that one foot may have open at a time.
pub const MAX_UPCALLS_PER_FOOT: usize = 64;
/// Longest id of such a question, in bytes.
pub const MAX_UPCALL_ID_BYTES: usize = 128;
/// Longest description of one tool, in characters after cleaning.
pub const MAX_DESCRIPTION_CHARS: usize = 16 * 1024;
/// Most tools one foot may offer.
pub const MAX_TOOLS_PER_FOOT: usize = 10_000;
/// How long a foot has to say `hello` after the challenge.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between heartbeats, before jitter.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Heartbeats that may go unanswered before the other side counts as gone.
pub const HEARTBEAT_MISSES: u32 = 2;
/// How long a write to a socket may take before the connection counts as gone.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the hub keeps callers waiting for a dropped foot to resume.
pub const RESUME_GRACE: Duration = Duration::from_secs(30);
/// Calls a foot runs at once unless it says otherwise.
pub const DEFAULT_MAX_CONCURRENT: u32 = 64;
/// Most calls a foot may ask to run at once.
pub const MAX_MAX_CONCURRENT: u32 = 1024;
/// Calls a foot queues beyond those it runs, before it answers `foot_busy`.
pub const FOOT_QUEUE: usize = 1024;
/// Frames waiting to be written to one connection.
pub const SEND_QUEUE: usize = 1024;
/// What `foot_busy` suggests to wait, in milliseconds.
pub const BUSY_RETRY_AFTER_MS: u64 = 250;
/// First wait before a reconnect; doubles up to [`RECONNECT_MAX`], full jitter.
pub const RECONNECT_MIN: Duration = Duration::from_millis(500);
/// Longest wait before a reconnect.
pub const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// Idle time of a call: reset by progress.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Hard time of a call: never extended.
pub const DEFAULT_MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Close code: too many malformed frames.
pub const CLOSE_BAD_FRAMES: u16 = 4400;
/// Close code: the token was revoked, expired or may not do this.
pub const CLOSE_UNAUTHORIZED: u16 = 4401;
/// Close code: `hello` was refused (unknown scope, bad proof).
pub const CLOSE_REFUSED: u16 = 4403;
/// Close code: no `hello` in time, or no heartbeat.
pub const CLOSE_TIMEOUT: u16 = 4408;
/// Close code: another foot id is bound to this name.
pub const CLOSE_NAME_TAKEN: u16 = 4409;
/// Close code: a newer instance of the same foot took over.
pub const CLOSE_SUPERSEDED: u16 = 4410;
/// Close code: the hub drains; reconnect.
pub const CLOSE_DRAINING: u16 = 1012;
/// Close code: the hub cannot serve this foot just now (its store does not answer); reconnect.
pub const CLOSE_TRY_LATER: u16 = 1013;

/// What a hub tells a foot about its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Largest text frame, in bytes.
    pub frame_bytes: u64,
    /// Largest result, in bytes of JSON. One that does not fit a text frame goes in parts.
    pub result_bytes: u64,
    /// Time between heartbeats, in milliseconds.
    pub heartbeat_ms: u64,
    /// Missed heartbeats after which the hub counts as gone.
    pub heartbeat_misses: u32,
    /// How long the hub waits for a resume, in milliseconds.
    pub resume_grace_ms: u64,
    /// Most tools a foot may offer.
    pub tools: u64,
    /// Largest input schema of one tool, in bytes.
    pub schema_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: MAX_FRAME_BYTES as u64,
            result_bytes: MAX_RESULT_BYTES as u64,
            heartbeat_ms: HEARTBEAT_INTERVAL.as_millis() as u64,
            heartbeat_misses: HEARTBEAT_MISSES,
            resume_grace_ms: RESUME_GRACE.as_millis() as u64,
            tools: MAX_TOOLS_PER_FOOT as u64,
            schema_bytes: MAX_SCHEMA_BYTES as u64,
        }
    }
}
