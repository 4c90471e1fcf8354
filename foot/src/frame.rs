//! Messages as they go over the wire, and which goes first.

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::MAX_FRAME_BYTES;
use footbridge_shared::message::FootToHub;

use crate::failure::Failure;

/// Frames from this size on wait for smaller ones, in bytes.
const BULK_BYTES: usize = 8 * 1024;

/// Who goes first, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Heartbeats and what steers the connection.
    Control,
    /// Small messages.
    Small,
    /// Large ones.
    Bulk,
}

/// One encoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) lane: Lane,
    pub(crate) text: String,
    /// May be dropped when there is no room: a courtesy, not a promise.
    pub(crate) courtesy: bool,
}

impl Frame {
    pub(crate) fn new(message: &FootToHub) -> Self {
        let text = message.encode();
        let lane = match message {
            FootToHub::Ping(_) | FootToHub::Pong(_) | FootToHub::Error(_) => Lane::Control,
            _ if text.len() < BULK_BYTES => Lane::Small,
            _ => Lane::Bulk,
        };
        Self { lane, text, courtesy: matches!(message, FootToHub::Progress(_) | FootToHub::Output(_)) }
    }
}

/// The failure that stands for a result which no frame can hold.
pub(crate) fn too_large(bytes: usize) -> Failure {
    let message = format!("the result has about {bytes} bytes, the limit is {MAX_FRAME_BYTES}");
    Failure::completed(ErrorCode::ResultTooLarge, message).hint("ask for less: fewer lines, a narrower search, a page")
}
