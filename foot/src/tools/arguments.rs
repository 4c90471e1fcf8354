//! Arguments of a call: raw JSON, checked against the tool's schema before anything runs.

use std::sync::OnceLock;

use footbridge_shared::message::Raw;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;

/// Most faults that one failure names.
const MAX_FAULTS: usize = 10;
/// Longest text of one fault, in characters: it quotes the value.
const MAX_FAULT_CHARS: usize = 300;

/// The arguments of one call: a JSON object, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Arguments(Raw);

impl Arguments {
    /// Wraps what came as `arguments`.
    pub(crate) fn new(raw: Raw) -> Self {
        Self(raw)
    }

    /// The JSON text. `null` counts as no arguments.
    pub(crate) fn json(&self) -> &str {
        match self.0.get() {
            "null" => "{}",
            json => json,
        }
    }

    /// The JSON itself; `null` counts as an empty object.
    pub(crate) fn into_raw(self) -> Raw {
        if self.0.get() == "null" { super::output::raw(&serde_json::Map::new()) } else { self.0 }
    }

    /// Reads the arguments into the tool's own type.
    ///
    /// # Errors
    /// `invalid_arguments`; the schema check before this names the argument better.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(self.json())
            .map_err(|error| Failure::invalid_arguments(format!("the arguments do not fit: {error}")))
    }
}

/// An input schema.
pub(crate) struct ArgumentSchema {
    /// Its text, until it is compiled.
    text: String,
    /// `None` within: it cannot be compiled, and so nothing is checked.
    compiled: OnceLock<Option<jsonschema::Validator>>,
}

impl std::fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ArgumentSchema")
    }
}

impl ArgumentSchema {
    /// Compiles a schema. References to elsewhere are errors: nothing is fetched.
    pub(crate) fn compile(schema: &str) -> Result<Self, String> {
        let schema = parse(schema)?;
        let compiled = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
        Ok(Self { text: String::new(), compiled: OnceLock::from(Some(compiled)) })
    }

    /// Takes the schema of somebody else's tool. It is compiled when it is first needed; what then turns out to be of no use
    /// is left to whoever made it.
    pub(crate) fn foreign(schema: &str) -> Result<Self, String> {
        parse(schema)?;
        Ok(Self { text: schema.to_owned(), compiled: OnceLock::new() })
    }

    fn compiled(&self) -> Option<&jsonschema::Validator> {
        let compile = || {
            let compiled = parse(&self.text)
                .and_then(|schema| jsonschema::validator_for(&schema).map_err(|error| error.to_string()));
            compiled
                .inspect_err(|error| tracing::debug!(error, "arguments are not checked: their schema cannot be used"))
                .ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Checks arguments; the failure names each argument by its path.
    pub(crate) fn check(&self, arguments: &Arguments) -> Result<(), Failure> {
        let value: Value = arguments.parse()?;
        let Some(compiled) = self.compiled() else { return Ok(()) };
        let faults: Vec<String> = compiled
            .iter_errors(&value)
            .take(MAX_FAULTS)
            .map(|fault| {
                let path = fault.instance_path().to_string();
                let message: String = fault.to_string().chars().take(MAX_FAULT_CHARS).collect();
                if path.is_empty() { message } else { format!("`{path}`: {message}") }
            })
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(Failure::invalid_arguments(faults.join("; "))) }
    }
}

/// Reads a schema, which is of an object.
fn parse(schema: &str) -> Result<Value, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        Ok(schema)
    } else {
        Err("the schema is not of an object".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_shared::{ErrorCode, Outcome};
    use serde_json::json;

    fn check(schema: &Value, arguments: &Value) -> Result<(), Failure> {
        let schema = ArgumentSchema::compile(&schema.to_string()).unwrap();
        schema.check(&Arguments::new(crate::tools::output::raw(arguments)))
    }

    #[test]
    fn a_failure_names_each_argument_and_its_path() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
            "path": {"type": "string"}, "range": {"type": "object", "properties": {"from": {"type": "integer"}}}}});
        let failure = check(&schema, &json!({"range": {"from": "x"}, "pth": "a"})).unwrap_err();
        assert_eq!((failure.code, failure.outcome), (ErrorCode::InvalidArguments, Outcome::NotRun));
        for part in ["/range/from", "path", "pth"] {
            assert!(failure.message.contains(part), "{part} is missing in: {}", failure.message);
        }
        assert!(check(&schema, &json!({"path": "a"})).is_ok());
        assert!(check(&schema, &json!([])).is_err());
        assert!(check(&schema, &Value::Null).unwrap_err().message.contains("path"), "null is an empty object");
    }

    #[test]
    fn a_foreign_schema_that_is_of_no_use_leaves_the_check_to_its_server() {
        let check = |schema: Value| {
            let schema = ArgumentSchema::foreign(&schema.to_string()).unwrap();
            schema.check(&Arguments::new(crate::tools::output::raw(&json!({"a": 1})))).is_ok()
        };
        assert!(!check(json!({"type": "object", "properties": {"a": {"type": "string"}}})));
        assert!(check(json!({"type": "object", "properties": {"a": {"$ref": "https://example.invalid/x"}}})));
        assert!(ArgumentSchema::foreign("{}").is_err());
    }

    #[test]
    fn a_schema_is_of_an_object_and_fetches_nothing() {
        assert!(ArgumentSchema::compile("{\"type\": \"array\"}").is_err());
        assert!(ArgumentSchema::compile("{\"type\": \"object\", \"$ref\": \"https://example.invalid/x\"}").is_err());
    }
}
