//! The events of a response.

use std::collections::VecDeque;

use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use reqwest::Response;

use super::endpoint::reason;
use crate::sse::{Decoder, Event};
use crate::turns;

/// Events as they come.
pub(crate) struct EventStream {
    response: Response,
    decoder: Decoder,
    ready: VecDeque<Event>,
    failed: bool,
    /// How many bytes the event had that was handed out last.
    handed: usize,
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
        Self { response, decoder: Decoder::new(MAX_MESSAGE_BYTES), ready: VecDeque::new(), failed: false, handed: 0 }
    }

    /// The next event; `None` at the end. Lets others run in between, however fast events come.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, StreamError> {
        loop {
            turns::after(std::mem::take(&mut self.handed)).await;
            if let Some(event) = self.ready.pop_front() {
                self.handed = event.data.as_ref().map_or(0, String::len);
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
