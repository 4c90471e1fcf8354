//! `tool_description`: what tools do and what arguments they take.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::BuiltIn;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::{Tool, ToolHandler};

/// Tools that one call describes; further names are `skipped`.
const MAX_NAMES: usize = 25;

pub(super) fn tool() -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "tool_description",
        description: "Describes tools by name: what each does and the schema of its arguments. At most 25 a call; further \
                      names come back in `skipped`, names that do not exist in `unknown`.",
        search_hint: "description and schema of tools",
        labels: &["read-only"],
        primary: true,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "required": ["names"],
            "properties": {"names": {
                "description": "Tool names: a list, or one text with commas.",
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}},
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(ToolDescription))
}

struct ToolDescription;

#[derive(Deserialize)]
struct Input {
    names: Names,
}

/// Models send lists as text often enough to take both.
enum Names {
    List(Vec<String>),
    Text(String),
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match value {
            serde_json::Value::String(text) => Ok(Self::Text(text)),
            list => serde_json::from_value(list).map(Self::List).map_err(serde::de::Error::custom),
        }
    }
}

impl Names {
    /// The names, trimmed, each once, in the order given.
    fn distinct(self) -> Vec<String> {
        let all = match self {
            Self::List(list) => list,
            Self::Text(text) => match serde_json::from_str::<Vec<String>>(&text) {
                Ok(list) => list,
                Err(_) => text.split(',').map(str::to_owned).collect(),
            },
        };
        let mut names: Vec<String> = Vec::new();
        for name in all.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    source: &'static str,
    labels: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    original_name: Option<&'a str>,
    activated: bool,
}

/// A tool whose document cannot be used.
#[derive(Serialize)]
struct Broken {
    name: String,
    reason: String,
}

#[derive(Serialize)]
struct Reply<'a> {
    tools: Vec<Described<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<Broken>,
    unknown: Vec<String>,
    skipped: Vec<String>,
}

#[async_trait]
impl ToolHandler for ToolDescription {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let mut names = arguments.parse::<Input>()?.names.distinct();
        let skipped = names.split_off(names.len().min(MAX_NAMES));
        let (mut found, mut unknown): (Vec<Arc<Tool>>, Vec<String>) = (Vec::new(), Vec::new());
        let mut broken = Vec::new();
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        for (name, tool) in names.iter().zip(ctx.tools.find_all(ctx, &asked).await?) {
            match tool {
                Ok(tool) => found.push(tool),
                Err(failure) if failure.code == ErrorCode::ToolBroken => {
                    broken.push(Broken { name: name.clone(), reason: failure.message });
                }
                Err(_) => unknown.push(name.chars().take(80).collect()),
            }
        }
        if found.is_empty() && broken.is_empty() {
            let message = format!("none of these names is a tool here: {}", unknown.join(", "));
            return Ok(ToolOutput::error(
                ErrorCode::UnknownTool,
                &message,
                Some("`tool_list` names the tools that can be called".to_owned()),
            ));
        }
        let tools = found.iter().map(|tool| describe(tool)).collect();
        Ok(ToolOutput::json(&Reply { tools, broken, unknown, skipped }))
    }
}

fn describe(tool: &Tool) -> Described<'_> {
    let spec = &tool.spec;
    Described {
        name: spec.name.as_str(),
        description: &spec.description,
        input_schema: &spec.input_schema,
        source: spec.origin.kind().as_str(),
        labels: &spec.labels,
        original_name: spec.original_name.as_deref(),
        activated: false,
    }
}
