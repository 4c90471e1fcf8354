//! A hub's registry, and feet that are played by hand.

mod client;
mod foot;
mod parts;
mod socket;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::{CallId, FootName, ProjectName, Subject, TenantName};
use footbridge_shared::limits::{DEFAULT_MAX_TIMEOUT, DEFAULT_TIMEOUT};
use footbridge_shared::message::Hello;
use futures::channel::mpsc;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::domain::arguments::Arguments;
use crate::domain::call::{CallClock, CallContext, CallEvent, Caller, Keyed};
use crate::domain::changes::SurfaceChanges;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::principal::{Principal, Reach, Role};
use crate::domain::scope::Scope;
use crate::domain::tool::{NoTools, Tool, ToolSource as _};
use crate::lifecycle::Lifecycle;
use crate::sources::feet::{FeetConfig, FeetCounts, FeetParts, FeetRegistry};
use crate::store::memory::MemoryStore;

/// Frames that fit the pipe between hub and foot, each way.
const PIPE: usize = 8;

pub(super) use client::{Client, Put};
pub(super) use foot::{Heard, Identity, TestFoot, hear};
pub(super) use parts::LateBox;
use parts::{Acme, Ear, Noon};
use socket::Pipe;

pub(super) fn subject(name: &str) -> Subject {
    Subject::parse(name).unwrap()
}

pub(super) fn foot_name(name: &str) -> FootName {
    FootName::parse(name).unwrap()
}

pub(super) fn scope(project: &str) -> Scope {
    Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse(project).unwrap())
}

/// A registry over a store that outlives it.
pub(super) struct Hub {
    pub(super) registry: FeetRegistry,
    pub(super) lifecycle: Lifecycle,
    pub(super) store: Arc<MemoryStore>,
    pub(super) late: Arc<LateBox>,
    pub(super) surfaces: SurfaceChanges,
    pub(super) scope: Scope,
}

impl Hub {
    pub(super) async fn new() -> Self {
        Self::with(FeetConfig::default()).await
    }

    pub(super) async fn with(config: FeetConfig) -> Self {
        Self::over(Arc::new(MemoryStore::new(Arc::new(Noon))), config).await
    }

    /// Another hub over the same store.
    pub(super) async fn over(store: Arc<MemoryStore>, config: FeetConfig) -> Self {
        let lifecycle = Lifecycle::new();
        let late = Arc::new(LateBox::default());
        let surfaces = SurfaceChanges::default();
        let registry = FeetRegistry::open(FeetParts {
            config,
            store: store.clone(),
            clock: Arc::new(Noon),
            lifecycle: lifecycle.clone(),
            scopes: Arc::new(Acme),
            built_ins: BTreeSet::from(["web_search".to_owned(), "whoami".to_owned()]),
            late: late.clone(),
            surfaces: surfaces.clone(),
        })
        .await
        .unwrap();
        Self { registry, lifecycle, store, late, surfaces, scope: scope("shop") }
    }

    /// A socket that nobody has said anything on.
    pub(super) fn dial(&self, principal: Principal, identity: Identity) -> TestFoot {
        let (to_hub, from_foot) = mpsc::channel(PIPE);
        let (to_foot, from_hub) = mpsc::channel(PIPE);
        self.registry.connect(Pipe { from_foot, to_foot }, Arc::new(principal));
        TestFoot { identity, to_hub, from_hub, session: None, deaf: false, parts: HashMap::new() }
    }

    /// A connected foot.
    pub(super) async fn foot(&self, owner: &str, name: &str) -> TestFoot {
        self.foot_as(owner, Identity::new(name), |_| {}).await
    }

    /// A connected foot with a changed `hello`.
    pub(super) async fn foot_as(&self, owner: &str, identity: Identity, change: impl FnOnce(&mut Hello)) -> TestFoot {
        let mut foot = self.dial(principal(owner), identity);
        foot.greet(change).await;
        foot
    }

    /// Public names that a subject sees.
    pub(super) async fn names(&self, who: &str) -> Vec<String> {
        let listing = self.registry.listing(&self.scope, &subject(who)).await.unwrap();
        listing.tools.keys().map(ToString::to_string).collect()
    }

    /// A tool as a subject sees it.
    pub(super) async fn tool(&self, who: &str, name: &str) -> Option<Arc<Tool>> {
        self.registry.listing(&self.scope, &subject(who)).await.unwrap().tools.get(name).cloned()
    }

    /// A call that runs.
    pub(super) async fn call(&self, who: &str, name: &str, arguments: Value) -> Running {
        let tool = self.tool(who, name).await.unwrap_or_else(|| panic!("{who} sees no {name}"));
        self.call_tool(who, tool, &arguments.to_string())
    }

    /// A call of a tool that was looked up before.
    pub(super) fn call_tool(&self, who: &str, tool: Arc<Tool>, arguments: &str) -> Running {
        self.call_with(who, tool, arguments, "outer", None)
    }

    /// A keyed call of this id.
    pub(super) async fn keyed_call(&self, who: &str, name: &str, id: &str) -> (Running, Arc<Keyed>) {
        let keyed = Arc::new(Keyed::new(format!("digest of {id}")));
        let tool = self.tool(who, name).await.unwrap();
        (self.call_with(who, tool, "{}", id, Some(keyed.clone())), keyed)
    }

    fn call_with(&self, who: &str, tool: Arc<Tool>, arguments: &str, id: &str, keyed: Option<Arc<Keyed>>) -> Running {
        let (mut ctx, heard) = self.context(who, id);
        ctx.keyed = keyed;
        Running::of(tool, arguments, ctx, heard)
    }

    /// A call of a tool for an MCP client, with what the client sent beside the arguments.
    pub(super) async fn call_for(&self, who: &str, name: &str, client: Arc<Client>, extra: Option<&str>) -> Running {
        let tool = self.tool(who, name).await.unwrap();
        let (mut ctx, heard) = self.context(who, "outer");
        ctx.client = Some(client);
        ctx.extra = extra.map(|extra| RawValue::from_string(extra.to_owned()).unwrap().into());
        Running::of(tool, "{}", ctx, heard)
    }

    /// A call from outside.
    pub(super) fn context(&self, who: &str, id: &str) -> (CallContext, tokio::sync::mpsc::Receiver<CallEvent>) {
        let (events, heard) = tokio::sync::mpsc::channel(64);
        let ctx = CallContext::new(
            CallId::parse(id).unwrap(),
            Arc::new(self.scope.clone()),
            Arc::new(Caller::direct(subject(who))),
            CallClock::start(DEFAULT_TIMEOUT, DEFAULT_MAX_TIMEOUT),
            Arc::new(NoTools),
            Some(Arc::new(Ear(events))),
        );
        (ctx, heard)
    }

    /// Changes so far of what the listings of the project are made from.
    pub(super) fn revision(&self) -> u64 {
        self.registry.core.known(&self.scope).unwrap().revision()
    }

    /// Waits until what is here now is what it should be.
    pub(super) async fn settles(&self, what: impl Fn(FeetCounts) -> bool) {
        for _ in 0..20_000 {
            if what(self.registry.counts()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it stays at {:?}", self.registry.counts());
    }

    /// Nothing of any foot is left, and the hub can stop.
    pub(super) async fn ends_clean(self) {
        self.settles(|counts| counts == FeetCounts::default()).await;
        assert_eq!(self.lifecycle.shut_down(Duration::from_secs(1)).await, 0, "tasks are left");
    }
}

/// A token with the role `foot` for the whole tenant.
pub(super) fn principal(owner: &str) -> Principal {
    Principal {
        token: "t".into(),
        subject: subject(owner),
        roles: vec![Role::Foot],
        reach: Reach { tenant: Some(TenantName::parse("acme").unwrap()), projects: None },
        act_as: Vec::new(),
        ended: CancellationToken::new(),
    }
}

/// A call in a task of its own. Dropped, its caller is gone.
pub(super) struct Running {
    task: JoinSet<Result<ToolOutput, Failure>>,
    pub(super) cancel: CancellationToken,
    pub(super) clock: CallClock,
    pub(super) heard: tokio::sync::mpsc::Receiver<CallEvent>,
}

impl Running {
    fn of(tool: Arc<Tool>, arguments: &str, ctx: CallContext, heard: tokio::sync::mpsc::Receiver<CallEvent>) -> Self {
        let (cancel, clock) = (ctx.cancel.clone(), ctx.clock.clone());
        let arguments = Arguments::new(RawValue::from_string(arguments.to_owned()).unwrap());
        let mut task = JoinSet::new();
        task.spawn(async move { tool.handler.invoke(arguments, &ctx).await });
        Self { task, cancel, clock, heard }
    }

    /// The end of the call.
    pub(super) async fn end(&mut self) -> Result<ToolOutput, Failure> {
        self.task.join_next().await.unwrap().unwrap()
    }

    /// The text of its result.
    pub(super) async fn text(&mut self) -> String {
        self.end().await.unwrap().joined_text()
    }

    /// Its failure.
    pub(super) async fn failure(&mut self) -> Failure {
        self.end().await.unwrap_err()
    }

    /// Whether it has not ended.
    pub(super) async fn runs(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(1), self.task.join_next()).await.is_err()
    }
}

/// A simple tool.
pub(super) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}
