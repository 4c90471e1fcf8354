//! The answer to a question that nobody can be asked.

use serde_json::value::RawValue;

use crate::{Fields, Raw, RpcError, codes};

/// What a client is asked, and what it states if it can answer that.
const CAPABILITIES: [(&str, &str); 3] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling"), ("roots/list", "roots")];

/// Whether a client that states these capabilities can be asked this.
pub fn can_be_asked(capabilities: &RawValue, method: &str) -> bool {
    let stated = Fields::of(capabilities).unwrap_or_default();
    CAPABILITIES.iter().any(|(asked, capability)| *asked == method && stated.get(capability).is_some())
}

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
