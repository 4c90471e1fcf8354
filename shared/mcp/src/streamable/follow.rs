//! A stream that is followed across breaks: it goes on after the last event that came, where the server lets it.

use std::time::Duration;

use tokio::sync::oneshot;

use super::endpoint::{Endpoint, PostError, Speech};
use super::events::{EventStream, StreamError};

/// How long to wait after the first break, if the server does not say.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How long to wait at most.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long a server may make us wait.
const MAX_RETRY: Duration = Duration::from_secs(300);
/// How often the stream of an answer is looked for without anything coming.
const MAX_FAILURES: u32 = 6;

/// Why a stream is over.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It cannot be resumed.
    Lost(String),
    /// What came is too large.
    BadAnswer(String),
    /// The server refuses it with this status.
    Refused(u16),
    /// The server does not know the session.
    Forgotten,
}

/// A stream that is followed.
pub(crate) struct Follow<'a> {
    endpoint: &'a Endpoint,
    speech: &'a Speech,
    stream: Option<EventStream>,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Breaks without anything in between.
    failures: u32,
    /// It is the server's own: begun anew where it cannot be resumed, and looked for as long as it takes.
    standalone: bool,
    /// Dropped when the server has answered for the first time, whatever it said.
    unheard: Option<oneshot::Sender<()>>,
}

impl<'a> Follow<'a> {
    /// The stream that answers a request. It is resumed if it had events with ids.
    pub(crate) fn answer(endpoint: &'a Endpoint, speech: &'a Speech, stream: EventStream) -> Self {
        Self {
            endpoint,
            speech,
            stream: Some(stream),
            last_id: None,
            retry: None,
            failures: 0,
            standalone: false,
            unheard: None,
        }
    }

    /// The server's own stream.
    pub(crate) fn standalone(endpoint: &'a Endpoint, speech: &'a Speech) -> Self {
        Self {
            endpoint,
            speech,
            stream: None,
            last_id: None,
            retry: None,
            failures: 0,
            standalone: true,
            unheard: None,
        }
    }

    /// Drops `unheard` when the server has answered for the first time, whatever it said.
    pub(crate) fn until_heard(mut self, unheard: oneshot::Sender<()>) -> Self {
        self.unheard = Some(unheard);
        self
    }

    /// The data of the next event that is a message.
    pub(crate) async fn next(&mut self) -> Result<String, Broken> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.open().await?;
                continue;
            };
            let broke = match stream.next().await {
                Ok(Some(event)) => {
                    self.retry = event.retry.or(self.retry);
                    let is_message = event.is_message();
                    self.last_id = event.id.or(self.last_id.take());
                    match event.data {
                        Some(data) if is_message && !data.trim().is_empty() => {
                            self.failures = 0;
                            return Ok(data);
                        }
                        _ => continue,
                    }
                }
                Ok(None) => "the stream ended before the answer".to_owned(),
                Err(StreamError::Broke(why)) => why,
                Err(StreamError::TooLarge(why)) => return Err(Broken::BadAnswer(why)),
            };
            self.stream = None;
            self.failed(broke).await?;
        }
    }

    async fn open(&mut self) -> Result<(), Broken> {
        let opened = self.endpoint.get(self.speech, self.last_id.as_deref()).await;
        self.unheard = None;
        match opened {
            Ok(stream) => self.stream = Some(stream),
            Err(PostError::Forgotten) => return Err(Broken::Forgotten),
            Err(PostError::Unauthorized(status)) => return Err(Broken::Refused(status)),
            // The server does not want to; these two are for the moment.
            Err(PostError::Status(status)) if (400..500).contains(&status) && !matches!(status, 408 | 429) => {
                return Err(Broken::Refused(status));
            }
            Err(PostError::Status(status)) => self.failed(format!("HTTP {status}")).await?,
            Err(PostError::NotSent(why) | PostError::Lost(why) | PostError::BadAnswer(why)) => self.failed(why).await?,
        }
        Ok(())
    }

    /// Waits until it is time to look for the stream again.
    async fn failed(&mut self, why: String) -> Result<(), Broken> {
        if !self.standalone && (self.last_id.is_none() || self.failures >= MAX_FAILURES) {
            return Err(Broken::Lost(why));
        }
        let grown = FIRST_WAIT.saturating_mul(2u32.saturating_pow(self.failures)).min(MAX_WAIT);
        let wait = match self.retry {
            None => grown,
            // What the server wants at first, more if nothing comes of it.
            Some(retry) if self.failures == 0 => retry.min(MAX_RETRY),
            Some(retry) => retry.min(MAX_RETRY).max(grown),
        };
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(wait).await;
        Ok(())
    }
}
