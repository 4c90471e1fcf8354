//! `mcp`: one tool of an MCP server, under a name of its own.

use footbridge_mcp::Raw;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;
use serde_json::value::to_raw_value;
use serde_json::{Value as Json, json};

use super::{Built, Link, Prepared, ToolType};
use crate::yaml::{KeyPath, Node, Problem, Value};

/// The type.
pub(super) struct Mcp;

impl ToolType for Mcp {
    fn id(&self) -> &'static str {
        "mcp"
    }

    fn description(&self) -> &'static str {
        "Offers one tool of an MCP server under this document's name. The server is an `mcp_server` document of the same scope; \
         it need not offer the tool itself. Until the server was listed, calls are answered `server_unavailable`; where there is no such server, or it lists \
         no such tool, `tool_broken`."
    }

    fn parameters(&self) -> Json {
        json!({
            "type": "object",
            "required": ["server", "toolName"],
            "additionalProperties": false,
            "properties": {
                "server": {"type": "string", "minLength": 1, "description": "The name of an `mcp_server` document."},
                "toolName": {"type": "string", "minLength": 1, "description": "The tool's name on the server."},
                "defaultArgs": {"type": "object", "description": "Arguments for what the caller leaves out."},
            },
        })
    }

    fn prepare(&self, parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Prepared> {
        let name = parameters.get("server")?;
        let server = match EntryName::parse(name.as_text()?) {
            Ok(server) => server,
            Err(error) => {
                let problem = Problem::new(name.at, path.key("server"), error.to_string());
                problems.push(problem.code(ErrorCode::InvalidName));
                return None;
            }
        };
        let original = parameters.get("toolName")?.as_text()?.to_owned();
        let defaults = match parameters.get("defaultArgs").map(|node| &node.value) {
            Some(Value::Map(entries)) => entries
                .iter()
                .filter_map(|entry| Some((entry.key.clone(), to_raw_value(&entry.node.to_json()).ok()?)))
                .collect::<Vec<(String, Raw)>>(),
            _ => Vec::new(),
        };
        Some(Box::new(move |_, _| Built::Link(Link { server, original, defaults })))
    }
}
