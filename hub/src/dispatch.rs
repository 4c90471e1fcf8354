//! The dispatcher: one surface over all sources, one way to run a call.
//!
//! It merges what the sources offer, applies the gates, checks arguments, keeps both deadlines, carries cancellation,
//! and tells the listeners. Calls with a key are written down first (`admit`). It knows nothing of HTTP, scripts or sockets.

mod admit;
pub mod audit;
pub mod calls;
pub mod catalog;
pub mod events;
pub mod found;
mod kept;
pub mod keyed;
mod run;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dashmap::DashMap;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{CallId, Subject, TenantName};
use futures::FutureExt as _;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::calls::{CallEntry, CallResult, CallTable};
use self::catalog::{Catalog, Resolution};
use self::keyed::KeyedCalls;
use crate::clock::random_id;
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallClock, CallContext, Caller, MAX_DEPTH};
use crate::domain::failure::Failure;
use crate::domain::journal::FootRecall;
use crate::domain::key::IdempotencyKey;
use crate::domain::listener::CallListener;
use crate::domain::mcp::McpClient;
use crate::domain::output::ToolOutput;
use crate::domain::scope::Scope;
use crate::domain::tool::{Blind, Tool, ToolCaller, ToolSource, Via};
use crate::lifecycle::Lifecycle;

/// Calls from outside that run at once on one hub; a further one is answered `overloaded`.
pub const MAX_RUNNING_CALLS: usize = 20_000;
/// Of these, for one tenant: the others always find room.
pub const MAX_RUNNING_CALLS_OF_A_TENANT: usize = MAX_RUNNING_CALLS / 4 * 3;
/// What `overloaded` suggests to wait, in milliseconds.
const OVERLOADED_RETRY_AFTER_MS: u64 = 500;

/// The three sources, in the order of the cascade: a configured tool hides a built-in one hides a foot's.
pub struct Sources {
    /// Documents.
    pub configured: Arc<dyn ToolSource>,
    /// Code of the hub.
    pub built_in: Arc<dyn ToolSource>,
    /// Feet.
    pub client: Arc<dyn ToolSource>,
}

/// A call from outside.
pub struct CallRequest {
    /// Where.
    pub scope: Arc<Scope>,
    /// For whom.
    pub caller: Arc<Caller>,
    /// The tool's public name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// A shorter idle limit than the tool's.
    pub timeout: Option<Duration>,
    /// A shorter hard limit than the tool's.
    pub max_timeout: Option<Duration>,
    /// With a key the call happens at most once, however often it is asked for, and survives its caller.
    pub key: Option<IdempotencyKey>,
    /// The MCP client that it came from.
    pub client: Option<Arc<dyn McpClient>>,
    /// What that client sent beside name and arguments: a JSON object.
    pub extra: Option<Arc<RawValue>>,
}

/// What a dispatcher works with.
pub struct DispatcherParts {
    /// Where tools come from.
    pub sources: Sources,
    /// Who watches calls.
    pub listeners: Vec<Arc<dyn CallListener>>,
    /// Calls with a key.
    pub keyed: Arc<KeyedCalls>,
    /// Finds the feet of keyed calls.
    pub feet: Arc<dyn FootRecall>,
    /// Owns the tasks.
    pub lifecycle: Lifecycle,
}

/// Dispatches calls. One a hub.
pub struct Dispatcher {
    me: Weak<Self>,
    sources: Sources,
    listeners: Vec<Arc<dyn CallListener>>,
    calls: Arc<CallTable>,
    keyed: Arc<KeyedCalls>,
    feet: Arc<dyn FootRecall>,
    permits: Arc<Semaphore>,
    shares: DashMap<TenantName, Arc<Semaphore>>,
    lifecycle: Lifecycle,
}

/// A call that passed every gate.
struct Prepared {
    tool: Arc<Tool>,
    clock: CallClock,
    permits: [OwnedSemaphorePermit; 2],
}

fn draining() -> Failure {
    Failure::not_run(ErrorCode::Draining, "the hub is going down").hint("try again shortly")
}

impl Dispatcher {
    /// A dispatcher over these parts.
    pub fn new(parts: DispatcherParts) -> Arc<Self> {
        let DispatcherParts { sources, listeners, keyed, feet, lifecycle } = parts;
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            sources,
            listeners,
            calls: keyed.calls.clone(),
            keyed,
            feet,
            permits: Arc::new(Semaphore::new(MAX_RUNNING_CALLS)),
            shares: DashMap::new(),
            lifecycle,
        })
    }

    /// Calls that run, and those that ended a short while ago.
    pub fn calls(&self) -> &CallTable {
        &self.calls
    }

    /// Everything a subject could see in a scope, before gates: one consistent snapshot.
    ///
    /// # Errors
    /// When a source cannot say.
    pub async fn catalog(&self, scope: &Scope, subject: &Subject) -> Result<Catalog, Failure> {
        let (configured, built_in, client) = futures::try_join!(
            self.sources.configured.listing(scope, subject),
            self.sources.built_in.listing(scope, subject),
            self.sources.client.listing(scope, subject),
        )?;
        Ok(Catalog { configured, built_in, client })
    }

    /// A place among all calls, and one among the tenant's.
    fn permits(&self, tenant: &TenantName) -> Result<[OwnedSemaphorePermit; 2], Failure> {
        let overloaded = |_| {
            Failure::not_run(ErrorCode::Overloaded, "too many calls run at once")
                .retry_after_ms(OVERLOADED_RETRY_AFTER_MS)
        };
        let share = match self.shares.get(tenant) {
            Some(share) => share.clone(),
            None => {
                let new = || Arc::new(Semaphore::new(MAX_RUNNING_CALLS_OF_A_TENANT));
                self.shares.entry(tenant.clone()).or_insert_with(new).clone()
            }
        };
        let own = share.try_acquire_owned().map_err(overloaded)?;
        let place = self.permits.clone().try_acquire_owned().map_err(overloaded)?;
        Ok([own, place])
    }

    /// Prepares a call from outside; it runs once the [`RunningCall`] is waited for or detached. One with a key runs
    /// already, or has run.
    ///
    /// # Errors
    /// No such tool, arguments that do not fit, too many calls, a hub going down: the outcome is `not_run`. With a key also
    /// `idempotency_key_reused` (this call did not run), and what is known of an earlier try that cannot be told the end of:
    /// the outcome is `unknown` then.
    pub async fn start(&self, mut request: CallRequest) -> Result<RunningCall, Failure> {
        let (scope, caller, name) = (request.scope.clone(), request.caller.clone(), request.name.clone());
        let started = match request.key.take() {
            None => self.start_unkeyed(request).await,
            Some(key) => self.start_keyed(request, key).await,
        };
        if let Err(failure) = &started {
            for listener in &self.listeners {
                listener.refused(&scope, &caller, &name, failure);
            }
        }
        started
    }

    /// A tool to be called. Of one that is not there a source may know why.
    async fn tool(&self, catalog: &Catalog, scope: &Scope, caller: &Caller, name: &str) -> Result<Arc<Tool>, Failure> {
        match resolve(catalog, caller, name) {
            Err(failure) if failure.code == ErrorCode::UnknownTool => Err(self.missing(scope, caller, name).await),
            found => found,
        }
    }

    /// What is to be said of a name that is no tool of the caller's: why it is not there yet where a source knows, else that
    /// nobody knows it.
    pub async fn missing(&self, scope: &Scope, caller: &Caller, name: &str) -> Failure {
        let known = self.sources.configured.absent(scope, caller, name).await;
        known.unwrap_or_else(|| Failure::unknown_tool(name))
    }

    /// Takes a call through every gate.
    async fn prepare(&self, request: &CallRequest) -> Result<Prepared, Failure> {
        if self.lifecycle.soft().is_cancelled() {
            return Err(draining());
        }
        let permits = self.permits(&request.scope.tenant)?;
        let catalog = self.catalog(&request.scope, &request.caller.subject).await?;
        let tool = self.tool(&catalog, &request.scope, &request.caller, &request.name).await?;
        check_arguments(&tool, &request.arguments)?;
        let (idle, hard) = tool.limits();
        let clock = CallClock::start(
            request.timeout.map_or(idle, |shorter| idle.min(shorter)),
            request.max_timeout.map_or(hard, |shorter| hard.min(shorter)),
        );
        Ok(Prepared { tool, clock, permits })
    }

    async fn start_unkeyed(&self, request: CallRequest) -> Result<RunningCall, Failure> {
        let Prepared { tool, clock, permits } = self.prepare(&request).await?;
        let dispatcher = self.me.upgrade().ok_or_else(draining)?;
        let CallRequest { scope, caller, arguments, client, extra, .. } = request;
        let call = new_call_id();
        let entry = CallEntry::new(call.clone(), scope.clone(), &caller, &tool, None, dispatcher.keyed.clock.now());
        self.calls.insert(entry.clone());
        let mut ctx = CallContext::new(call, scope, caller, clock, dispatcher.clone(), Some(entry.clone()));
        ctx.cancel = entry.cancel_token().clone();
        (ctx.client, ctx.extra) = (client, extra);
        let running = entry.clone();
        let work = Box::pin(async move {
            let result = dispatcher.execute(&tool, arguments, &ctx).await;
            dispatcher.calls.end(&running, Arc::new(result));
            drop(permits);
        });
        Ok(RunningCall { entry, replayed: false, work: Some(work), lifecycle: self.lifecycle.clone() })
    }

    /// Runs a tool to an end of any kind.
    async fn execute(&self, tool: &Arc<Tool>, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let run = AssertUnwindSafe(self.run(tool, arguments, ctx, None)).catch_unwind();
        tokio::select! {
            // In this order: what was begun has an end that its listeners hear of.
            biased;
            result = run => result.unwrap_or_else(|_| Err(run::broken())),
            () = self.lifecycle.hard().cancelled() => Err(run::stopped()),
        }
    }
}

/// A call that was prepared. It runs while it is waited for; when it is dropped before its end, whoever wanted the result is
/// gone: the call is cancelled, and goes on in a task of its own until the tool has stopped. One with a key has a task of
/// its own from the start, and goes on whatever becomes of this.
#[must_use = "a call that is dropped is cancelled"]
pub struct RunningCall {
    entry: Arc<CallEntry>,
    replayed: bool,
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    lifecycle: Lifecycle,
}

impl RunningCall {
    /// The call.
    pub fn entry(&self) -> &Arc<CallEntry> {
        &self.entry
    }

    /// Whether this is the end of an earlier try with the same key, as the journal has it.
    pub fn is_replayed(&self) -> bool {
        self.replayed
    }

    /// Runs it here, to its end. In the caller's own task: a task more would cost a relayed call more than all else.
    pub async fn wait(mut self) -> (CallResult, Duration) {
        if let Some(work) = &mut self.work {
            work.await;
        }
        self.work = None;
        self.entry.wait().await
    }

    /// Lets it run in a task of its own.
    pub fn detach(mut self) -> Arc<CallEntry> {
        if let Some(work) = self.work.take() {
            self.lifecycle.spawn_work(work);
        }
        self.entry.clone()
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.entry.cancel();
            self.lifecycle.spawn_work(work);
        }
    }
}

fn new_call_id() -> CallId {
    // 22 characters of base64url are a call id; the second arm is for the type checker.
    CallId::parse(&random_id()).unwrap_or_else(|_| new_call_id())
}

/// Finds a tool that this caller may call. What is not theirs is answered like what does not exist.
fn resolve(catalog: &Catalog, caller: &Caller, name: &str) -> Result<Arc<Tool>, Failure> {
    match catalog.resolve(name) {
        Resolution::Tool(tool) if tool.spec.admits(caller) => Ok(tool.clone()),
        Resolution::Broken { entry, reason } => {
            Err(Failure::not_run(ErrorCode::ToolBroken, format!("the tool `{}` is broken: {reason}", entry.name))
                .hint(format!("mend `server-tools/{}.yaml` in the layer `{}`", entry.name, entry.layer)))
        }
        Resolution::Blind(blind) => Err(blind_to(name, blind)),
        Resolution::Tool(_) | Resolution::Unknown => Err(Failure::unknown_tool(name)),
    }
}

/// What a name is that a layer may hold which could not be looked into.
pub(crate) fn blind_to(name: &str, blind: &Blind) -> Failure {
    let message = format!("nobody knows what the tool `{name}` is: {}", blind.reason);
    Failure::not_run(ErrorCode::ToolBroken, message)
        .hint(format!("make that folder of the layer `{}` readable", blind.layer))
}

fn check_arguments(tool: &Tool, arguments: &Arguments) -> Result<(), Failure> {
    tool.schema.as_ref().map_or(Ok(()), |schema| {
        schema.check(arguments).map_err(|failure| {
            failure.hint(format!("`tool_description` with names [\"{}\"] shows the schema", tool.spec.name))
        })
    })
}

#[async_trait]
impl ToolCaller for Dispatcher {
    async fn call(&self, ctx: &CallContext, name: &str, arguments: Arguments, via: Via) -> Result<ToolOutput, Failure> {
        let mut inner = ctx.inner();
        if inner.depth > MAX_DEPTH {
            return Err(Failure::not_run(
                ErrorCode::DepthExceeded,
                format!("tools called tools more than {MAX_DEPTH} deep"),
            ));
        }
        let catalog = self.catalog(&ctx.scope, &ctx.caller.subject).await?;
        let tool = self.tool(&catalog, &ctx.scope, &ctx.caller, name).await?;
        check_arguments(&tool, &arguments)?;
        let (idle, hard) = tool.limits();
        inner.clock = ctx.clock.within(idle, hard);
        self.run(&tool, arguments, &inner, Some(via)).await
    }

    async fn list(&self, ctx: &CallContext) -> Result<Vec<Arc<Tool>>, Failure> {
        let catalog = self.catalog(&ctx.scope, &ctx.caller.subject).await?;
        Ok(catalog.tools().into_iter().filter(|tool| tool.spec.admits(&ctx.caller)).collect())
    }

    async fn find(&self, ctx: &CallContext, name: &str) -> Result<Option<Arc<Tool>>, Failure> {
        let mut found = self.find_all(ctx, std::slice::from_ref(&name)).await?;
        Ok(found.pop().and_then(Result::ok))
    }

    async fn find_all(&self, ctx: &CallContext, names: &[&str]) -> Result<Vec<Result<Arc<Tool>, Failure>>, Failure> {
        let catalog = self.catalog(&ctx.scope, &ctx.caller.subject).await?;
        let tools = names.iter().map(|name| self.tool(&catalog, &ctx.scope, &ctx.caller, name));
        Ok(futures::future::join_all(tools).await)
    }
}
