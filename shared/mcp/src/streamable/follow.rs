//! A stream that is followed across breaks: it goes on after the last event that came, where the server lets it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::endpoint::{Endpoint, PostError, Refusal, Speech};
use super::events::{EventStream, StreamError};

/// How long to wait after the first break, if the server does not say.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How long to wait at most, and how long a stream has to last to count as one that works: what stands between cuts
/// streams on which nothing comes.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long to wait at least between two looks, whatever the server wants.
const MIN_WAIT: Duration = Duration::from_millis(100);
/// How long a server may make us wait.
const MAX_RETRY: Duration = Duration::from_secs(300);
/// How often the stream of an answer is looked for without anything coming.
const MAX_FAILURES: u32 = 6;

/// Bytes of an event's id. It is kept, and sent in a header when the stream is resumed; after an event with a longer one
/// it cannot be.
const MAX_EVENT_ID_BYTES: usize = 4096;

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
    patience: Patience,
    /// When `stream` was opened.
    opened: Instant,
    /// It is the server's own: begun anew where it cannot be resumed, and looked for as long as it takes.
    standalone: bool,
    /// Dropped when the server has answered for the first time, whatever it said.
    unheard: Option<oneshot::Sender<()>>,
}

impl<'a> Follow<'a> {
    /// The stream that answers a request. It is resumed if it had events with ids.
    pub(crate) fn answer(endpoint: &'a Endpoint, speech: &'a Speech, stream: EventStream) -> Self {
        Self { stream: Some(stream), standalone: false, ..Self::standalone(endpoint, speech) }
    }

    /// The server's own stream.
    pub(crate) fn standalone(endpoint: &'a Endpoint, speech: &'a Speech) -> Self {
        Self {
            endpoint,
            speech,
            stream: None,
            last_id: None,
            patience: Patience::default(),
            opened: Instant::now(),
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
                    self.patience.retry = event.retry.or(self.patience.retry);
                    let is_message = event.is_message();
                    if let Some(id) = event.id {
                        // After another one than the last the stream cannot go on: what came would come again.
                        self.last_id = (1..=MAX_EVENT_ID_BYTES).contains(&id.len()).then_some(id);
                    }
                    match event.data {
                        Some(data) if is_message && !data.trim().is_empty() => {
                            self.patience.failures = 0;
                            return Ok(data);
                        }
                        _ => continue,
                    }
                }
                Ok(None) => "the stream ended before the answer".to_owned(),
                Err(StreamError::Broke(why)) => why,
                Err(StreamError::TooLarge(why)) if self.standalone => {
                    tracing::warn!(%why, "the stream of an MCP server is begun anew; what it told is lost");
                    // After the last event the same one would come again.
                    self.last_id = None;
                    why
                }
                Err(StreamError::TooLarge(why)) => return Err(Broken::BadAnswer(why)),
            };
            self.stream = None;
            self.patience.ended_after(self.opened.elapsed());
            self.failed(broke).await?;
        }
    }

    async fn open(&mut self) -> Result<(), Broken> {
        let opened = self.endpoint.get(self.speech, self.last_id.as_deref()).await;
        self.unheard = None;
        match opened {
            Ok(stream) => {
                self.stream = Some(stream);
                self.opened = Instant::now();
            }
            Err(PostError::Forgotten) => return Err(Broken::Forgotten),
            Err(PostError::Unauthorized(Refusal { status, .. })) => return Err(Broken::Refused(status)),
            // The server does not want to; these two are for the moment.
            Err(PostError::Status(Refusal { status, .. }))
                if (400..500).contains(&status) && !matches!(status, 408 | 429) =>
            {
                return Err(Broken::Refused(status));
            }
            Err(PostError::Status(Refusal { status, .. })) => self.failed(format!("HTTP {status}")).await?,
            Err(PostError::NotSent(why) | PostError::Lost(why) | PostError::BadAnswer(why)) => self.failed(why).await?,
        }
        Ok(())
    }

    /// Waits until it is time to look for the stream again.
    async fn failed(&mut self, why: String) -> Result<(), Broken> {
        if !self.standalone && (self.last_id.is_none() || self.patience.failures >= MAX_FAILURES) {
            return Err(Broken::Lost(why));
        }
        tokio::time::sleep(self.patience.next_wait()).await;
        Ok(())
    }
}

/// How long to wait before a stream is looked for again.
#[derive(Debug, Default)]
struct Patience {
    /// What the server wants.
    retry: Option<Duration>,
    /// Breaks without anything in between, each soon after the stream was opened.
    failures: u32,
}

impl Patience {
    /// A stream ended that was open for so long.
    fn ended_after(&mut self, lasted: Duration) {
        if lasted > MAX_WAIT {
            self.failures = 0;
        }
    }

    fn next_wait(&mut self) -> Duration {
        let grown = FIRST_WAIT.saturating_mul(2u32.saturating_pow(self.failures)).min(MAX_WAIT);
        let wait = match self.retry {
            None => grown,
            // What the server wants at first, more if nothing comes of it.
            Some(retry) if self.failures == 0 => retry.clamp(MIN_WAIT, MAX_RETRY),
            Some(retry) => retry.min(MAX_RETRY).max(grown),
        };
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_lasted_is_looked_for_soon_though_nothing_came() {
        let mut patience = Patience::default();
        let mut waits = |lasted, times| {
            let wait = |_| {
                patience.ended_after(Duration::from_secs(lasted));
                patience.next_wait()
            };
            (0..times).map(wait).collect::<Vec<_>>()
        };
        assert_eq!(waits(60, 20), [FIRST_WAIT; 20]);
        assert_eq!(waits(1, 10).last(), Some(&MAX_WAIT));
        assert_eq!(waits(60, 1), [FIRST_WAIT]);
    }

    #[test]
    fn no_server_makes_us_come_back_without_a_pause() {
        for (retry, expected) in [(0, MIN_WAIT), (99, MIN_WAIT), (200, Duration::from_millis(200))] {
            let mut patience = Patience { retry: Some(Duration::from_millis(retry)), failures: 0 };
            assert_eq!(patience.next_wait(), expected);
        }
    }
}
