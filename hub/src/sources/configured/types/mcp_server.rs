//! `mcp_server`: the tools of an MCP server as a pack.

mod parameters;

use std::sync::Arc;

use footbridge_shared::id::Subject;
use serde_json::{Value as Json, json};

use super::auth::{schema_of_auth, schema_of_tls};
use super::{Built, Pack, Prepared, ToolType};
use crate::domain::scope::Scope;
use crate::domain::tool::Tool;
use crate::sources::configured::mcp::Attachment;
use crate::sources::configured::mcp::config::{DEFAULT_CALL_TIMEOUT, DEFAULT_INIT_TIMEOUT};
use crate::sources::configured::status::PackStatus;
use crate::yaml::{KeyPath, Node, Problem};

/// Longest `timeoutSeconds`: one hour without a sign of life.
const MAX_CALL_SECONDS: u64 = 3_600;
/// Longest `initTimeoutSeconds`.
const MAX_INIT_SECONDS: u64 = 600;
/// Most calls that a document may let run at once.
const MAX_CONCURRENCY: u64 = 4_096;

/// The type.
pub(super) struct McpServerType;

impl ToolType for McpServerType {
    fn id(&self) -> &'static str {
        "mcp_server"
    }

    fn description(&self) -> &'static str {
        "Offers every tool of an MCP server under this pack's name: of a program that the hub starts (`command`), or of a \
         server over HTTP (`url`). Its resources and prompts are there for MCP clients. It is listed in the background; \
         `footbridge packs` shows how that went."
    }

    fn parameters(&self) -> Json {
        let globs =
            |what: &str| json!({"type": "array", "items": {"type": "string", "minLength": 1}, "description": what});
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "transport": {
                    "enum": ["stdio", "http", "sse"],
                    "description": "By default what `command` or `url` implies; `sse` is how servers of 2024-11-05 speak HTTP.",
                },
                "command": {
                    "type": "string", "minLength": 1,
                    "description": "The program: a name that is looked for in the hub's PATH, or an absolute path. The hub's \
                                    operator allows it (`mcpCommands`).",
                },
                "args": {"type": "array", "items": {}, "description": "Its arguments: texts."},
                "cwd": {"type": "string", "minLength": 1, "description": "The folder it starts in: an absolute path."},
                "env": {"type": "object", "description": "Variables of its environment: texts by name. Beside them it has only \
                                                          harmless ones of the hub's (PATH, HOME, locale and the like). \
                                                          Where the operator lists programs, they list these too \
                                                          (`mcpVariables`)."},
                "url": {"type": "string", "minLength": 1, "description": "The server's endpoint."},
                "headers": {"type": "object", "description": "Sent with every request: texts by name."},
                "auth": schema_of_auth(),
                "tls": schema_of_tls(),
                "timeoutSeconds": {
                    "type": "integer", "minimum": 1, "maximum": MAX_CALL_SECONDS, "default": DEFAULT_CALL_TIMEOUT.as_secs(),
                    "description": "Idle time of a call; progress resets it.",
                },
                "initTimeoutSeconds": {
                    "type": "integer", "minimum": 1, "maximum": MAX_INIT_SECONDS, "default": DEFAULT_INIT_TIMEOUT.as_secs(),
                    "description": "How long the handshake, and each page of its listing, may take.",
                },
                "session": {
                    "enum": ["shared", "subject", "process"],
                    "description": "Who shares a connection: everybody (the server can then ask nobody anything), each subject, \
                                    or each process (without one: each MCP session, else each subject). `process` for \
                                    programs, `shared` for HTTP, where nobody says.",
                },
                "defaultArgs": {"type": "object", "description": "Arguments for what the caller leaves out."},
                "forceArgs": {"type": "object", "description": "Arguments that stand whatever the caller says."},
                "include": globs("Globs of the names of tools on the server that are offered; all without this key, none \
                                  with an empty list."),
                "exclude": globs("Globs of those that are not."),
                "concurrency": {
                    "type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY,
                    "description": "Calls that run at once; others wait. Without this key nobody waits.",
                },
            },
        })
    }

    fn is_pack(&self) -> bool {
        true
    }

    fn prepare(&self, parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Prepared> {
        let config = parameters::read(parameters, path, problems)?;
        Some(Box::new(move |deps, place| {
            Built::Pack(Arc::new(ServerPack(deps.servers.attach(place.document(), config))))
        }))
    }
}

/// The pack. While it is held, the server is.
struct ServerPack(Arc<Attachment>);

impl Pack for ServerPack {
    fn tools(&self, _: &Scope, _: &Subject) -> Arc<[Arc<Tool>]> {
        self.0.server().listed().tools.clone()
    }

    fn original<'a>(&self, tool: &'a Tool) -> &'a str {
        tool.spec.original_name.as_deref().unwrap_or_default()
    }

    fn offers(&self, original: &str) -> bool {
        self.0.server().config.offered.admits(original)
    }

    fn server(&self) -> Option<&Arc<Attachment>> {
        Some(&self.0)
    }

    fn status(&self, _: &Scope, _: &Subject) -> PackStatus {
        self.0.server().status()
    }
}
