//! Which documents are tools, and whether they are in order. The same on write and on load.

use std::sync::Arc;

use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;

use super::server_tool::ServerTool;
use super::types::{Prepared, Registry, ToolTypeInfo};
use crate::documents::DocumentValidator;
use crate::domain::document::{DocumentPath, Layer, SERVER_TOOLS};
use crate::domain::tool::RESERVED_NAMES;
use crate::yaml::{self, DocumentError, KeyPath, Position, Problem, shown};

/// The end of a tool document's path.
const EXTENSION: &str = ".yaml";

/// Checks tool documents against the types of this build.
#[derive(Clone)]
pub struct Checker {
    registry: Arc<Registry>,
}

impl Checker {
    /// Checks against these types.
    pub fn new(registry: Registry) -> Self {
        Self { registry: Arc::new(registry) }
    }

    /// The types, by id.
    pub fn tool_types(&self) -> Vec<ToolTypeInfo> {
        self.registry.list()
    }

    /// Reads a tool document of that name. The second part makes the tool or pack.
    pub(super) fn read(
        &self,
        name: &EntryName,
        layer: Layer,
        text: &str,
    ) -> Result<(ServerTool, Prepared), Vec<DocumentError>> {
        let located = |problems: Vec<Problem>| {
            let path = path_of(name);
            problems.into_iter().map(|problem| problem.in_document(&path, Some(layer))).collect::<Vec<_>>()
        };
        let node = yaml::parse(text).map_err(|problem| located(vec![problem]))?;
        ServerTool::read(name, &node, &self.registry).map_err(located)
    }

    /// Checks a tool document that would be written.
    fn check_tool(&self, name: &EntryName, layer: Layer, text: &str) -> Result<(), Vec<DocumentError>> {
        if RESERVED_NAMES.contains(&name.as_str()) {
            return Err(vec![reserved(name).in_document(&path_of(name), Some(layer))]);
        }
        self.read(name, layer, text).map(|_| ())
    }
}

impl DocumentValidator for Checker {
    fn check(&self, layer: Layer, path: &DocumentPath, text: &str) -> Result<(), Vec<DocumentError>> {
        match name_of(path) {
            Named::Elsewhere => Ok(()),
            Named::Tool(name) => self.check_tool(&name, layer, text),
            Named::Wrong(problem) => Err(vec![problem.in_document(path, Some(layer))]),
        }
    }
}

/// What a path has to do with tools.
pub(super) enum Named {
    /// Nothing.
    Elsewhere,
    /// It is the tool of that name.
    Tool(EntryName),
    /// It lies in the folder of tools, and is none.
    Wrong(Problem),
}

/// `server-tools/<name>.yaml`, one level deep, is a tool; what else lies in that folder is a mistake.
pub(super) fn name_of(path: &DocumentPath) -> Named {
    let wrong = |message: String, hint: &str, code| {
        Named::Wrong(Problem::new(Position::START, KeyPath::root(), message).hint(hint).code(code))
    };
    let Some(file) = path.as_str().strip_prefix(SERVER_TOOLS) else {
        if path.as_str().to_lowercase().starts_with(SERVER_TOOLS) {
            let message = format!("`{}` is not read: the folder of tools is `{SERVER_TOOLS}`", shown(path.as_str()));
            return wrong(message, "write the folder's name in lower case", ErrorCode::InvalidDocument);
        }
        return Named::Elsewhere;
    };
    let hint = "a tool is the document `server-tools/<name>.yaml`, without folders below";
    if file.contains('/') {
        return wrong("it lies too deep to be a tool".to_owned(), hint, ErrorCode::InvalidDocument);
    }
    let Some(stem) = file.strip_suffix(EXTENSION) else {
        return wrong(format!("it does not end with `{EXTENSION}`"), hint, ErrorCode::InvalidDocument);
    };
    match EntryName::parse(stem) {
        Ok(name) => Named::Tool(name),
        Err(error) => wrong(error.to_string(), hint, ErrorCode::InvalidName),
    }
}

/// Where a tool's document lies.
pub(super) fn path_of(name: &EntryName) -> String {
    format!("{SERVER_TOOLS}{name}{EXTENSION}")
}

/// A name that belongs to a meta tool.
pub(super) fn reserved(name: &EntryName) -> Problem {
    Problem::new(Position::START, KeyPath::root(), format!("the name `{name}` is reserved for the hub's own meta tool"))
        .code(ErrorCode::ReservedName)
        .hint("give the tool another name")
}
