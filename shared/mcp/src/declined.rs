//! The answer to a question that nobody can be asked.

use serde_json::value::RawValue;

use crate::{Raw, RpcError, codes};

/// The answer for a client that cannot answer this question, or is not there: no to what a person would be asked, nothing
/// of what could be listed, an error for the rest.
///
/// # Errors
/// For methods that have no answer that says no.
pub fn declined(method: &str) -> Result<Raw, RpcError> {
    let answer = |text: &str| {
        RawValue::from_string(text.to_owned()).map_err(|error| RpcError::new(codes::INTERNAL_ERROR, error.to_string()))
    };
    match method {
        "elicitation/create" => answer(r#"{"action":"decline"}"#),
        "ping" => answer("{}"),
        _ => Err(RpcError::new(codes::METHOD_NOT_FOUND, "no client that can answer this is there")),
    }
}
