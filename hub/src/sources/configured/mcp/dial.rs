//! Ways to a server.

use async_trait::async_trait;
use footbridge_mcp::{ConnectError, Connection, Open};
use footbridge_shared::ErrorCode;
use footbridge_shared::text::clean_and_cut;
use tokio::time::Instant;

use super::child::Child;
use super::redact::Redactor;

/// Longest message of others that is shown, in characters.
pub(super) const MAX_SHOWN_CHARS: usize = 500;

/// Opens connections to one server.
#[async_trait]
pub(super) trait Dial: Send + Sync {
    /// Opens one.
    ///
    /// # Errors
    /// Why there is none. Safe to show.
    async fn dial(&self, open: Open) -> Result<Dialed, Unavailable>;

    /// The server did not take the credentials: those that can be fetched anew are, next time. Answers whether there are
    /// such.
    async fn forget_credentials(&self) -> bool {
        false
    }
}

/// An open connection, and what has to be kept for it.
pub(super) struct Dialed {
    /// The connection.
    pub(super) connection: Connection,
    /// The program behind it, where the hub started one. It ends when this is dropped.
    pub(super) process: Option<Child>,
}

/// Why there is no connection. Safe to show.
#[derive(Debug, Clone)]
pub(super) struct Unavailable {
    /// Stable code.
    pub(super) code: ErrorCode,
    /// What is wrong.
    pub(super) message: String,
    /// When it is tried again; `None`: at the next occasion.
    pub(super) next_try: Option<Instant>,
    /// Whether trying again would change nothing.
    pub(super) lasting: bool,
}

impl Unavailable {
    /// The server cannot be reached now.
    pub(super) fn now(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::ServerUnavailable, message: message.into(), next_try: None, lasting: false }
    }

    /// It never can, as things are set up.
    pub(super) fn lasting(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), next_try: None, lasting: true }
    }

    /// What a connection error says, without credentials that the server repeats.
    pub(super) fn of(error: &ConnectError, redactor: &Redactor) -> Self {
        Self::now(clean_and_cut(&redactor.text(&error.to_string()), MAX_SHOWN_CHARS))
    }
}
