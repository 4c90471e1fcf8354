use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use footbridge_shared::id::{CallId, FootName, ProjectName, TenantName, ToolName};
use footbridge_shared::message::Raw;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tempfile::TempDir;

use super::*;
use crate::clock::{SharedClock, SystemClock};
use crate::documents::{Bundled, DocumentParts, WriteCondition};
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallClock, CallContext, Caller};
use crate::domain::changes::SurfaceChanges;
use crate::domain::document::Layer;
use crate::domain::feet::{FootDirectory, FootSummary};
use crate::domain::output::ToolOutput;
use crate::domain::script::{ScriptRequest, ScriptRunner};
use crate::domain::tool::{EntryState, NoTools, Origin, Tool, ToolHandler, ToolSpec};
use crate::store::memory::MemoryStore;
use crate::store::{Precondition, Store};

mod calls;
mod feet;
mod freshness;
mod layers;
mod servers;

/// The source over an empty store, a documents folder and given bundled documents.
struct World {
    source: ConfiguredSource,
    documents: Documents,
    store: Arc<dyn Store>,
    dir: TempDir,
    feet: Arc<KnownFeet>,
    scripts: Arc<Recorder>,
    lifecycle: Lifecycle,
}

impl World {
    async fn new(bundled: &[(String, String)]) -> Self {
        let clock: SharedClock = Arc::new(SystemClock);
        Self::over(Arc::new(MemoryStore::new(clock)), bundled).await
    }

    async fn over(store: Arc<dyn Store>, bundled: &[(String, String)]) -> Self {
        let dir = TempDir::new().unwrap();
        let lifecycle = Lifecycle::new();
        let checker = Checker::new(Registry::new().unwrap());
        let parts = DocumentParts {
            store: store.clone(),
            folder: Some(dir.path().to_owned()),
            bundled: Bundled::from_texts(bundled.iter().map(|(path, text)| (path.as_str(), text.as_str()))).unwrap(),
            validators: vec![Arc::new(checker.clone())],
            clock: Arc::new(SystemClock),
        };
        let documents = Documents::open(parts, &lifecycle).await.unwrap();
        let (feet, scripts) = (Arc::new(KnownFeet::default()), Arc::new(Recorder::default()));
        let deps = Dependencies {
            documents: Arc::new(documents.clone()),
            scripts: scripts.clone(),
            feet: feet.clone(),
            servers: no_programs(&lifecycle),
        };
        let source = ConfiguredSource::new(documents.clone(), checker, deps, &lifecycle);
        Self { source, documents, store, dir, feet, scripts, lifecycle }
    }

    async fn listing(&self, scope: &Scope) -> Arc<Listing> {
        self.source.listing(scope, &subject("ann")).await.unwrap()
    }

    async fn put(&self, scope: &Scope, name: &str, text: &str) -> Result<String, DocumentsError> {
        let path = path(&format!("server-tools/{name}.yaml"));
        Ok(self.documents.put(scope, &path, text, "ann", &WriteCondition::Any).await?.etag)
    }

    /// Past the check on write, as an older version of the hub may have written it.
    async fn put_unchecked(&self, scope: &Scope, place: &str, text: &str) {
        self.store.put(scope, &path(place), text, "ann", Precondition::Any).await.unwrap();
    }

    fn file(&self, place: &str, text: impl AsRef<[u8]>) {
        let file = self.dir.path().join(place);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new(""))).unwrap();
        std::fs::write(file, text).unwrap();
    }

    async fn call(&self, scope: &Scope, name: &str, arguments: serde_json::Value) -> Result<ToolOutput, Failure> {
        let listing = self.listing(scope).await;
        let arguments = Arguments::new(to_raw_value(&arguments).unwrap());
        listing.tools[name].handler.invoke(arguments, &context(scope)).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.lifecycle.soft().cancel();
    }
}

/// Servers over HTTP alone.
fn no_programs(lifecycle: &Lifecycle) -> Arc<McpServersOfHub> {
    let children = ChildSettings {
        launcher: footbridge_launcher::Launcher::of_this_program(),
        variables: Vec::new(),
        allowed: AllowedPrograms::Listed(Vec::new()),
        environment: Vec::new(),
    };
    McpServersOfHub::new(children, Arc::new(SystemClock), SurfaceChanges::default(), lifecycle)
}

fn scope(tenant: &str, project: &str) -> Scope {
    Scope::new(TenantName::parse(tenant).unwrap(), ProjectName::parse(project).unwrap())
}

fn subject(name: &str) -> Subject {
    Subject::parse(name).unwrap()
}

fn path(text: &str) -> DocumentPath {
    DocumentPath::parse(text).unwrap()
}

fn state<'a>(listing: &'a Listing, name: &str) -> &'a EntryState {
    &listing.entries[name].state
}

fn context(scope: &Scope) -> CallContext {
    CallContext::new(
        CallId::parse("call").unwrap(),
        Arc::new(scope.clone()),
        Arc::new(Caller::direct(subject("ann"))),
        CallClock::start(Duration::from_secs(60), Duration::from_secs(600)),
        Arc::new(NoTools),
        None,
    )
}

fn structured(output: &ToolOutput) -> serde_json::Value {
    output.structured.as_ref().map_or(serde_json::Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}

/// Answers a script with its own request.
#[derive(Default)]
struct Recorder(Mutex<Vec<ScriptRequest>>);

#[async_trait]
impl ScriptRunner for Recorder {
    async fn run(&self, request: ScriptRequest, _: &CallContext) -> Result<ToolOutput, Failure> {
        let source = request.source.clone();
        self.0.lock().unwrap().push(request);
        Ok(ToolOutput::json(&json!({"value": source, "durationMs": 0})))
    }
}

/// Feet that work for their owners alone.
#[derive(Default)]
struct KnownFeet(Mutex<Vec<KnownFoot>>);

struct KnownFoot {
    owner: Subject,
    name: FootName,
    tools: Vec<Arc<Tool>>,
}

impl KnownFeet {
    fn set(&self, owner: &str, foot: &str, tools: &[&str]) {
        self.remove(foot);
        let (owner, name) = (subject(owner), FootName::parse(foot).unwrap());
        let tools = tools.iter().map(|tool| Arc::new(foot_tool(&owner, &name, tool))).collect();
        self.0.lock().unwrap().push(KnownFoot { owner, name, tools });
    }

    fn remove(&self, foot: &str) {
        self.0.lock().unwrap().retain(|known| known.name.as_str() != foot);
    }
}

impl FootDirectory for KnownFeet {
    fn feet(&self, _: &Scope, _: &Subject) -> Vec<FootSummary> {
        Vec::new()
    }

    fn tools_of(&self, _: &Scope, subject: &Subject, foot: &FootName) -> Option<Arc<[Arc<Tool>]>> {
        let feet = self.0.lock().unwrap();
        let known = feet.iter().find(|known| (&known.owner, &known.name) == (subject, foot));
        known.map(|known| known.tools.clone().into())
    }
}

fn foot_tool(owner: &Subject, foot: &FootName, name: &str) -> Tool {
    let local = ToolName::parse(name).unwrap();
    let spec = ToolSpec {
        name: local.clone(),
        original_name: None,
        title: None,
        description: format!("{name} of {foot}"),
        search_hint: None,
        prompt_hint: None,
        input_schema: raw(r#"{"type":"object"}"#),
        output_schema: None,
        annotations: None,
        extra: None,
        changed: false,
        labels: vec!["read-only".to_owned()],
        primary: true,
        deferred: false,
        requires_roles: Vec::new(),
        profiles: Vec::new(),
        timeout: None,
        max_timeout: None,
        origin: Origin::Foot { foot: foot.clone(), owner: owner.clone(), local },
    };
    Tool { spec, schema: None, handler: Arc::new(SaysName(name.to_owned())) }
}

struct SaysName(String);

#[async_trait]
impl ToolHandler for SaysName {
    async fn invoke(&self, _: Arguments, _: &CallContext) -> Result<ToolOutput, Failure> {
        Ok(ToolOutput::text(&self.0))
    }
}

fn raw(text: &str) -> Raw {
    RawValue::from_string(text.to_owned()).unwrap()
}
