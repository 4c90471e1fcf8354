//! JSON-RPC messages, taken apart one level deep by code of the tests' own.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// JSON as it came.
pub type Raw = Box<RawValue>;

/// Any message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Message {
    /// `2.0`
    pub jsonrpc: String,
    /// The id, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Raw>,
    /// What is asked for or told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// With what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Raw>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Raw>,
    /// Or why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Raw>,
}

impl Message {
    /// Reads one.
    ///
    /// # Errors
    /// When it is no JSON-RPC message.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of the id.
    pub fn id_text(&self) -> &str {
        self.id.as_ref().map_or("", |id| id.get())
    }

    /// The parameters as a value; `null` without any.
    pub fn params_value(&self) -> serde_json::Value {
        self.params.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The result as a value; `null` without one.
    pub fn result_value(&self) -> serde_json::Value {
        self.result.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The error as a value; `null` without one.
    pub fn error_value(&self) -> serde_json::Value {
        self.error.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

/// JSON from a text that is known to be some.
///
/// # Errors
/// When it is none.
pub fn raw(text: &str) -> Result<Raw, serde_json::Error> {
    RawValue::from_string(text.to_owned())
}

/// A result, written as it is.
pub fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// An error, written as it is.
pub fn error(id: &str, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// A request, written as it is.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A notification, written as it is.
pub fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}
