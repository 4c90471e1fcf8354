//! The headers that say what is in the body, for whoever routes without reading it: they must say the same.

use axum::http::HeaderMap;
use footbridge_mcp::headers::{ParamHeaders, check_standard, name_field};
use footbridge_mcp::{Fields, Raw, RpcError, codes};

use super::message::Request;

/// Header and body differ.
pub(super) fn mismatch(message: impl Into<String>) -> RpcError {
    RpcError::new(codes::HEADER_MISMATCH, message)
}

/// Checks the header that names the method.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    check_standard(headers, method, None, None).map_err(mismatch)
}

/// As [`check_method`], for a request that may come without.
pub(super) fn check_method_if_there(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    if headers.contains_key("mcp-method") { check_method(headers, method) } else { Ok(()) }
}

/// Checks the headers of a request, but those of arguments.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    let method = request.method.as_str();
    check_standard(headers, method, Some(&only(name_field(method), &request.params)), None).map_err(mismatch)
}

/// Checks the headers of a call's arguments, which the tool's schema names. A schema that names them wrongly names none.
pub(super) fn check_arguments(headers: &HeaderMap, schema: &Raw, params: &Fields) -> Result<(), RpcError> {
    match ParamHeaders::of(schema) {
        Ok(named) if !named.is_empty() => {
            named.check(headers, Some(&only(Some("arguments"), params))).map_err(mismatch)
        }
        _ => Ok(()),
    }
}

/// Parameters with this field alone.
fn only(field: Option<&str>, params: &Fields) -> Raw {
    let mut fields = Fields::new();
    if let Some((field, value)) = field.and_then(|field| Some((field, params.get(field)?))) {
        fields.set(field, value.clone());
    }
    fields.to_raw()
}
