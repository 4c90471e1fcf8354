//! Tools written in code: one file each, one line in `standard`.

mod current_time;
mod doc_access;
mod doc_delete;
mod doc_edit;
mod doc_list;
mod doc_read;
mod doc_write;
mod execute_javascript;
mod file_pull;
mod file_push;
mod foot_files;
mod foot_list;
mod invoke_tool;
mod manuals;
mod tool_description;
mod tool_list;
mod whoami;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::id::{NameError, Subject, ToolName};
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::clock::SharedClock;
use crate::documents::Documents;
use crate::domain::arguments::ArgumentSchema;
use crate::domain::failure::Failure;
use crate::domain::feet::FootDirectory;
use crate::domain::scope::Scope;
use crate::domain::script::ScriptRunner;
use crate::domain::tool::{Listing, MAX_HARD, MAX_IDLE, Origin, Tool, ToolHandler, ToolSource, ToolSpec};

/// The names of all built-in tools, sorted: no foot may take them. Known before the tools are, since some work with feet.
pub const NAMES: [&str; 16] = [
    "current_time",
    "doc_delete",
    "doc_edit",
    "doc_list",
    "doc_read",
    "doc_write",
    "execute_javascript",
    "file_pull",
    "file_push",
    "foot_list",
    "invoke_tool",
    "manual_list",
    "manual_read",
    "tool_description",
    "tool_list",
    "whoami",
];

/// What the built-in tools work with.
pub struct Services {
    /// The time of day.
    pub clock: SharedClock,
    /// The document cascade.
    pub documents: Documents,
    /// The feet.
    pub feet: Arc<dyn FootDirectory>,
    /// The script sandbox.
    pub scripts: Arc<dyn ScriptRunner>,
}

/// How a built-in tool describes itself.
struct BuiltIn {
    name: &'static str,
    description: &'static str,
    search_hint: &'static str,
    labels: &'static [&'static str],
    primary: bool,
    /// Whether it only passes a call on: then the limits are those of what it calls.
    delegates: bool,
    input_schema: Value,
}

/// Why the built-in tools could not be set up: a defect of this build.
#[derive(Debug, thiserror::Error)]
pub enum BuiltInError {
    /// A name does not follow the rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A schema does not compile.
    #[error("the schema of `{name}` does not compile: {reason}")]
    Schema {
        /// The tool.
        name: &'static str,
        /// Why.
        reason: String,
    },
}

/// The source of built-in tools: the same for everybody.
#[derive(Debug)]
pub struct BuiltInSource {
    listing: Arc<Listing>,
}

impl BuiltInSource {
    /// All built-in tools of this build.
    ///
    /// # Errors
    /// A defect of this build; a test sets them all up.
    pub fn new(services: &Services) -> Result<Self, BuiltInError> {
        let mut tools = BTreeMap::new();
        for (described, handler) in standard(services) {
            let tool = described.into_tool(handler)?;
            tools.insert(tool.spec.name.clone(), Arc::new(tool));
        }
        Ok(Self { listing: Arc::new(Listing { tools, ..Listing::default() }) })
    }
}

#[async_trait]
impl ToolSource for BuiltInSource {
    async fn listing(&self, _: &Scope, _: &Subject) -> Result<Arc<Listing>, Failure> {
        Ok(self.listing.clone())
    }
}

fn standard(services: &Services) -> Vec<(BuiltIn, Arc<dyn ToolHandler>)> {
    let Services { clock, documents, feet, scripts } = services;
    vec![
        current_time::tool(clock.clone()),
        doc_delete::tool(documents.clone()),
        doc_edit::tool(documents.clone()),
        doc_list::tool(documents.clone()),
        doc_read::tool(documents.clone()),
        doc_write::tool(documents.clone()),
        execute_javascript::tool(scripts.clone()),
        file_pull::tool(documents.clone(), feet.clone()),
        file_push::tool(documents.clone(), feet.clone()),
        foot_list::tool(feet.clone()),
        invoke_tool::tool(),
        manuals::list_tool(documents.clone()),
        manuals::read_tool(documents.clone()),
        tool_description::tool(),
        tool_list::tool(),
        whoami::tool(),
    ]
}

impl BuiltIn {
    fn into_tool(self, handler: Arc<dyn ToolHandler>) -> Result<Tool, BuiltInError> {
        let broken = |reason: String| BuiltInError::Schema { name: self.name, reason };
        let schema = ArgumentSchema::compile(&self.input_schema).map_err(broken)?;
        let input_schema = to_raw_value(&self.input_schema).map_err(|error| broken(error.to_string()))?;
        Ok(Tool {
            spec: ToolSpec {
                name: ToolName::parse(self.name)?,
                original_name: None,
                title: None,
                description: self.description.to_owned(),
                search_hint: Some(self.search_hint.to_owned()),
                prompt_hint: None,
                input_schema,
                output_schema: None,
                annotations: None,
                extra: None,
                changed: false,
                labels: self.labels.iter().map(|label| (*label).to_owned()).collect(),
                primary: self.primary,
                deferred: !self.primary,
                requires_roles: Vec::new(),
                profiles: Vec::new(),
                timeout: self.delegates.then_some(MAX_IDLE),
                max_timeout: self.delegates.then_some(MAX_HARD),
                origin: Origin::BuiltIn,
            },
            schema: Some(schema),
            handler,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::documents::{Bundled, DocumentParts};
    use crate::domain::call::CallContext;
    use crate::domain::feet::FootSummary;
    use crate::domain::output::ToolOutput;
    use crate::domain::script::ScriptRequest;
    use crate::domain::tool::RESERVED_NAMES;
    use crate::lifecycle::Lifecycle;
    use crate::store::memory::MemoryStore;

    struct Nobody;

    impl FootDirectory for Nobody {
        fn feet(&self, _: &Scope, _: &Subject) -> Vec<FootSummary> {
            Vec::new()
        }

        fn tools_of(&self, _: &Scope, _: &Subject, _: &footbridge_shared::id::FootName) -> Option<Arc<[Arc<Tool>]>> {
            None
        }
    }

    #[async_trait]
    impl ScriptRunner for Nobody {
        async fn run(&self, request: ScriptRequest, _: &CallContext) -> Result<ToolOutput, Failure> {
            Ok(ToolOutput::text(&request.source))
        }
    }

    #[tokio::test]
    async fn all_are_set_up_under_the_names_that_no_foot_may_take() {
        let clock: SharedClock = Arc::new(SystemClock);
        let lifecycle = Lifecycle::new();
        let parts = DocumentParts {
            store: Arc::new(MemoryStore::new(clock.clone())),
            folder: None,
            bundled: Bundled::compiled(),
            validators: Vec::new(),
            clock: clock.clone(),
        };
        let documents = Documents::open(parts, &lifecycle).await.unwrap();
        let services = Services { clock, documents, feet: Arc::new(Nobody), scripts: Arc::new(Nobody) };
        let source = BuiltInSource::new(&services).unwrap();
        let names: Vec<&str> = source.listing.tools.keys().map(ToolName::as_str).collect();
        assert_eq!(names, NAMES);
        for tool in source.listing.tools.values() {
            let spec = &tool.spec;
            assert!(!spec.labels.is_empty() && spec.description.len() > 20, "{}", spec.name);
            assert_eq!(spec.primary, RESERVED_NAMES.contains(&spec.name.as_str()), "{}", spec.name);
        }
        lifecycle.shut_down(std::time::Duration::ZERO).await;
    }
}
