//! Why a request of a relayed client has no answer.

use std::time::Duration;

use footbridge_shared::{ErrorCode, Outcome};

use crate::codes::INTERNAL_ERROR;
use crate::error::RpcError;
use crate::streamable::{PostError, Refusal};

/// What the client is told.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    code: ErrorCode,
    outcome: Outcome,
    retry_after: Option<Duration>,
    why: String,
}

impl Failure {
    pub(super) fn new(code: ErrorCode, outcome: Outcome, why: impl Into<String>) -> Self {
        Self { code, outcome, retry_after: None, why: why.into() }
    }

    /// The connection broke after the request was sent.
    pub(super) fn lost(why: &str) -> Self {
        let why = format!("the connection to it was lost, it may have done it{why}");
        Self::new(ErrorCode::ServerUnavailable, Outcome::Unknown, why)
    }

    pub(super) fn bad_answer(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadAnswer, Outcome::Unknown, why)
    }

    fn refused(what: String, refusal: Refusal) -> Self {
        let code = refusal.code.unwrap_or(match refusal.status {
            401 => ErrorCode::Unauthorized,
            403 => ErrorCode::Forbidden,
            404 => ErrorCode::NotFound,
            413 => ErrorCode::PayloadTooLarge,
            429 | 503 => ErrorCode::Overloaded,
            _ => ErrorCode::BadAnswer,
        });
        let outcome = if refusal.status < 500 { Outcome::NotRun } else { Outcome::Unknown };
        let why = refusal.said.map(|said| format!("{what}: {said}")).unwrap_or(what);
        Self { retry_after: refusal.retry_after, ..Self::new(code, outcome, why) }
    }

    /// For the client of a server that is there.
    pub(super) fn to_rpc(&self, place: &str) -> RpcError {
        RpcError::new(INTERNAL_ERROR, format!("the Footbridge hub at {place}: {}", self.why)).with_reason(
            self.code,
            self.outcome,
            self.retry_after,
        )
    }
}

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        match error {
            PostError::NotSent(why) => Self::new(
                ErrorCode::ServerUnavailable,
                Outcome::NotRun,
                format!("it does not answer: {why}; is it running there? `footbridge up` starts one"),
            ),
            PostError::Lost(why) => Self::lost(&format!(": {why}")),
            PostError::BadAnswer(why) => Self::bad_answer(format!("its answer cannot be used: {why}")),
            PostError::Unauthorized(refusal) => {
                Self::refused(format!("it refused the token (HTTP {})", refusal.status), refusal)
            }
            PostError::Forgotten => Self::new(ErrorCode::NotFound, Outcome::NotRun, "it does not know the session"),
            PostError::Status(refusal) => Self::refused(format!("it answered with HTTP {}", refusal.status), refusal),
        }
    }
}
