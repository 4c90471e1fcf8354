//! JSON-RPC messages. What they carry is kept as it came.

use footbridge_shared::message::Raw;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::codes::{INVALID_REQUEST, PARSE_ERROR};
use crate::error::RpcError;
use crate::fields::{Name, first_entries};

/// Bytes of an id, as JSON. It is kept and repeated, by whoever sent it and by us; a longer one is none.
const MAX_ID_BYTES: usize = 1024;

/// How many messages a batch has at most.
const MAX_BATCH_MESSAGES: usize = 1000;

/// The id of a request: a JSON string or a number, kept as its text, so that it goes back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// An id that is a number.
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// An id as JSON. `None`: it is no text and no number, or has more than 1,024 bytes.
    pub fn of(json: &str) -> Option<Self> {
        let json = json.trim();
        let legal = match json.as_bytes().first() {
            _ if json.len() > MAX_ID_BYTES => false,
            Some(b'"') => serde_json::from_str::<Name<'_>>(json).is_ok(),
            _ => serde_json::from_str::<serde_json::Number>(json).is_ok(),
        };
        legal.then(|| Self(json.into()))
    }

    /// The number that it is or, as some servers answer, that its text or its float says.
    pub(crate) fn as_number(&self) -> Option<u64> {
        let digits = self.0.trim_matches('"');
        digits.strip_suffix(".0").unwrap_or(digits).parse().ok()
    }

    /// The id as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        Self::of(raw.get()).ok_or_else(|| serde::de::Error::custom(NO_ID))
    }
}

/// One JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message {
    /// Wants an answer.
    Request {
        /// To be answered under.
        id: RequestId,
        /// What is asked for.
        method: String,
        /// With what.
        params: Option<Raw>,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: String,
        /// With what.
        params: Option<Raw>,
    },
    /// Answers a request.
    Response {
        /// The request's; `None` if the other side could not read it.
        id: Option<RequestId>,
        /// The answer.
        outcome: Result<Raw, RpcError>,
    },
}

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    /// What is wrong with it: `PARSE_ERROR` or `INVALID_REQUEST`.
    pub fn parse(text: &str) -> Result<Self, RpcError> {
        let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => wrong(format!("this is no JSON-RPC message: {error}")),
            _ => RpcError::new(PARSE_ERROR, format!("this is no JSON: {error}")),
        })?;
        envelope.message()
    }

    /// Reads one message, or the several of a batch, which clients and servers of 2025-03-26 may send.
    ///
    /// # Errors
    /// As [`Message::parse`]; one message of a batch that is none spoils the whole, as one too many does.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, RpcError> {
        if !text.trim_start().starts_with('[') {
            return Ok(vec![Self::parse(text)?]);
        }
        let batch: Vec<&RawValue> = first_entries(text, MAX_BATCH_MESSAGES + 1)
            .map_err(|error| RpcError::new(PARSE_ERROR, format!("this is no JSON: {error}")))?;
        if batch.is_empty() {
            return Err(wrong("an empty batch is no message"));
        }
        if batch.len() > MAX_BATCH_MESSAGES {
            return Err(wrong(format!("a batch has at most {MAX_BATCH_MESSAGES} messages")));
        }
        batch.into_iter().map(|message| Self::parse(message.get())).collect()
    }

    /// Writes it, on one line: line ends between the values of what it carries become spaces.
    pub fn to_text(&self) -> String {
        match self {
            Self::Request { id, method, params } => call_text(Some(id), method, params.as_deref()),
            Self::Notification { method, params } => call_text(None, method, params.as_deref()),
            Self::Response { id, outcome } => response_text(id.as_ref(), outcome.as_deref()),
        }
    }
}

/// Writes a request, or without an id a notification, as [`Message::to_text`] does, without taking what it carries.
pub fn call_text(id: Option<&RequestId>, method: &str, params: Option<&RawValue>) -> String {
    let mut text = String::with_capacity(ENVELOPE_BYTES + params.map_or(0, |params| params.get().len()));
    write_call(&mut text, id, method, params);
    text
}

/// Writes an answer as [`Message::to_text`] does, without taking what it carries. `id` is `None` where the request could
/// not be read.
pub fn response_text(id: Option<&RequestId>, outcome: Result<&RawValue, &RpcError>) -> String {
    let payload = match outcome {
        Ok(result) => Some(result),
        Err(error) => error.data.as_deref(),
    };
    let mut text = String::with_capacity(ENVELOPE_BYTES + payload.map_or(0, |payload| payload.get().len()));
    text.push_str(START);
    text.push_str(r#","id":"#);
    text.push_str(id.map_or("null", RequestId::as_json));
    match outcome {
        Ok(result) => {
            text.push_str(r#","result":"#);
            push_on_one_line(&mut text, result.get());
        }
        Err(error) => {
            text.push_str(r#","error":{"code":"#);
            text.push_str(&error.code.to_string());
            text.push_str(r#","message":"#);
            push_string(&mut text, &error.message);
            if let Some(data) = &error.data {
                text.push_str(r#","data":"#);
                push_on_one_line(&mut text, data.get());
            }
            text.push('}');
        }
    }
    text.push('}');
    text
}

/// What is known of a message that is too long to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlined {
    /// It is a request.
    Request(RequestId),
    /// It answers a request.
    Response(RequestId),
    /// It is something else.
    Other,
}

impl Outlined {
    /// Reads an outline: a message without what is inside of its payload.
    pub fn of(outline: &[u8]) -> Self {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(outline) else { return Self::Other };
        envelope.outlined()
    }

    /// Reads the outlines of a batch, or of one message. Of a batch, those count that can be read.
    pub(crate) fn all(outline: &[u8]) -> Vec<Self> {
        if !outline.trim_ascii_start().starts_with(b"[") {
            return vec![Self::of(outline)];
        }
        let mut all = Vec::new();
        // It may be cut in the middle of a message.
        let _ = serde_json::Deserializer::from_slice(outline).deserialize_seq(Each(&mut all));
        all
    }
}

/// Notes the outline of each message of a batch, as far as it goes.
struct Each<'a>(&'a mut Vec<Outlined>);

impl<'de> Visitor<'de> for Each<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a batch")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(envelope) = seq.next_element::<Envelope<'_>>()? {
            self.0.push(envelope.outlined());
        }
        Ok(())
    }
}

/// What a message has beside its payload, in bytes; a guess that spares growing.
const ENVELOPE_BYTES: usize = 128;
/// What is wrong with an id that is none.
const NO_ID: &str = "an id is a text or a number of at most 1024 bytes";
const START: &str = r#"{"jsonrpc":"2.0""#;

/// Appends a request, or without an id a notification.
pub(crate) fn write_call(text: &mut String, id: Option<&RequestId>, method: &str, params: Option<&RawValue>) {
    start_call(text, id, method);
    if let Some(params) = params {
        text.push_str(r#","params":"#);
        push_on_one_line(text, params.get());
    }
    text.push('}');
}

/// Appends a call up to its parameters.
pub(crate) fn start_call(text: &mut String, id: Option<&RequestId>, method: &str) {
    text.push_str(START);
    if let Some(id) = id {
        text.push_str(r#","id":"#);
        text.push_str(id.as_json());
    }
    text.push_str(r#","method":"#);
    push_string(text, method);
}

/// Appends a string as JSON.
pub(crate) fn push_string(text: &mut String, string: &str) {
    // A string can always be written.
    text.push_str(&serde_json::to_string(string).unwrap_or_default());
}

/// Cuts a text that has more than so many bytes, between two characters. `true`: it had.
pub(crate) fn cut(text: &mut String, max_bytes: usize) -> bool {
    let is_longer = text.len() > max_bytes;
    if is_longer {
        text.truncate(text.floor_char_boundary(max_bytes));
        text.shrink_to_fit();
    }
    is_longer
}

/// Appends JSON without its line ends. Those are only between values: in a string they are escaped.
pub(crate) fn push_on_one_line(text: &mut String, json: &str) {
    let mut rest = json;
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
        text.push_str(&rest[..end]);
        text.push(' ');
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
}

fn wrong(why: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_REQUEST, why)
}

/// The fields of a message, still in its text.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<Name<'a>>,
    id: Option<&'a RawValue>,
    method: Option<Name<'a>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// What is known of it without its payload.
    fn outlined(self) -> Outlined {
        match (self.id.and_then(|id| RequestId::of(id.get())), self.method) {
            (Some(id), Some(_)) => Outlined::Request(id),
            (Some(id), None) => Outlined::Response(id),
            (None, _) => Outlined::Other,
        }
    }

    fn message(self) -> Result<Message, RpcError> {
        if self.jsonrpc.is_none_or(|jsonrpc| jsonrpc.0 != "2.0") {
            return Err(wrong("`jsonrpc` is not \"2.0\""));
        }
        let id = match self.id {
            None => None,
            Some(id) if id.get() == "null" => Some(None),
            Some(id) => Some(Some(RequestId::of(id.get()).ok_or_else(|| wrong(NO_ID))?)),
        };
        match (self.method, self.result, self.error) {
            (Some(Name(method)), None, None) => {
                let params = self.params.filter(|params| params.get() != "null").map(ToOwned::to_owned);
                let method = method.into_owned();
                match id {
                    Some(Some(id)) => Ok(Message::Request { id, method, params }),
                    Some(None) => Err(wrong("the id of a request is not null")),
                    None => Ok(Message::Notification { method, params }),
                }
            }
            (None, Some(result), None) => match id.flatten() {
                Some(id) => Ok(Message::Response { id: Some(id), outcome: Ok(result.to_owned()) }),
                None => Err(wrong("a result has an id")),
            },
            (None, None, Some(error)) => {
                let error = serde_json::from_str(error.get())
                    .map_err(|_| wrong("an error is an object with a `code` and a `message`"))?;
                Ok(Message::Response { id: id.flatten(), outcome: Err(error) })
            }
            (None, None, None) => Err(wrong("a message has a `method`, a `result` or an `error`")),
            _ => Err(wrong("a message is a request, or a result, or an error")),
        }
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Envelope<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(Name(name)) = map.next_key()? {
                    let twice = match name.as_ref() {
                        "jsonrpc" => envelope.jsonrpc.replace(map.next_value()?).is_some(),
                        "method" => envelope.method.replace(map.next_value()?).is_some(),
                        "id" => envelope.id.replace(map.next_value()?).is_some(),
                        "params" => envelope.params.replace(map.next_value()?).is_some(),
                        "result" => envelope.result.replace(map.next_value()?).is_some(),
                        "error" => envelope.error.replace(map.next_value()?).is_some(),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            false
                        }
                    };
                    if twice {
                        // Who reads the first and who reads the last would see different messages.
                        return Err(serde::de::Error::custom(format_args!("`{name}` is there twice")));
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests;
