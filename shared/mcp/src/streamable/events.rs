//! The events of a response.

use std::collections::VecDeque;

use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use reqwest::Response;

use super::endpoint::reason;
use crate::sse::{Decoder, Event};

/// Events as they come.
pub(crate) struct EventStream {
    response: Response,
    decoder: Decoder,
    ready: VecDeque<Event>,
    failed: bool,
}

/// Why a stream cannot be read on.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// It broke.
    Broke(String),
    /// An event is larger than any answer may be.
    TooLarge(String),
}

impl EventStream {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, decoder: Decoder::new(MAX_MESSAGE_BYTES), ready: VecDeque::new(), failed: false }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, StreamError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.failed {
                return Err(StreamError::TooLarge(format!("an event of it has more than {MAX_MESSAGE_BYTES} bytes")));
            }
            match self.response.chunk().await {
                Ok(None) => return Ok(None),
                // The events before the one that is too large still count.
                Ok(Some(piece)) => {
                    self.failed = self.decoder.feed(&piece, |event| self.ready.push_back(event)).is_err();
                }
                Err(error) => return Err(StreamError::Broke(reason(&error))),
            }
        }
    }
}
