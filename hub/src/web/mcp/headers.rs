//! The headers that say what is in the body, for whoever routes without reading it: they must say the same.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use footbridge_mcp::{Fields, Raw, RpcError};
use serde_json::Value;

use super::message::Request;

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM_PREFIX: &str = "mcp-param-";
/// The keyword of a schema that names the header of an argument.
const KEYWORD: &str = "x-mcp-header";
/// How deep in a schema it is looked for.
const MAX_DEPTH: usize = 16;

/// Header and body differ.
pub(super) fn mismatch(message: impl Into<String>) -> RpcError {
    /// Of 2026-07-28.
    const HEADER_MISMATCH: i64 = -32020;
    RpcError::new(HEADER_MISMATCH, message)
}

/// A header that stands once at most.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(mismatch(format!("the header {name} stands twice")));
    }
    value.to_str().map(Some).map_err(|_| mismatch(format!("the header {name} is not visible ASCII text")))
}

/// The text that a header stands for: as it is, or `=?base64?…?=`.
fn decoded(name: &str, value: &str) -> Result<String, RpcError> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let bytes = STANDARD.decode(inner).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch(format!("the header {name} is no base64 of UTF-8 text")))
}

/// Checks the header that names the method.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    match single(headers, METHOD)? {
        None => Err(mismatch("the header Mcp-Method is missing")),
        Some(value) if value != method => Err(mismatch("the header Mcp-Method is not the method of the body")),
        Some(_) => Ok(()),
    }
}

/// As [`check_method`], for a request that may come without.
pub(super) fn check_method_if_there(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    if headers.contains_key(METHOD) { check_method(headers, method) } else { Ok(()) }
}

/// Checks the headers of a request, but those of arguments.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    check_method(headers, &request.method)?;
    let field = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(expected) = request.params.read::<String>(field) else { return Ok(()) };
    let Some(value) = single(headers, NAME)? else { return Err(mismatch("the header Mcp-Name is missing")) };
    if decoded(NAME, value)? == expected {
        Ok(())
    } else {
        Err(mismatch(format!("the header Mcp-Name is not `params.{field}`")))
    }
}

/// Checks the headers of a call's arguments, which the tool's schema names.
pub(super) fn check_arguments(headers: &HeaderMap, schema: &Raw, arguments: Option<&Raw>) -> Result<(), RpcError> {
    if !schema.get().contains(KEYWORD) {
        return Ok(());
    }
    let Ok(schema) = serde_json::from_str::<Value>(schema.get()) else { return Ok(()) };
    let mut named = Vec::new();
    collect(&schema, &mut Vec::new(), &mut named);
    for (path, header) in named {
        let name = format!("{PARAM_PREFIX}{}", header.to_ascii_lowercase());
        let value = single(headers, &name)?;
        let argument = arguments.and_then(|arguments| at(arguments, &path));
        let argument = argument.as_ref().and_then(text_of);
        let shown = path.join(".");
        match (value, argument) {
            (None, None) => {}
            (Some(_), None) => {
                return Err(mismatch(format!("the header {name} is there, the argument `{shown}` is not")));
            }
            (None, Some(_)) => return Err(mismatch(format!("the header {name} of the argument `{shown}` is missing"))),
            (Some(value), Some(argument)) if decoded(&name, value)? == argument => {}
            (Some(_), Some(_)) => return Err(mismatch(format!("the header {name} is not the argument `{shown}`"))),
        }
    }
    Ok(())
}

/// Arguments that have headers: those that are reached by names of properties alone.
fn collect<'a>(schema: &'a Value, path: &mut Vec<&'a str>, named: &mut Vec<(Vec<&'a str>, &'a str)>) {
    if path.len() >= MAX_DEPTH {
        return;
    }
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        path.push(name);
        if let Some(header) = property.get(KEYWORD).and_then(Value::as_str).filter(|header| !header.is_empty()) {
            named.push((path.clone(), header));
        }
        collect(property, path, named);
        path.pop();
    }
}

fn at(arguments: &Raw, path: &[&str]) -> Option<Raw> {
    let mut value = arguments.clone();
    for name in path {
        value = Fields::of(&value)?.take(name)?;
    }
    Some(value)
}

/// A text, number or truth value as a header says it.
fn text_of(value: &Raw) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn checked(header: Option<&str>, arguments: &str) -> bool {
        let schema = r#"{"properties":{"place":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}}"#;
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("mcp-param-region", HeaderValue::from_str(header).unwrap());
        }
        let raw = |text: &str| serde_json::from_str::<Raw>(text).unwrap();
        check_arguments(&headers, &raw(schema), Some(&raw(arguments))).is_ok()
    }

    #[test]
    fn headers_of_arguments_say_what_the_arguments_say() {
        assert!(checked(Some("eu"), r#"{"place":{"region":"eu"}}"#));
        assert!(checked(Some("=?base64?ZcO8?="), r#"{"place":{"region":"eü"}}"#));
        assert!(checked(None, r#"{"place":{"region":null}}"#));
        assert!(!checked(Some("us"), r#"{"place":{"region":"eu"}}"#));
        assert!(!checked(None, r#"{"place":{"region":"eu"}}"#));
        assert!(!checked(Some("eu"), r#"{"place":{}}"#));
        assert!(!checked(Some("=?base64?!?="), r#"{"place":{"region":"eu"}}"#));
    }

    #[test]
    fn a_header_that_stands_twice_is_none() {
        let mut headers = HeaderMap::new();
        headers.append(METHOD, HeaderValue::from_static("ping"));
        assert!(check_method(&headers, "ping").is_ok());
        headers.append(METHOD, HeaderValue::from_static("tools/call"));
        assert!(check_method(&headers, "ping").is_err());
    }
}
