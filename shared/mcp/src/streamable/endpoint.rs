//! One endpoint of a server: POST, GET and DELETE there, and what their answers mean.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use footbridge_shared::ErrorCode;
use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use footbridge_shared::text::clean_and_cut;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::RwLock;
use reqwest::{Method, Response};
use serde_json::value::RawValue;

use super::events::EventStream;
use crate::client::HttpTarget;
use crate::codes::HEADER_MISMATCH;
use crate::fields::read_field;
use crate::headers::{self, ParamHeaders};
use crate::message::Message;
use crate::turns;
use crate::version::{Lifecycle, Version};

/// Characters of a cause that are told.
const MAX_REASON_CHARS: usize = 300;
/// The media type of a problem.
const PROBLEM_JSON: &str = "application/problem+json";
/// Bytes of a problem that is read.
const MAX_PROBLEM_BYTES: usize = 16 * 1024;

/// How a message is spoken over HTTP: its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Speech {
    version: Option<HeaderValue>,
    is_stateless: bool,
    names: HeaderMap,
}

impl Speech {
    /// In this version; `None` before one is agreed on.
    pub(crate) fn of(version: Option<Version>) -> Self {
        version.map_or_else(Self::default, |version| Self::named(version.as_str()))
    }

    /// In the version of that text, which need not be one that is known here.
    pub(crate) fn named(version: &str) -> Self {
        let lifecycle = Version::parse(version).map(Version::lifecycle);
        // Versions are dates.
        let is_newer = version > Version::LATEST.as_str();
        Self {
            version: HeaderValue::from_str(version).ok(),
            is_stateless: lifecycle.map_or(is_newer, |lifecycle| lifecycle == Lifecycle::Stateless),
            names: HeaderMap::new(),
        }
    }

    /// Whether every request says who asks.
    pub(crate) const fn is_stateless(&self) -> bool {
        self.is_stateless
    }

    /// With the headers that repeat what a request is, where the version has those.
    pub(crate) fn with_names(
        mut self,
        method: &str,
        params: Option<&RawValue>,
        param_headers: Option<&ParamHeaders>,
    ) -> Self {
        if self.is_stateless {
            headers::put_standard(&mut self.names, method, params, param_headers);
        }
        self
    }

    /// The same, for what is no such request.
    pub(crate) fn without_names(&self) -> Self {
        Self { names: HeaderMap::new(), ..self.clone() }
    }

    fn put(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.names {
            headers.insert(name, value.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(&headers::PROTOCOL_VERSION, version.clone());
        }
    }
}

/// What a POST was answered with.
pub(crate) enum Posted {
    /// It was taken.
    Nothing,
    /// Messages; an error of JSON-RPC too, whatever its status.
    Messages(Vec<Message>),
    /// A stream of them.
    Stream(Box<EventStream>),
}

/// Why there is no such answer.
#[derive(Debug)]
pub(crate) enum PostError {
    /// It certainly did not reach the server.
    NotSent(String),
    /// It may have.
    Lost(String),
    /// 401 or 403.
    Unauthorized(Refusal),
    /// The server does not know the session. It did nothing.
    Forgotten,
    /// A status, and no message.
    Status(Refusal),
    /// No message, and no status that says why.
    BadAnswer(String),
}

/// An HTTP status that refuses.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// What the server says of it, where that is a problem of RFC 9457: `detail`, and the `hint` that hubs give. It is to
    /// be shown to whoever chose the server alone.
    pub(crate) said: Option<String>,
    /// The stable code of that problem.
    pub(crate) code: Option<ErrorCode>,
    /// When to try again, where the server says it in seconds.
    pub(crate) retry_after: Option<Duration>,
}

/// A server's endpoint, and the session there.
pub(crate) struct Endpoint {
    target: HttpTarget,
    session: RwLock<Option<HeaderValue>>,
    /// The server said that it does not know the session.
    forgotten: AtomicBool,
}

impl Endpoint {
    pub(crate) fn new(target: HttpTarget) -> Self {
        Self { target, session: RwLock::default(), forgotten: AtomicBool::new(false) }
    }

    /// The session, if the server opened one.
    pub(crate) fn session(&self) -> Option<HeaderValue> {
        self.session.read().clone()
    }

    /// Whether the server does not know the session any more.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Acquire)
    }

    /// The server does not know the session any more.
    pub(crate) fn set_forgotten(&self) {
        self.forgotten.store(true, Ordering::Release);
    }

    /// Sends a message.
    pub(crate) async fn post(&self, text: String, speech: &Speech) -> Result<Posted, PostError> {
        let mut headers = self.headers(speech, headers::JSON_OR_EVENT_STREAM);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(headers::JSON));
        // What is said before a version is agreed on opens a session, and belongs to none.
        let session = speech.version.as_ref().and_then(|_| self.session());
        put_session(&mut headers, session.as_ref());
        let request = self.target.client.post(self.target.url.clone()).headers(headers).body(text);
        let response = request.send().await.map_err(|error| send_error(&error))?;
        if speech.version.is_none()
            && let Some(opened) = response.headers().get(&headers::SESSION_ID)
        {
            *self.session.write() = Some(opened.clone());
        }
        posted(response, session.is_some()).await
    }

    /// Opens a stream: a server's own, or one that goes on after an event.
    pub(crate) async fn get(&self, speech: &Speech, after: Option<&str>) -> Result<EventStream, PostError> {
        let mut headers = self.headers(speech, headers::EVENT_STREAM);
        let session = self.session();
        put_session(&mut headers, session.as_ref());
        if let Some(after) = after.and_then(|after| HeaderValue::from_bytes(after.as_bytes()).ok()) {
            headers.insert(&headers::LAST_EVENT_ID, after);
        }
        let request = self.target.client.get(self.target.url.clone()).headers(headers);
        let mut response = request.send().await.map_err(|error| send_error(&error))?;
        match response.status() {
            status if status.is_success() && is_media(&response, headers::EVENT_STREAM) => {
                Ok(EventStream::new(response))
            }
            StatusCode::NOT_FOUND if session.is_some() => Err(PostError::Forgotten),
            _ => Err(refusal(&mut response).await),
        }
    }

    /// Where it is, as it can be shown: without what may be a credential.
    pub(crate) fn place(&self) -> String {
        let url = &self.target.url;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
    }

    /// Ends the session at the server, if there is one.
    pub(crate) async fn delete(&self, speech: &Speech) {
        let Some(session) = self.session.write().take() else { return };
        let mut headers = self.headers(speech, headers::JSON_OR_EVENT_STREAM);
        put_session(&mut headers, Some(&session));
        let request = self.target.client.request(Method::DELETE, self.target.url.clone()).headers(headers);
        if let Err(error) = request.send().await {
            tracing::debug!(why = %reason(&error), "a session was not ended at its MCP server");
        }
    }

    fn headers(&self, speech: &Speech, accept: &'static str) -> HeaderMap {
        let mut headers = self.target.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        speech.put(&mut headers);
        headers
    }
}

fn put_session(headers: &mut HeaderMap, session: Option<&HeaderValue>) {
    headers.remove(&headers::SESSION_ID);
    if let Some(session) = session {
        headers.insert(&headers::SESSION_ID, session.clone());
    }
}

async fn posted(mut response: Response, in_session: bool) -> Result<Posted, PostError> {
    let status = response.status();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(refusal(&mut response).await);
    }
    if status == StatusCode::NOT_FOUND && in_session {
        return Err(PostError::Forgotten);
    }
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(Posted::Nothing);
    }
    if status.is_success() && is_media(&response, headers::EVENT_STREAM) {
        return Ok(Posted::Stream(Box::new(EventStream::new(response))));
    }
    if !is_media(&response, headers::JSON) {
        return match status.is_success() {
            true if response.content_length() == Some(0) => Ok(Posted::Nothing),
            true => Err(PostError::BadAnswer("it is neither JSON nor a stream of events".to_owned())),
            false => Err(refusal(&mut response).await),
        };
    }
    let body = read_body(&mut response, MAX_MESSAGE_BYTES).await?;
    if status.is_success() && body.is_empty() {
        return Ok(Posted::Nothing);
    }
    let messages = std::str::from_utf8(&body).ok().and_then(|text| Message::parse_all(text).ok());
    match messages {
        Some(messages) if status.is_success() => Ok(Posted::Messages(messages)),
        Some(messages) if matches!(messages[..], [Message::Response { outcome: Err(_), .. }]) => {
            if in_session && status == StatusCode::BAD_REQUEST && speaks_of_session(&messages[0]) {
                return Err(PostError::Forgotten);
            }
            Ok(Posted::Messages(messages))
        }
        _ if status.is_success() => Err(PostError::BadAnswer("it is no message of JSON-RPC".to_owned())),
        _ => Err(refusal(&mut response).await),
    }
}

/// Whether a request with a session was refused because of that: many servers say 400 for a session they do not know, in
/// an error that belongs to no request.
fn speaks_of_session(message: &Message) -> bool {
    matches!(message, Message::Response { id: None, outcome: Err(error) }
        if error.code != HEADER_MISMATCH && error.message.to_ascii_lowercase().contains("session"))
}

async fn refusal(response: &mut Response) -> PostError {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
    let (code, said) = problem(response).await.unwrap_or_default();
    let retry_after = retry_after.map(Duration::from_secs);
    let refusal = Refusal { status: status.as_u16(), said, code, retry_after };
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => PostError::Unauthorized(refusal),
        _ => PostError::Status(refusal),
    }
}

/// What a response says that is a problem, and its code. `None`: it is none, or a large one.
async fn problem(response: &mut Response) -> Option<(Option<ErrorCode>, Option<String>)> {
    if !is_media(response, PROBLEM_JSON) {
        return None;
    }
    let body = read_body(response, MAX_PROBLEM_BYTES).await.ok()?;
    let problem: &RawValue = serde_json::from_slice(&body).ok()?;
    let said: Vec<String> = ["detail", "hint"]
        .iter()
        .filter_map(|field| read_field::<String>(problem, field))
        .map(|text| clean_and_cut(text.trim(), MAX_REASON_CHARS))
        .filter(|text| !text.is_empty())
        .collect();
    let code = read_field::<String>(problem, "code").and_then(|code| ErrorCode::from_text(&code));
    Some((code, (!said.is_empty()).then(|| said.join("; "))))
}

async fn read_body(response: &mut Response, max_bytes: usize) -> Result<Vec<u8>, PostError> {
    let too_large = || PostError::BadAnswer(format!("it has more than {max_bytes} bytes"));
    let announced = response.content_length().unwrap_or_default();
    let announced = usize::try_from(announced).ok().filter(|bytes| *bytes <= max_bytes).ok_or_else(too_large)?;
    let mut body = Vec::with_capacity(announced);
    while let Some(piece) = response.chunk().await.map_err(|error| PostError::Lost(reason(&error)))? {
        if body.len() + piece.len() > max_bytes {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
        turns::after(piece.len()).await;
    }
    Ok(body)
}

fn is_media(response: &Response, media: &str) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media)
}

fn send_error(error: &reqwest::Error) -> PostError {
    let sent = !(error.is_connect() || error.is_builder());
    if sent { PostError::Lost(reason(error)) } else { PostError::NotSent(reason(error)) }
}

/// What went wrong at the bottom of it. The address is left out: it may hold a credential.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    let text = match cause {
        Some(cause) => cause.to_string(),
        None if error.is_timeout() => "it took too long".to_owned(),
        None => "the HTTP request failed".to_owned(),
    };
    clean_and_cut(&text, MAX_REASON_CHARS)
}
