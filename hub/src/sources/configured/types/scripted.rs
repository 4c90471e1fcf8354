//! `scripted`: a tool whose body is a script.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use footbridge_shared::message::Raw;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use super::{Built, BuiltTool, Prepared, ToolType};
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::document::{DocumentPath, DocumentReader, SCRIPTS};
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::script::{ScriptRequest, ScriptRunner};
use crate::domain::tool::ToolHandler;
use crate::sources::configured::inputs::{self, Input};
use crate::sources::configured::paths;
use crate::yaml::{KeyPath, Node, Problem, Value};

/// Wall-clock time of a script that does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wall-clock time a document may give its script, milliseconds.
const MAX_TIMEOUT_MS: u64 = 30_000;

/// The type.
pub(super) struct Scripted;

impl ToolType for Scripted {
    fn id(&self) -> &'static str {
        "scripted"
    }

    fn description(&self) -> &'static str {
        "Runs JavaScript in the sandbox. The inputs are top-level variables, `vance` is the host object, the value of the \
         last expression is the result: {value, durationMs}. Exactly one of `source` and `scriptPath` gives the script."
    }

    fn parameters(&self) -> Json {
        json!({
            "type": "object",
            "required": ["inputs"],
            "additionalProperties": false,
            "properties": {
                "engine": {"enum": ["javascript"], "default": "javascript"},
                "timeoutMs": {
                    "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS, "default": DEFAULT_TIMEOUT.as_millis() as u64,
                    "description": "Wall-clock time of one run, milliseconds.",
                },
                "inputs": inputs::schema_of_key(),
                "source": {"type": "string", "minLength": 1, "description": "The script itself."},
                "scriptPath": {
                    "type": "string",
                    "description": "Path of the script's document, under `scripts/`. Read at each call.",
                },
            },
        })
    }

    fn prepare(&self, parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Prepared> {
        let inputs = inputs::read(parameters.get("inputs")?, &path.key("inputs"), problems);
        let body = body(parameters, path, problems);
        let timeout = match parameters.get("timeoutMs").map(|node| &node.value) {
            Some(Value::Number(number, _)) => Duration::from_millis(number.as_u64()?),
            _ => DEFAULT_TIMEOUT,
        };
        let (inputs, body) = (inputs?, body?);
        Some(Box::new(move |deps, _| {
            Built::Tool(Box::new(BuiltTool {
                input_schema: inputs::input_schema(&inputs),
                output_schema: None,
                handler: Arc::new(Script {
                    inputs,
                    body,
                    timeout,
                    documents: deps.documents.clone(),
                    runner: deps.scripts.clone(),
                }),
            }))
        }))
    }
}

/// Where the script stands.
enum Body {
    Inline(String),
    Document(DocumentPath),
}

fn body(parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Body> {
    match (parameters.get("source"), parameters.get("scriptPath")) {
        (Some(source), None) => match source.as_text() {
            Some(text) if !text.trim().is_empty() => Some(Body::Inline(text.to_owned())),
            _ => {
                problems.push(Problem::new(source.at, path.key("source"), "the script is blank"));
                None
            }
        },
        (None, Some(document)) => {
            paths::under(&[SCRIPTS], document, &path.key("scriptPath"), problems).map(Body::Document)
        }
        (None, None) => {
            let message = "the script is missing: give `source` or `scriptPath`";
            problems.push(Problem::new(parameters.at, path.clone(), message));
            None
        }
        (Some(_), Some(document)) => {
            let message = "the script stands twice: `source` and `scriptPath` exclude each other";
            problems.push(Problem::new(document.at, path.key("scriptPath"), message));
            None
        }
    }
}

struct Script {
    inputs: Vec<Input>,
    body: Body,
    timeout: Duration,
    documents: Arc<dyn DocumentReader>,
    runner: Arc<dyn ScriptRunner>,
}

#[async_trait]
impl ToolHandler for Script {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let (name, source) = match &self.body {
            Body::Inline(source) => ("source".to_owned(), source.clone()),
            Body::Document(path) => match self.documents.read(&ctx.scope, path).await? {
                Some(found) => (path.to_string(), found.text),
                None => {
                    return Ok(ToolOutput::error(
                        ErrorCode::ScriptError,
                        &format!("there is no script document `{path}`"),
                        Some("write the document, or point `scriptPath` to another one".to_owned()),
                    ));
                }
            },
        };
        let mut given: HashMap<String, Raw> = arguments.parse()?;
        // An input that was left out is there nevertheless, so that a script can ask for it without an exception.
        let inputs = self
            .inputs
            .iter()
            .map(|input| (input.name.clone(), given.remove(&input.name).unwrap_or_else(|| RawValue::NULL.to_owned())))
            .collect();
        let params = arguments.into_raw();
        self.runner.run(ScriptRequest { name, source, inputs, params, timeout: self.timeout }, ctx).await
    }
}
