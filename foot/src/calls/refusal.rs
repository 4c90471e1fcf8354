//! Answers to calls that do not run.

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::BUSY_RETRY_AFTER_MS;
use footbridge_shared::message::Call;

use crate::failure::Failure;
use crate::frame::Frame;

/// The answer to a call that did not run.
pub(crate) fn refusal(call: &Call, failure: Failure) -> Frame {
    Frame::new(&failure.into_message(call.call.clone(), call.origin.clone()).into())
}

/// Whether two digests tell two calls apart. One that has none tells nothing.
pub(super) fn differ(known: Option<&str>, new: Option<&str>) -> bool {
    matches!((known, new), (Some(known), Some(new)) if known != new)
}

pub(super) fn id_conflict() -> Failure {
    Failure::not_run(ErrorCode::IdConflict, "the same call id came before, with another tool or other arguments")
}

pub(super) fn busy() -> Failure {
    Failure::not_run(ErrorCode::FootBusy, "this foot runs as many calls as it may").retry_after_ms(BUSY_RETRY_AFTER_MS)
}
