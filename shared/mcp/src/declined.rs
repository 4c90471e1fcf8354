//! The answer to a question that nobody can be asked.

use serde_json::value::RawValue;

use crate::fields::read_field;
use crate::{Fields, Raw, RpcError, codes};

/// Whether a client that states these capabilities can be asked this, with these parameters.
pub fn can_be_asked(capabilities: &RawValue, method: &str, params: &RawValue) -> bool {
    let stated = |capability| read_field::<Raw>(capabilities, capability);
    let asks_for = |field| read_field::<Raw>(params, field).is_some();
    match method {
        "elicitation/create" => {
            let Some(kinds) = stated("elicitation").and_then(|kinds| Fields::of(&kinds)) else { return false };
            if read_field::<String>(params, "mode").as_deref() == Some("url") {
                kinds.get("url").is_some()
            } else {
                // It names none: forms were all there was.
                kinds.is_empty() || kinds.get("form").is_some()
            }
        }
        "sampling/createMessage" => {
            let with_tools = asks_for("tools") || asks_for("toolChoice");
            let can = |sampling: Raw| !with_tools || read_field::<Raw>(&sampling, "tools").is_some();
            stated("sampling").is_some_and(can)
        }
        "roots/list" => stated("roots").is_some(),
        _ => false,
    }
}

/// What is carried between a client and a server that asks it.
const EVERYTHING: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true}}"#;

/// The capabilities of somebody who can answer all that is carried: for servers whose clients come and go.
pub fn everything_carried() -> Raw {
    RawValue::from_string(EVERYTHING.to_owned()).unwrap_or_else(|_| Fields::new().to_raw())
}

/// The answer for a client that cannot answer this question, or is not there: no to what a person would be asked; an
/// error for the rest, as the protocol wants from a client that states no roots and no sampling.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_what_it_said_that_it_can_answer() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for (capabilities, method, params, can) in [
            ("{}", "elicitation/create", "{}", false),
            (r#"{"elicitation":{}}"#, "elicitation/create", "{}", true),
            (r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"url"}"#, false),
            (r#"{"elicitation":{"form":{}}}"#, "elicitation/create", r#"{"mode":"form"}"#, true),
            (r#"{"elicitation":{"form":{}}}"#, "elicitation/create", r#"{"mode":"url"}"#, false),
            (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", r#"{"mode":"url"}"#, true),
            (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", "{}", false),
            (r#"{"sampling":{}}"#, "sampling/createMessage", "{}", true),
            (r#"{"sampling":{}}"#, "sampling/createMessage", r#"{"tools":[]}"#, false),
            (r#"{"sampling":{"tools":{}}}"#, "sampling/createMessage", r#"{"toolChoice":{}}"#, true),
            (r#"{"roots":{}}"#, "roots/list", "{}", true),
            (r#"{"roots":{}}"#, "ping", "{}", false),
        ] {
            assert_eq!(can_be_asked(&raw(capabilities), method, &raw(params)), can, "{capabilities} {method} {params}");
        }
        for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
            assert!(can_be_asked(&everything_carried(), method, &raw(r#"{"mode":"url","tools":[]}"#)), "{method}");
        }
        assert_eq!(declined("roots/list").unwrap_err().code, codes::METHOD_NOT_FOUND);
        assert_eq!(declined("elicitation/create").unwrap().get(), r#"{"action":"decline"}"#);
    }
}
