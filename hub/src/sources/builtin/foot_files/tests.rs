//! Pushing and pulling against feet that answer what they are told to.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::content::ContentHash;
use footbridge_shared::id::{CallId, FootName, ProjectName, Subject, TenantName, ToolName};
use serde_json::json;

use super::*;
use crate::clock::SystemClock;
use crate::documents::{Bundled, DocumentParts, Documents, WriteCondition};
use crate::domain::call::{CallClock, Caller};
use crate::domain::document::DocumentPath;
use crate::domain::feet::{FootState, FootSummary};
use crate::domain::scope::Scope;
use crate::domain::tool::{ToolHandler, ToolSpec};
use crate::lifecycle::Lifecycle;
use crate::sources::builtin::{file_pull, file_push};
use crate::store::memory::MemoryStore;

/// Feet of ann's, each with the tools that write and read; all of them give one answer.
#[derive(Clone)]
struct Feet {
    names: Vec<&'static str>,
    answer: Value,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

#[async_trait]
impl ToolHandler for Feet {
    async fn invoke(&self, _: Arguments, _: &CallContext) -> Result<ToolOutput, Failure> {
        Ok(ToolOutput::json(&self.answer))
    }
}

impl FootDirectory for Feet {
    fn feet(&self, _: &Scope, _: &Subject) -> Vec<FootSummary> {
        let summary = |name: &&str| FootSummary {
            name: FootName::parse(name).unwrap(),
            bound_name: FootName::parse(name).unwrap(),
            owner: Subject::parse("ann").unwrap(),
            state: FootState::Connected,
            own: true,
            details: None,
        };
        self.names.iter().map(summary).collect()
    }

    fn tools_of(&self, _: &Scope, _: &Subject, _: &FootName) -> Option<Arc<[Arc<Tool>]>> {
        None
    }
}

#[async_trait]
impl crate::domain::tool::ToolCaller for Feet {
    async fn call(&self, _: &CallContext, name: &str, arguments: Arguments, _: Via) -> Result<ToolOutput, Failure> {
        self.asked.lock().unwrap().push((name.to_owned(), arguments.parse()?));
        Ok(ToolOutput::json(&self.answer))
    }

    async fn list(&self, _: &CallContext) -> Result<Vec<Arc<Tool>>, Failure> {
        let tool = |(foot, local): (&str, &str)| {
            let spec = ToolSpec {
                name: ToolName::parse(&format!("{foot}__{local}")).unwrap(),
                original_name: None,
                title: None,
                description: String::new(),
                search_hint: None,
                prompt_hint: None,
                input_schema: to_raw_value(&json!({})).unwrap(),
                output_schema: None,
                annotations: None,
                extra: None,
                changed: false,
                labels: Vec::new(),
                primary: false,
                deferred: true,
                requires_roles: Vec::new(),
                profiles: Vec::new(),
                timeout: None,
                max_timeout: None,
                origin: Origin::Foot {
                    foot: FootName::parse(foot).unwrap(),
                    owner: Subject::parse("ann").unwrap(),
                    local: ToolName::parse(local).unwrap(),
                },
            };
            Arc::new(Tool { spec, schema: None, handler: Arc::new(self.clone()) })
        };
        Ok(self.names.iter().flat_map(|foot| [(*foot, "file_write"), (*foot, "file_read")]).map(tool).collect())
    }

    async fn find(&self, _: &CallContext, _: &str) -> Result<Option<Arc<Tool>>, Failure> {
        Ok(None)
    }
}

struct Case {
    documents: Documents,
    feet: Feet,
    ctx: CallContext,
}

impl Case {
    /// With the document `documents/a.md`, and feet that give this answer.
    async fn new(names: &[&'static str], answer: Value) -> Self {
        let clock: crate::clock::SharedClock = Arc::new(SystemClock);
        let parts = DocumentParts {
            store: Arc::new(MemoryStore::new(clock.clone())),
            folder: None,
            bundled: Bundled::compiled(),
            validators: Vec::new(),
            clock,
        };
        let documents = Documents::open(parts, &Lifecycle::new()).await.unwrap();
        let feet = Feet { names: names.to_vec(), answer, asked: Arc::default() };
        let scope = Scope::new(TenantName::parse("local").unwrap(), ProjectName::parse("main").unwrap());
        let ctx = CallContext::new(
            CallId::parse("call").unwrap(),
            Arc::new(scope),
            Arc::new(Caller::direct(Subject::parse("ann").unwrap())),
            CallClock::start(Duration::from_secs(60), Duration::from_secs(60)),
            Arc::new(feet.clone()),
            None,
        );
        let case = Self { documents, feet, ctx };
        let text = "text\n";
        case.documents.put(&case.ctx.scope, &path("documents/a.md"), text, "ann", &WriteCondition::Any).await.unwrap();
        case
    }

    async fn push(&self, arguments: Value) -> Result<Value, Failure> {
        self.run(file_push::tool(self.documents.clone(), Arc::new(self.feet.clone())).1, arguments).await
    }

    async fn pull(&self, arguments: Value) -> Result<Value, Failure> {
        self.run(file_pull::tool(self.documents.clone(), Arc::new(self.feet.clone())).1, arguments).await
    }

    async fn run(&self, tool: Arc<dyn ToolHandler>, arguments: Value) -> Result<Value, Failure> {
        let output = tool.invoke(Arguments::new(to_raw_value(&arguments).unwrap()), &self.ctx).await?;
        Ok(serde_json::from_str(output.structured.unwrap().get()).unwrap())
    }

    /// What the feet were asked, as tool and arguments.
    fn asked(&self) -> Vec<(String, Value)> {
        self.feet.asked.lock().unwrap().clone()
    }
}

fn path(text: &str) -> DocumentPath {
    DocumentPath::parse(text).unwrap()
}

fn written(text: &str) -> Value {
    json!({"path": "a", "hash": ContentHash::of(text.as_bytes()), "created": true})
}

#[tokio::test]
async fn a_push_replaces_only_what_it_was_told_to() {
    let case = Case::new(&["dev"], written("text\n")).await;
    let hash = ContentHash::of(b"old");
    for more in [json!({}), json!({"overwrite": true}), json!({"ifHash": hash, "createFolders": true})] {
        let mut arguments = json!({"document": "documents/a.md", "path": "a"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = case.push(arguments).await.unwrap();
        assert_eq!((&reply["foot"], &reply["bytes"]), (&json!("dev"), &json!(5)));
    }
    let request = |more: Value| {
        let mut all = json!({"path": "a", "content": "text\n"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("dev__file_write".to_owned(), all)
    };
    let expected = [
        request(json!({"ifAbsent": true})),
        request(json!({})),
        request(json!({"ifHash": hash, "createFolders": true})),
    ];
    assert_eq!(case.asked(), expected);
}

#[tokio::test]
async fn what_arrives_otherwise_is_no_success_and_the_outcome_is_true() {
    let pushed = Case::new(&["dev"], written("other")).await;
    let failure = pushed.push(json!({"document": "documents/a.md", "path": "a"})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ToolFailed, Outcome::Completed));

    let cut = json!({"path": "a", "content": "te", "hash": ContentHash::of(b"text\n")});
    let pulled = Case::new(&["dev"], cut).await;
    let failure = pulled.pull(json!({"path": "a", "document": "documents/b.md"})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ToolFailed, Outcome::NotRun));
    assert!(pulled.documents.resolve(&pulled.ctx.scope, &path("documents/b.md")).await.unwrap().is_none());

    let strange = Case::new(&["dev"], json!({"ok": true})).await;
    let failure = strange.push(json!({"document": "documents/a.md", "path": "a"})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ToolFailed, Outcome::Unknown));
}

#[tokio::test]
async fn a_pull_keeps_the_documents_conditions() {
    let whole = json!({"path": "a", "content": "new", "hash": ContentHash::of(b"new")});
    let case = Case::new(&["dev"], whole).await;
    let pull = async |more: Value| {
        let mut arguments = json!({"path": "a", "document": "documents/a.md"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case.pull(arguments).await.map_err(|failure| failure.code)
    };
    assert_eq!(pull(json!({})).await.unwrap_err(), ErrorCode::VersionMismatch);
    assert_eq!(pull(json!({"etag": "wrong"})).await.unwrap_err(), ErrorCode::VersionMismatch);
    let replaced = pull(json!({"overwrite": true})).await.unwrap();
    assert_eq!(replaced["version"], 2);
    assert_eq!(pull(json!({"etag": replaced["etag"]})).await.unwrap()["version"], 3);
    let asked = case.asked().len();
    assert_eq!(pull(json!({"document": "server-tools/x.yaml"})).await.unwrap_err(), ErrorCode::ConfigPath);
    assert_eq!(case.asked().len(), asked, "no foot is troubled for it");
}

#[tokio::test]
async fn a_foot_is_named_where_several_could_be_meant_and_all_others_are_alike() {
    let case = Case::new(&["dev", "site"], written("text\n")).await;
    let push =
        async |foot: Option<&str>| case.push(json!({"document": "documents/a.md", "path": "a", "foot": foot})).await;
    let failure = push(None).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidArguments);
    assert!(failure.message.contains("dev, site"), "{failure}");
    assert_eq!(push(Some("site")).await.unwrap()["foot"], "site");
    assert_eq!(case.asked()[0].0, "site__file_write");
    assert_eq!(push(Some("theirs")).await.unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(
        Case::new(&[], json!({}))
            .await
            .push(json!({"document": "documents/a.md", "path": "a"}))
            .await
            .unwrap_err()
            .code,
        ErrorCode::NotFound
    );
}
