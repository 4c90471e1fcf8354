//! Messages as they go over the wire, and which goes first.

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::{BULK_BYTES, MAX_RESULT_BYTES};
use footbridge_shared::message::FootToHub;
use footbridge_shared::parts::Flow;

use crate::failure::Failure;
use crate::random;

/// Who goes first, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Heartbeats and what steers the connection.
    Control,
    /// Small messages.
    Small,
    /// Large ones, in turns; `None`: those of no call, one after the other.
    Bulk(Option<Flow>),
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
            FootToHub::Ping(_)
            | FootToHub::Pong(_)
            | FootToHub::Error(_)
            | FootToHub::Credit(_)
            | FootToHub::PartsFrom(_) => Lane::Control,
            // A change of what is offered must not overtake the one before it.
            FootToHub::Tools(_) | FootToHub::Servers(_) => Lane::Bulk(None),
            _ if text.len() < BULK_BYTES => Lane::Small,
            // The id of its call belongs to the call and its end.
            FootToHub::Upcall(_) | FootToHub::Notify(_) => Lane::Bulk(Some(Flow::Other(random::bytes()))),
            _ => Lane::Bulk(message.call().map(|call| Flow::of(call, random::bytes))),
        };
        Self { lane, text, courtesy: matches!(message, FootToHub::Progress(_) | FootToHub::Output(_)) }
    }
}

/// The failure that stands for a result which is larger than any may be.
pub(crate) fn too_large(bytes: usize) -> Failure {
    let message = format!("the result has about {bytes} bytes, the limit is {MAX_RESULT_BYTES}");
    Failure::completed(ErrorCode::ResultTooLarge, message).hint("ask for less: fewer lines, a narrower search, a page")
}
