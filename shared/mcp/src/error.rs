//! What can go wrong between a client and a server.

use std::time::Duration;

use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};
use serde::{Deserialize, Serialize};

use crate::fields::Fields;

/// A JSON-RPC error, as it came.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// What happened.
    #[serde(default)]
    pub message: String,
    /// More, of any shape.
    #[serde(default, deserialize_with = "anything", skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl RpcError {
    /// An error of our own.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// With what programs go by in its `data`: the stable code, what is known of the request, and when to try again.
    #[must_use]
    pub fn with_reason(mut self, code: ErrorCode, outcome: Outcome, retry_after: Option<Duration>) -> Self {
        let mut data = Fields::new();
        data.set_value("code", &code);
        data.set_value("outcome", &outcome);
        if let Some(wait) = retry_after {
            data.set_value("retryAfterMs", &u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        }
        self.data = Some(data.to_raw());
        self
    }
}

/// Whatever is there, `null` too.
fn anything<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

/// Why there is no connection to a server. The text is safe to show: it holds no credential and no answer's body.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// Nobody answers, or not as a server of MCP does.
    #[error("{0}")]
    Transport(String),
    /// The server did not answer in time.
    #[error("the server did not answer within {0:?}")]
    Timeout(std::time::Duration),
    /// The server wants other credentials.
    #[error("the server refused the credentials (HTTP {0})")]
    Unauthorized(u16),
    /// The server refused.
    #[error("the server refused: {0}")]
    Refused(RpcError),
    /// An HTTP status, and no answer of MCP. After 404, 405 or 400 there may be a server of 2024-11-05 at that address,
    /// which wants [`Connection::over_sse`](crate::Connection::over_sse).
    #[error("the server answered with HTTP {0}")]
    Status(u16),
    /// The server ended when it was asked for its discovery, which it may not know. Start it again, and connect with
    /// [`Preferred::Lifecycle`](crate::Preferred::Lifecycle) of a session: that asks for no discovery first.
    #[error("the server ended when it was asked which versions it speaks")]
    EndedAtDiscovery,
    /// There is no common version.
    #[error("the server speaks `{0}`, which is not spoken here")]
    Version(String),
}

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestError {
    /// The server answered with an error.
    #[error(transparent)]
    Rpc(RpcError),
    /// The request was cancelled by whoever sent it; the server was told.
    #[error("the request was cancelled")]
    Cancelled,
    /// It certainly did not reach the server.
    #[error("the request did not reach the server: {0}")]
    NotSent(String),
    /// The connection ended before there was an answer: the server may have done it or not.
    #[error("the connection ended before the answer: {0}")]
    Lost(String),
    /// The session is not known any more: nothing ran. A new connection is needed.
    #[error("the server does not know the session any more")]
    SessionExpired,
    /// The server wants other credentials: nothing ran.
    #[error("the server refused the credentials (HTTP {0})")]
    Unauthorized(u16),
    /// What came back is no answer, or larger than the limit.
    #[error("the server's answer cannot be used: {0}")]
    BadAnswer(String),
}
