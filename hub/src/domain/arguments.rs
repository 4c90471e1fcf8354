//! Arguments of a call: raw JSON, checked against a schema where the hub runs the tool itself.

use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::Failure;

/// Most validation errors that one failure names.
const MAX_ARGUMENT_ERRORS: usize = 10;

/// The arguments of one call: a JSON object, as it came.
#[derive(Debug, Clone)]
pub struct Arguments(Raw);

impl Arguments {
    /// Wraps JSON that came as the arguments of a call. `null` counts as `{}`.
    pub fn new(raw: Raw) -> Self {
        if raw.get() == "null" { Self::empty() } else { Self(raw) }
    }

    /// No arguments.
    pub fn empty() -> Self {
        // `{}` is JSON.
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The JSON text.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The JSON text, for passing on.
    pub fn into_raw(self) -> Raw {
        self.0
    }

    /// Reads the arguments into a type of the tool's own.
    ///
    /// # Errors
    /// `invalid_arguments` when they do not fit; a schema check before this names the argument better.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(self.0.get()).map_err(|error| {
            Failure::not_run(ErrorCode::InvalidArguments, format!("the arguments do not fit: {error}"))
        })
    }
}

/// A compiled input schema.
pub struct ArgumentSchema(jsonschema::Validator);

impl std::fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ArgumentSchema")
    }
}

impl ArgumentSchema {
    /// Compiles a schema. References to elsewhere are errors: nothing is fetched.
    ///
    /// # Errors
    /// Says what is wrong with the schema.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks arguments. Nothing runs when they do not fit.
    ///
    /// # Errors
    /// `invalid_arguments`, whose message names each argument and its path; `details.errors` is `[{path, message}]`.
    pub fn check(&self, arguments: &Arguments) -> Result<(), Failure> {
        let value: Value = arguments.parse()?;
        if !value.is_object() {
            return Err(Failure::not_run(ErrorCode::InvalidArguments, "the arguments must be a JSON object"));
        }
        let errors: Vec<(String, String)> = self
            .0
            .iter_errors(&value)
            .take(MAX_ARGUMENT_ERRORS)
            .map(|error| (error.instance_path().to_string(), shortened(&error.to_string())))
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = errors
            .iter()
            .map(|(path, message)| if path.is_empty() { message.clone() } else { format!("{path}: {message}") })
            .collect();
        let details: Vec<Value> =
            errors.iter().map(|(path, message)| serde_json::json!({ "path": path, "message": message })).collect();
        Err(Failure::not_run(ErrorCode::InvalidArguments, shown.join("; "))
            .details(serde_json::json!({ "errors": details })))
    }
}

/// Validation messages quote the value, which may be large.
fn shortened(message: &str) -> String {
    const MAX_CHARS: usize = 300;
    if message.chars().count() <= MAX_CHARS {
        return message.to_owned();
    }
    let tail: String = message.chars().rev().take(MAX_CHARS / 2).collect::<Vec<_>>().into_iter().rev().collect();
    let head: String = message.chars().take(MAX_CHARS / 2).collect();
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: &Value) -> Arguments {
        Arguments::new(serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    #[test]
    fn a_failure_names_the_argument_and_its_path() {
        let schema = json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string"}, "box": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
        let schema = ArgumentSchema::compile(&schema);
        let message = |value: Value| match &schema {
            Ok(schema) => schema.check(&arguments(&value)).err().map(|f| f.message).unwrap_or_default(),
            Err(error) => error.clone(),
        };
        assert!(message(json!({})).contains("city"));
        assert!(message(json!({"city": "Ulm", "box": {"n": "x"}})).contains("/box/n"));
        assert_eq!(message(json!({"city": "Ulm"})), "");
        assert!(message(json!([])).contains("object"));
    }

    #[test]
    fn remote_references_are_refused() {
        assert!(ArgumentSchema::compile(&json!({"$ref": "https://example.invalid/x.json"})).is_err());
    }
}
