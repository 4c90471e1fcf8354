//! What comes back for one HTTP request: a message, or a stream of them.

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::sse::Events;
use crate::Result;
use crate::eventually::PATIENCE;
use crate::fake_mcp::message::Message;

/// What comes back for one HTTP request.
pub struct Exchange {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The id of the last event.
    pub last_event: Option<String>,
    body: Body,
}

enum Body {
    Whole(Option<String>),
    Stream { response: Box<Response>, events: Events },
}

impl Exchange {
    pub(super) async fn of(request: RequestBuilder) -> Result<Self> {
        let response = timeout(PATIENCE, request.send()).await.map_err(|_| "no answer in time")??;
        let (status, headers) = (response.status(), response.headers().clone());
        let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let body = if kind.starts_with("text/event-stream") {
            Body::Stream { response: Box::new(response), events: Events::default() }
        } else {
            let whole = timeout(PATIENCE, response.text()).await.map_err(|_| "no whole answer in time")??;
            Body::Whole(Some(whole).filter(|text| !text.is_empty()))
        };
        Ok(Self { status, headers, last_event: None, body })
    }

    /// The next message as it came. `None`: there are no more.
    ///
    /// # Errors
    /// When nothing comes in time.
    pub async fn next_text(&mut self) -> Result<Option<String>> {
        let (response, events) = match &mut self.body {
            Body::Whole(text) => return Ok(text.take()),
            Body::Stream { response, events } => (response, events),
        };
        // Signs of life without a message do not lengthen it.
        let end = Instant::now() + PATIENCE;
        loop {
            while let Some(event) = events.pop() {
                self.last_event = event.id.or_else(|| self.last_event.take());
                if !event.data.is_empty() {
                    return Ok(Some(event.data));
                }
            }
            let piece = timeout_at(end, response.chunk()).await;
            match piece.map_err(|_| "no message comes on the stream")?? {
                Some(piece) => events.push(&piece),
                None => return Ok(None),
            }
        }
    }

    /// The next message. `None`: there are no more.
    ///
    /// # Errors
    /// When nothing comes in time, or something else.
    pub async fn next(&mut self) -> Result<Option<Message>> {
        match self.next_text().await? {
            Some(text) => match Message::parse(&text) {
                Ok(message) => Ok(Some(message)),
                Err(_) => Err(format!("{}: {text}", self.status).into()),
            },
            None => Ok(None),
        }
    }

    /// The next message with a method.
    ///
    /// # Errors
    /// When none comes.
    pub async fn until(&mut self, method: &str) -> Result<Message> {
        let end = Instant::now() + PATIENCE;
        while let Some(message) = timeout_at(end, self.next()).await.map_err(|_| format!("no {method} in time"))?? {
            if message.method.as_deref() == Some(method) {
                return Ok(message);
            }
        }
        Err(format!("no {method} came").into())
    }

    /// The answer; what comes before it is passed over.
    ///
    /// # Errors
    /// When none comes.
    pub async fn answer(&mut self) -> Result<Message> {
        while let Some(message) = self.next().await? {
            if message.method.is_none() {
                return Ok(message);
            }
        }
        Err(format!("no answer came ({})", self.status).into())
    }

    /// The result.
    ///
    /// # Errors
    /// When an error comes, or nothing.
    pub async fn result(&mut self) -> Result<Value> {
        let answer = self.answer().await?;
        if answer.result.is_some() { Ok(answer.result_value()) } else { Err(answer.error_value().to_string().into()) }
    }
}
