//! JSON-RPC messages. What they carry is kept as it came.

use footbridge_shared::message::Raw;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::RpcError;

/// The id of a request: a JSON string or a number, kept as its text, so that it goes back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// An id that is a number.
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// The id as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let text = raw.get();
        let legal = text.starts_with('"') || serde_json::from_str::<serde_json::Number>(text).is_ok();
        if legal { Ok(Self(text.into())) } else { Err(serde::de::Error::custom("an id is a text or a number")) }
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

#[derive(Serialize, Deserialize)]
struct Wire {
    jsonrpc: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<RequestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    /// What is wrong with it: `PARSE_ERROR` or `INVALID_REQUEST`.
    pub fn parse(text: &str) -> Result<Self, RpcError> {
        let wire: Wire = serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                RpcError::new(crate::codes::INVALID_REQUEST, format!("this is no JSON-RPC message: {error}"))
            }
            _ => RpcError::new(crate::codes::PARSE_ERROR, format!("this is no JSON: {error}")),
        })?;
        let wrong = |why: &str| RpcError::new(crate::codes::INVALID_REQUEST, why);
        if wire.jsonrpc.as_deref() != Some("2.0") {
            return Err(wrong("`jsonrpc` is not \"2.0\""));
        }
        match wire {
            Wire { method: Some(_), result: Some(_), .. } | Wire { method: Some(_), error: Some(_), .. } => {
                Err(wrong("a message is either a request or an answer"))
            }
            Wire { method: Some(method), id: Some(id), params, .. } => Ok(Self::Request { id, method, params }),
            Wire { method: Some(method), id: None, params, .. } => Ok(Self::Notification { method, params }),
            Wire { result: Some(_), error: Some(_), .. } => Err(wrong("an answer is either a result or an error")),
            Wire { id: Some(id), result: Some(result), .. } => Ok(Self::Response { id: Some(id), outcome: Ok(result) }),
            Wire { id, error: Some(error), .. } => Ok(Self::Response { id, outcome: Err(error) }),
            _ => Err(wrong("a message has a `method`, a `result` or an `error`")),
        }
    }

    /// Writes it, on one line.
    pub fn to_text(&self) -> String {
        let empty = || Wire {
            jsonrpc: Some("2.0".to_owned()),
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
        };
        let wire = match self.clone() {
            Self::Request { id, method, params } => Wire { id: Some(id), method: Some(method), params, ..empty() },
            Self::Notification { method, params } => Wire { method: Some(method), params, ..empty() },
            Self::Response { id, outcome: Ok(result) } => Wire { id, result: Some(result), ..empty() },
            Self::Response { id, outcome: Err(error) } => Wire { id, error: Some(error), ..empty() },
        };
        // Ids, texts and raw values can always be written.
        to_raw_value(&wire).map(|raw| raw.get().to_owned()).unwrap_or_default()
    }
}
