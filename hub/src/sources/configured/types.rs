//! Tool types: the code that turns a document into tools. A new type is one file here and one line in [`TYPES`].

use std::sync::Arc;

use footbridge_shared::id::{EntryName, Subject};
use footbridge_shared::message::Raw;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::mcp::{Attachment, DocumentKey, McpServersOfHub};
use super::status::PackStatus;
use crate::domain::document::{DocumentReader, Layer};
use crate::domain::feet::FootDirectory;
use crate::domain::scope::Scope;
use crate::domain::script::ScriptRunner;
use crate::domain::tool::{Tool, ToolHandler};
use crate::yaml::did_you_mean;
use crate::yaml::schema::Schema;
use crate::yaml::{KeyPath, Node, Problem};

mod auth;
mod doc_lookup;
mod foot;
mod mcp;
mod mcp_server;
mod scripted;

/// All types.
const TYPES: &[&dyn ToolType] =
    &[&doc_lookup::DocLookup, &foot::Foot, &mcp::Mcp, &mcp_server::McpServerType, &scripted::Scripted];

/// What tools work with once they run.
#[derive(Clone)]
pub struct Dependencies {
    /// Reads documents through the cascade.
    pub documents: Arc<dyn DocumentReader>,
    /// Runs scripts.
    pub scripts: Arc<dyn ScriptRunner>,
    /// Knows the feet.
    pub feet: Arc<dyn FootDirectory>,
    /// Holds the MCP servers.
    pub servers: Arc<McpServersOfHub>,
}

/// Where a document lies that is made into tools.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The scope that sees it.
    pub scope: &'a Scope,
    /// The layer that won.
    pub layer: Layer,
    /// Its name.
    pub name: &'a EntryName,
}

impl Place<'_> {
    /// The document, whichever scope sees it.
    pub(super) fn document(&self) -> DocumentKey {
        DocumentKey::new(self.scope, self.layer, self.name)
    }
}

/// What a document makes.
pub enum Built {
    /// One tool, under the document's name.
    Tool(Box<BuiltTool>),
    /// Many tools, which may come, go and differ by subject.
    Pack(Arc<dyn Pack>),
    /// One tool of a pack that another document makes, under the document's name.
    Link(Link),
}

/// One tool of an MCP server, wherever that is defined.
pub struct Link {
    /// The document of the server.
    pub server: EntryName,
    /// The tool's name on the server.
    pub original: String,
    /// Arguments for what the caller leaves out.
    pub defaults: Vec<(String, Raw)>,
}

/// One tool, without what the document says of every tool.
pub struct BuiltTool {
    /// JSON Schema of its arguments.
    pub input_schema: Json,
    /// JSON Schema of its structured result.
    pub output_schema: Option<Json>,
    /// Runs it.
    pub handler: Arc<dyn ToolHandler>,
}

/// The tools of a pack, under the names they have where they come from.
pub trait Pack: Send + Sync {
    /// What there is for a subject now, offered or not: public names are made from all of it. Never waits: what is not
    /// known yet is not there yet.
    ///
    /// While nothing changed it gives the same `Arc`s, at best the same one around them all, so that what is made of them can
    /// be kept. Asked at every call of the scope; [`Self::original`] and [`Self::offers`] only when something changed.
    fn tools(&self, scope: &Scope, subject: &Subject) -> Arc<[Arc<Tool>]>;

    /// The name of one of these tools where it comes from.
    fn original<'a>(&self, tool: &'a Tool) -> &'a str;

    /// Whether the parameters let the tool of that original name be offered.
    fn offers(&self, original: &str) -> bool;

    /// How it is, as a subject may know it.
    fn status(&self, scope: &Scope, subject: &Subject) -> PackStatus;

    /// The MCP server behind it, if it is one that the hub itself speaks to.
    fn server(&self) -> Option<&Arc<Attachment>> {
        None
    }
}

/// Parameters that passed every check. Makes the tool or pack, which can no longer fail.
pub type Prepared = Box<dyn FnOnce(&Dependencies, Place<'_>) -> Built + Send>;

/// A tool type.
pub trait ToolType: Sync {
    /// The value of `type` in a document.
    fn id(&self) -> &'static str;

    /// What it makes of a document, for people.
    fn description(&self) -> &'static str;

    /// JSON Schema of `parameters`.
    fn parameters(&self) -> Json;

    /// Whether one document makes many tools.
    fn is_pack(&self) -> bool {
        false
    }

    /// Checks what the schema cannot say, and reads the parameters. The same on write and on load. `parameters` has passed
    /// the schema and stands at `path`; `None` means that a problem was reported.
    fn prepare(&self, parameters: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Prepared>;
}

/// What people may know of a type.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ToolTypeInfo {
    /// The value of `type` in a document.
    pub id: &'static str,
    /// What it makes of a document.
    pub description: &'static str,
    /// JSON Schema of `parameters`.
    pub parameters: Json,
    /// Whether one document makes many tools.
    pub pack: bool,
}

/// Why the types of this build do not fit together. Found at start.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two types share an id.
    #[error("two tool types are called `{0}`")]
    Twice(&'static str),
    /// A schema is none.
    #[error("the parameter schema of the tool type `{0}` is not valid: {1}")]
    Schema(&'static str, String),
}

/// The types, by id, with compiled schemas.
pub struct Registry {
    types: Vec<Registered>,
}

/// A type with its compiled schema.
pub struct Registered {
    /// The type.
    pub tool_type: &'static dyn ToolType,
    /// Of `parameters`.
    pub schema: Schema,
}

impl Registry {
    /// All types of this build.
    ///
    /// # Errors
    /// [`RegistryError`] says which type is wrong.
    pub fn new() -> Result<Self, RegistryError> {
        let mut types: Vec<Registered> = Vec::new();
        for tool_type in TYPES.iter().copied() {
            let id = tool_type.id();
            if types.iter().any(|other| other.tool_type.id() == id) {
                return Err(RegistryError::Twice(id));
            }
            let schema = Schema::compile(tool_type.parameters()).map_err(|error| RegistryError::Schema(id, error))?;
            types.push(Registered { tool_type, schema });
        }
        types.sort_by_key(|registered| registered.tool_type.id());
        Ok(Self { types })
    }

    /// A type by its id.
    pub fn get(&self, id: &str) -> Option<&Registered> {
        self.types.iter().find(|registered| registered.tool_type.id() == id)
    }

    /// What people may know of all types, by id.
    pub fn list(&self) -> Vec<ToolTypeInfo> {
        self.types
            .iter()
            .map(|Registered { tool_type, schema }| ToolTypeInfo {
                id: tool_type.id(),
                description: tool_type.description(),
                parameters: schema.json().clone(),
                pack: tool_type.is_pack(),
            })
            .collect()
    }

    /// What to do about an unknown type.
    pub(super) fn hint(&self, id: &str) -> String {
        let ids: Vec<&str> = self.types.iter().map(|registered| registered.tool_type.id()).collect();
        match did_you_mean(id, ids.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("the types are {}", ids.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_registered_once_and_describes_its_parameters() {
        let registry = Registry::new().unwrap();
        let types = registry.list();
        assert_eq!(
            types.iter().map(|t| (t.id, t.pack)).collect::<Vec<_>>(),
            [("doc_lookup", false), ("foot", true), ("mcp", false), ("mcp_server", true), ("scripted", false)]
        );
        for tool_type in types {
            assert_eq!(tool_type.parameters["type"], "object", "{}", tool_type.id);
            assert_eq!(tool_type.parameters["additionalProperties"], false, "{}", tool_type.id);
            assert!(!tool_type.description.is_empty());
        }
        assert_eq!(registry.hint("scriptd"), "did you mean `scripted`?");
    }
}
