//! One request and what comes back.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, REPLY_TIMEOUT};
use crate::api::LAYER_HEADER;
use crate::api::problem::{PROBLEM_JSON, Problem};
use crate::cli::error::CliError;

/// What must hold for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    None,
    /// It has this ETag, with or without quotes.
    Match(String),
    /// This layer holds none yet.
    Absent,
}

/// A request that is being put together.
#[derive(Debug)]
pub struct Request {
    client: Client,
    method: Method,
    url: Url,
    body: Body,
    precondition: Precondition,
    headers: Vec<(&'static str, String)>,
    timeout: Duration,
}

#[derive(Debug)]
enum Body {
    None,
    Text { media_type: &'static str, text: String },
}

/// A text and what its headers say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TextReply {
    /// The text.
    pub text: String,
    /// Its ETag, without quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The layer it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
}

impl Request {
    pub(super) fn new(client: Client, method: Method, url: Url) -> Self {
        let (body, precondition) = (Body::None, Precondition::None);
        Self { client, method, url, body, precondition, headers: Vec::new(), timeout: REPLY_TIMEOUT }
    }

    /// Adds a header if it has a value.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    /// Adds a query parameter if it has a value.
    #[must_use]
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.url.query_pairs_mut().append_pair(name, &value.to_string());
        }
        self
    }

    /// Grants the hub so much more time to answer.
    #[must_use]
    pub fn waits(mut self, time: Duration) -> Self {
        self.timeout += time;
        self
    }

    /// Says what must hold for the write to happen.
    #[must_use]
    pub fn only_if(mut self, precondition: Precondition) -> Self {
        self.precondition = precondition;
        self
    }

    /// Sets a text as the body.
    #[must_use]
    pub fn text_body(mut self, media_type: &'static str, text: String) -> Self {
        self.body = Body::Text { media_type, text };
        self
    }

    /// Sets a JSON value as the body.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn json_body<T: Serialize + ?Sized>(self, value: &T) -> Result<Self, CliError> {
        let text = serde_json::to_string(value).map_err(std::io::Error::from)?;
        Ok(self.text_body("application/json", text))
    }

    /// Sends it and reads JSON.
    ///
    /// # Errors
    /// The hub's problem, or that no hub answers.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, CliError> {
        let hub = self.client.address();
        let response = self.send_in_time("application/json").await?;
        let body = response.bytes().await.map_err(|error| unreachable(&hub, &error))?;
        serde_json::from_slice(&body).map_err(|error| CliError::Answer(error.to_string()))
    }

    /// Sends it and reads a text.
    ///
    /// # Errors
    /// As for [`Self::json`].
    pub async fn text(self) -> Result<TextReply, CliError> {
        let hub = self.client.address();
        let response = self.send_in_time("*/*").await?;
        let etag = header(response.headers(), ETAG.as_str()).map(unquoted);
        let layer = header(response.headers(), LAYER_HEADER).map(str::to_owned);
        let body = response.bytes().await.map_err(|error| unreachable(&hub, &error))?;
        let text = String::from_utf8(body.into()).map_err(|_| CliError::Answer("it is no text".to_owned()))?;
        Ok(TextReply { text, etag, layer })
    }

    /// Sends it and reads nothing.
    ///
    /// # Errors
    /// As for [`Self::json`].
    pub async fn done(self) -> Result<(), CliError> {
        self.send_in_time("application/json").await.map(drop)
    }

    async fn send_in_time(self, accept: &str) -> Result<Response, CliError> {
        let timeout = self.timeout;
        self.send(accept, Some(timeout)).await
    }

    /// Sends it. The body of the answer is still to come.
    pub(super) async fn send(self, accept: &str, timeout: Option<Duration>) -> Result<Response, CliError> {
        let hub = self.client.address();
        let response = self.built(accept, timeout).send().await.map_err(|error| unreachable(&hub, &error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let is_problem = header(response.headers(), CONTENT_TYPE.as_str()).is_some_and(|t| t.starts_with(PROBLEM_JSON));
        let body = response.bytes().await.map_err(|error| unreachable(&hub, &error))?;
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if is_problem => Err(CliError::Problem(Box::new(problem))),
            _ => Err(CliError::NoHub { url: hub, status: status.as_u16() }),
        }
    }

    fn built(self, accept: &str, timeout: Option<Duration>) -> RequestBuilder {
        let mut builder = self.client.http.request(self.method, self.url).bearer_auth(self.client.token.reveal());
        builder = builder.header(ACCEPT, accept);
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout);
        }
        for (name, value) in self.headers {
            builder = builder.header(name, value);
        }
        builder = match self.precondition {
            Precondition::None => builder,
            Precondition::Match(etag) => builder.header(IF_MATCH, quoted(&etag)),
            Precondition::Absent => builder.header(IF_NONE_MATCH, "*"),
        };
        match self.body {
            Body::None => builder,
            Body::Text { media_type, text } => builder.header(CONTENT_TYPE, media_type).body(text),
        }
    }
}

/// No answer: what to tell of it.
pub(super) fn unreachable(hub: &str, error: &reqwest::Error) -> CliError {
    let (reason, hint) = if error.is_timeout() {
        ("it took too long".to_owned(), None)
    } else if error.is_connect() {
        (innermost(error), Some("is the hub running? `footbridge up` starts one in this folder".to_owned()))
    } else {
        (innermost(error), None)
    };
    CliError::Unreachable { url: hub.to_owned(), reason, hint, maybe_sent: !error.is_connect() && !error.is_builder() }
}

/// The cause at the bottom: what is above it repeats the address.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.source().is_none() { error.to_string() } else { cause.to_string() }
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn quoted(etag: &str) -> String {
    if etag.starts_with('"') || etag == "*" { etag.to_owned() } else { format!("\"{etag}\"") }
}

fn unquoted(etag: &str) -> String {
    etag.trim_start_matches("W/").trim_matches('"').to_owned()
}
