//! What travels on a foot's socket, whatever library carries it.

use bytes::Bytes;
use footbridge_shared::ErrorCode;
use footbridge_shared::limits::{
    CLOSE_BAD_FRAMES, CLOSE_DRAINING, CLOSE_NAME_TAKEN, CLOSE_REFUSED, CLOSE_SUPERSEDED, CLOSE_TIMEOUT,
    CLOSE_TRY_LATER, CLOSE_UNAUTHORIZED,
};
use footbridge_shared::message::{HubToFoot, Superseded, WireError};

/// Close code of RFC 6455: done.
const CLOSE_NORMAL: u16 = 1000;
/// Close code of RFC 6455: a message was too big to read.
const CLOSE_TOO_BIG: u16 = 1009;

/// One WebSocket frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON text. Bytes, so that a frame can wait in several places without a copy.
    Text(Bytes),
    /// A part of a message.
    Binary(Bytes),
    /// The library's own heartbeat, in either direction. It answers these by itself.
    Heartbeat,
    /// The last frame of a side.
    Close(Close),
}

impl From<HubToFoot> for Frame {
    fn from(message: HubToFoot) -> Self {
        Self::Text(message.encode().into())
    }
}

/// Why a side closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// A code of RFC 6455 or of [`footbridge_shared::limits`].
    pub code: u16,
    /// The same for people: short, safe to show.
    pub reason: String,
}

/// Why a socket gives no more frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// A message was larger than the library reads.
    #[error("a message is larger than the socket reads")]
    TooBig,
    /// The connection is broken.
    #[error("the connection is broken: {0}")]
    Broken(String),
}

/// How the hub ends a connection: what it still says, then the close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) farewell: Option<Frame>,
    pub(super) close: Close,
}

impl Ending {
    fn plain(code: u16, reason: &str) -> Self {
        Self { farewell: None, close: Close { code, reason: reason.to_owned() } }
    }

    fn error(close: u16, code: ErrorCode, message: String) -> Self {
        let farewell = Some(HubToFoot::from(WireError { code, message }).into());
        Self { farewell, close: Close { code: close, reason: code.as_str().to_owned() } }
    }

    /// `hello` cannot be accepted.
    pub(super) fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::error(CLOSE_REFUSED, code, message.into())
    }

    /// The token ended, or does not allow this.
    pub(super) fn unauthorized(code: ErrorCode, message: &str) -> Self {
        Self::error(CLOSE_UNAUTHORIZED, code, message.to_owned())
    }

    /// The token was revoked or ran out.
    pub(super) fn ended_token() -> Self {
        Self::unauthorized(ErrorCode::Unauthorized, "the token was revoked or has expired")
    }

    /// Too slow: no `hello`, no heartbeat, or nothing read.
    pub(super) fn timeout(message: &str) -> Self {
        Self::error(CLOSE_TIMEOUT, ErrorCode::Timeout, message.to_owned())
    }

    /// The name is not this foot's, or not any more.
    pub(super) fn name_taken(message: &str) -> Self {
        Self::error(CLOSE_NAME_TAKEN, ErrorCode::NameTaken, message.to_owned())
    }

    /// Too many malformed frames. Each had its `error` already.
    pub(super) fn bad_frames() -> Self {
        Self::plain(CLOSE_BAD_FRAMES, ErrorCode::BadFrame.as_str())
    }

    /// A message that was never read.
    pub(super) fn too_big() -> Self {
        Self::error(CLOSE_TOO_BIG, ErrorCode::BadFrame, SocketError::TooBig.to_string())
    }

    /// The store does not answer.
    pub(super) fn try_later(message: &str) -> Self {
        Self::error(CLOSE_TRY_LATER, ErrorCode::StorageUnavailable, message.to_owned())
    }

    /// The subject has as many feet here as it may have.
    pub(super) fn too_many_feet(limit: usize) -> Self {
        let message = format!("this token's subject has {limit} feet connected to this project, and may have no more");
        Self::error(CLOSE_TRY_LATER, ErrorCode::Overloaded, message)
    }

    /// A newer process of the same foot took over.
    pub(super) fn superseded() -> Self {
        let close = Close { code: CLOSE_SUPERSEDED, reason: "superseded".to_owned() };
        Self { farewell: Some(HubToFoot::from(Superseded {}).into()), close }
    }

    /// The same process goes on over another connection: nothing it would have to give up.
    pub(super) fn resumed() -> Self {
        Self::plain(CLOSE_NORMAL, "resumed on another connection")
    }

    /// The hub goes down; `draining` was said.
    pub(super) fn drained() -> Self {
        Self::plain(CLOSE_DRAINING, ErrorCode::Draining.as_str())
    }

    /// The foot closed the socket.
    pub(super) fn closed_by_foot() -> Self {
        Self::plain(CLOSE_NORMAL, "the foot closed the connection")
    }

    /// The foot said `bye`.
    pub(super) fn goodbye() -> Self {
        Self::plain(CLOSE_NORMAL, "bye")
    }
}
