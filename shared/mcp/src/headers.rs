//! The headers of MCP over HTTP, for both ends: their names, how a value becomes one, and what they must say.
//!
//! From 2026-07-28 on a request repeats in headers what it is: `Mcp-Method`, `Mcp-Name`, and `Mcp-Param-*` for arguments
//! whose schema says so. Whoever routes requests can then do so without reading bodies, and a server refuses a request
//! whose headers and body differ ([`crate::codes::HEADER_MISMATCH`]).

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;

mod params;

pub use params::ParamHeaders;

/// The session of a request, under the session lifecycle.
pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The version that was negotiated.
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the body's message.
pub static METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What the method is about: a tool, a prompt, a resource, a task.
pub static NAME: HeaderName = HeaderName::from_static("mcp-name");
/// What the headers that repeat arguments begin with.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// After which event a stream is to go on.
pub static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The media type of one message, or several.
pub const JSON: &str = "application/json";
/// The media type of a stream of messages.
pub const EVENT_STREAM: &str = "text/event-stream";
/// What a client that POSTs accepts: it may be answered by one message or a stream of them.
pub const JSON_OR_EVENT_STREAM: &str = "application/json, text/event-stream";

/// How a value begins that would not survive as it is.
const ENCODED_START: &str = "=?base64?";
/// How such a value ends.
const ENCODED_END: &str = "?=";

/// Which field of a method's `params` is in `Mcp-Name`. `None`: that method has no such header.
pub fn name_field(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// What `Mcp-Name` of a request has to say. `None`: nothing.
pub fn name_of(method: &str, params: Option<&RawValue>) -> Option<String> {
    crate::fields::read_field(params?, name_field(method)?)
}

/// A value as it goes into a header: itself, or wrapped in Base64 where it would not survive.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let looks_encoded = value.starts_with(ENCODED_START) && value.ends_with(ENCODED_END);
    let has_edges = value.starts_with(' ') || value.ends_with(' ');
    let survives = !looks_encoded && !has_edges && value.bytes().all(|byte| matches!(byte, 0x20..=0x7E));
    if survives {
        value.into()
    } else {
        format!("{ENCODED_START}{}{ENCODED_END}", BASE64_STANDARD.encode(value)).into()
    }
}

/// The value that a header holds. `None`: it is wrapped, and what is wrapped is no text.
pub fn decode_value(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix(ENCODED_START).and_then(|rest| rest.strip_suffix(ENCODED_END)) {
        None => Some(value.into()),
        Some(wrapped) => String::from_utf8(BASE64_STANDARD.decode(wrapped).ok()?).ok().map(Cow::Owned),
    }
}

/// A value as a header's value.
pub(crate) fn header_value(value: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&encode_value(value)).ok()
}

/// Puts the headers of a request or notification under 2026-07-28 into `headers`.
pub fn put_standard(
    headers: &mut HeaderMap,
    method: &str,
    params: Option<&RawValue>,
    param_headers: Option<&ParamHeaders>,
) {
    headers.extend(HeaderValue::from_str(method).ok().map(|value| (METHOD.clone(), value)));
    let name = name_of(method, params).as_deref().and_then(header_value);
    headers.extend(name.map(|value| (NAME.clone(), value)));
    if let (Some(param_headers), Some(params), "tools/call") = (param_headers, params, method) {
        param_headers.put(headers, params);
    }
}

/// Checks the headers of a request or notification under 2026-07-28 against its body.
///
/// # Errors
/// What does not fit, to be answered with [`crate::codes::HEADER_MISMATCH`] and HTTP 400.
pub fn check_standard(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
    param_headers: Option<&ParamHeaders>,
) -> Result<(), String> {
    match the_one(headers, METHOD.as_str())? {
        None => return Err("the header Mcp-Method is missing".to_owned()),
        Some(value) if value != method => return Err("the header Mcp-Method is not the body's method".to_owned()),
        Some(_) => {}
    }
    if let Some(name) = name_of(method, params) {
        match the_one(headers, NAME.as_str())? {
            None => return Err("the header Mcp-Name is missing".to_owned()),
            Some(value) if decode_value(value).as_deref() != Some(name.as_str()) => {
                return Err("the header Mcp-Name is not what the body names".to_owned());
            }
            Some(_) => {}
        }
    }
    if let (Some(param_headers), "tools/call") = (param_headers, method) {
        param_headers.check(headers, params)?;
    }
    Ok(())
}

/// The value of a header that must not come twice: who reads the first and who reads the last would differ.
fn the_one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("the header {name} is there twice"));
    }
    value.to_str().map(Some).map_err(|_| format!("the header {name} has characters that no header has"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_would_not_survive_is_wrapped() {
        assert_eq!(encode_value("us-west1"), "us-west1");
        assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
        assert_eq!(encode_value(" x"), "=?base64?IHg=?=");
        assert_eq!(encode_value("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
        assert_eq!(decode_value("=?base64?!?="), None);
    }

    proptest! {
        #[test]
        fn every_value_comes_back(value: String) {
            let encoded = encode_value(&value).into_owned();
            let header = HeaderValue::from_str(&encoded).unwrap();
            prop_assert_eq!(header.to_str().unwrap().trim(), encoded.as_str());
            let decoded = decode_value(&encoded).unwrap();
            prop_assert_eq!(decoded.as_ref(), value.as_str());
        }
    }

    #[test]
    fn headers_and_body_have_to_agree() {
        let params = raw(r#"{"name":"get weather é","arguments":{}}"#);
        let mut headers = HeaderMap::new();
        assert!(check_standard(&headers, "tools/call", Some(&params), None).unwrap_err().contains("Mcp-Method"));
        put_standard(&mut headers, "tools/call", Some(&params), None);
        check_standard(&headers, "tools/call", Some(&params), None).unwrap();
        let other = raw(r#"{"name":"another"}"#);
        assert!(check_standard(&headers, "tools/call", Some(&other), None).unwrap_err().contains("Mcp-Name"));
        assert!(check_standard(&headers, "tools/list", None, None).is_err());
        headers.append(&NAME, HeaderValue::from_static("x"));
        assert!(check_standard(&headers, "tools/call", Some(&params), None).unwrap_err().contains("twice"));
    }

    #[test]
    fn methods_name_what_they_are_about() {
        assert_eq!(name_of("resources/read", Some(&raw(r#"{"uri":"a://b"}"#))).as_deref(), Some("a://b"));
        assert_eq!(name_of("tasks/get", Some(&raw(r#"{"taskId":"7"}"#))).as_deref(), Some("7"));
        assert_eq!(name_of("tools/list", Some(&raw(r#"{"name":"x"}"#))), None);
        assert_eq!(name_of("tools/call", Some(&raw(r#"{"name":7}"#))), None);
        assert_eq!(name_of("tools/call", None), None);
    }
}
