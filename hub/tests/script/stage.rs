//! A pool with real worker processes, and tools for its scripts to call.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use async_trait::async_trait;
use footbridge_hub::domain::arguments::Arguments;
use footbridge_hub::domain::call::{CallClock, CallContext, Caller, MAX_DEPTH};
use footbridge_hub::domain::document::{DocumentPath, DocumentReader, Layer, ResolvedDocument};
use footbridge_hub::domain::failure::Failure;
use footbridge_hub::domain::output::ToolOutput;
use footbridge_hub::domain::scope::Scope;
use footbridge_hub::domain::script::{ScriptRequest, ScriptRunner as _};
use footbridge_hub::domain::tool::{Tool, ToolCaller, Via};
use footbridge_hub::lifecycle::Lifecycle;
use footbridge_hub::script::{Pool, PoolConfig};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{CallId, ProjectName, Subject, TenantName};
use footbridge_shared::message::Raw;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

pub(crate) type TestResult<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Far beyond what any script here takes by itself, on however busy a machine.
pub(crate) const PLENTY: Duration = Duration::from_secs(60);

/// Scripts that must run at once for `vance.tools.call('meet')` to return: more than one call has attempts at starting.
pub(crate) const PARTY: usize = 6;

/// Native work that asks no interrupt handler, for minutes.
pub(crate) const NATIVE: &str = "'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b')";

/// The hub binary, which is a worker when told so.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_footbridge");

pub(crate) struct Stage {
    pub(crate) pool: Arc<Pool>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only the tests of processes shut it down"))]
    pub(crate) lifecycle: Lifecycle,
    pub(crate) tools: Arc<Tools>,
    #[cfg(target_os = "linux")]
    tag: String,
}

impl Stage {
    /// A pool of `workers`, all of them for any tenant, one of which has started and run something.
    pub(crate) async fn new(workers: usize) -> TestResult<Self> {
        let stage = Self::configured(|config| {
            config.workers = workers;
            config.per_tenant = workers;
        })
        .await?;
        stage.value("1").await?;
        Ok(stage)
    }

    pub(crate) async fn configured(change: impl FnOnce(&mut PoolConfig)) -> TestResult<Self> {
        static STAGES: AtomicUsize = AtomicUsize::new(0);
        let tag = stage_tag(std::process::id(), STAGES.fetch_add(1, Ordering::Relaxed));
        let mut config = PoolConfig::new(PROGRAM);
        config.args.push(OsString::from(&tag));
        change(&mut config);
        let lifecycle = Lifecycle::new();
        let pool = Arc::new(Pool::start(&config, Arc::new(Shelf), &lifecycle).await?);
        let tools = Arc::new(Tools::default());
        let _ = tools.pool.set(pool.clone());
        Ok(Self {
            pool,
            lifecycle,
            tools,
            #[cfg(target_os = "linux")]
            tag,
        })
    }

    /// A call from outside with this hard limit.
    pub(crate) fn call(&self, limit: Duration) -> TestResult<CallContext> {
        self.call_of("acme", CallClock::start(limit, limit))
    }

    pub(crate) fn call_of(&self, tenant: &str, clock: CallClock) -> TestResult<CallContext> {
        let scope = Scope::new(TenantName::parse(tenant)?, ProjectName::parse("main")?);
        let caller = Caller::direct(Subject::parse("ada")?);
        Ok(CallContext::new(CallId::parse("call")?, Arc::new(scope), Arc::new(caller), clock, self.tools.clone(), None))
    }

    /// Runs a script with plenty of time.
    pub(crate) async fn run(&self, source: &str) -> TestResult<ToolOutput> {
        Ok(self.pool.run(request(source, PLENTY), &self.call(PLENTY)?).await?)
    }

    /// The value of a script that succeeds.
    pub(crate) async fn value(&self, source: &str) -> TestResult<Value> {
        let output = self.run(source).await?;
        let structured = structured(&output)?;
        if output.is_error {
            return Err(format!("{source}: {structured}").into());
        }
        Ok(structured["value"].clone())
    }

    /// Process ids of the stage's workers.
    #[cfg(target_os = "linux")]
    pub(crate) fn workers(&self) -> Vec<u32> {
        workers_of(&self.tag)
    }
}

/// An argument that workers ignore, by which a stage finds its own among all processes.
fn stage_tag(hub: u32, stage: usize) -> String {
    format!("--stage-{hub}-{stage}")
}

/// Process ids of the workers with a tag.
#[cfg(target_os = "linux")]
fn workers_of(tag: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == tag.as_bytes())
    })
    .collect()
}

/// Tests that measure time and tests that take much of it do so one after another.
pub(crate) async fn alone() -> tokio::sync::MutexGuard<'static, ()> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ONE.lock().await
}

pub(crate) fn raw(value: &Value) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

pub(crate) fn request(source: &str, timeout: Duration) -> ScriptRequest {
    ScriptRequest {
        name: "scripts/test.js".to_owned(),
        source: source.to_owned(),
        inputs: Vec::new(),
        params: raw(&json!({})),
        timeout,
    }
}

pub(crate) fn structured(output: &ToolOutput) -> TestResult<Value> {
    let raw = output.structured.as_ref().ok_or("nothing structured")?;
    Ok(serde_json::from_str(raw.get())?)
}

/// Waits until something holds; fails when it does not come to hold for a long while.
#[cfg(target_os = "linux")]
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> TestResult {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > PLENTY {
            return Err(format!("never came: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Tools to call. What they note, tests read.
pub(crate) struct Tools {
    pool: OnceLock<Arc<Pool>>,
    /// Fires when `hang` was called.
    pub(crate) hanging: CancellationToken,
    /// Fires when `hang` was cancelled.
    pub(crate) cancelled: CancellationToken,
    /// Where callers of `meet` wait for each other.
    party: Barrier,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            pool: OnceLock::new(),
            hanging: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            party: Barrier::new(PARTY),
        }
    }
}

#[async_trait]
impl ToolCaller for Tools {
    async fn call(&self, ctx: &CallContext, name: &str, arguments: Arguments, via: Via) -> Result<ToolOutput, Failure> {
        assert_eq!(via, Via::Script);
        // As the hub's own caller of tools does: a call of a tool is one deeper than who calls it.
        let ctx = &ctx.inner();
        if ctx.depth > MAX_DEPTH {
            return Err(Failure::not_run(ErrorCode::DepthExceeded, "too deep"));
        }
        match name {
            "echo" => Ok(ToolOutput::raw_json(arguments.into_raw())),
            "text" => Ok(ToolOutput::text(arguments.parse::<Value>()?["text"].as_str().unwrap_or_default())),
            "fail" => Ok(ToolOutput::error(ErrorCode::ToolFailed, "it did not work", Some("try less".to_owned()))),
            "pause" => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(ToolOutput::json(&ctx.depth))
            }
            "meet" => {
                self.party.wait().await;
                Ok(ToolOutput::json(&PARTY))
            }
            "hang" => {
                self.hanging.cancel();
                ctx.cancel.cancelled().await;
                self.cancelled.cancel();
                Err(Failure::not_run(ErrorCode::Cancelled, "cancelled"))
            }
            "deaf" => std::future::pending().await,
            // As a `scripted` tool does: the same script, one level deeper.
            "script" => {
                let source = arguments.parse::<Value>()?["source"].as_str().unwrap_or_default().to_owned();
                let pool = self.pool.get().ok_or_else(|| Failure::unknown_tool(name))?;
                let mut inner = request(&source, PLENTY);
                inner.inputs.push(("source".to_owned(), raw(&json!(source))));
                pool.run(inner, ctx).await
            }
            _ => Err(Failure::unknown_tool(name)),
        }
    }

    async fn list(&self, _ctx: &CallContext) -> Result<Vec<Arc<Tool>>, Failure> {
        Ok(Vec::new())
    }

    async fn find(&self, _ctx: &CallContext, _name: &str) -> Result<Option<Arc<Tool>>, Failure> {
        Ok(None)
    }
}

/// A reader that has every document but one.
struct Shelf;

#[async_trait]
impl DocumentReader for Shelf {
    async fn read(&self, scope: &Scope, path: &DocumentPath) -> Result<Option<ResolvedDocument>, Failure> {
        if path.as_str() == "missing.md" {
            return Ok(None);
        }
        let text = format!("{path} of {scope}");
        Ok(Some(ResolvedDocument { layer: Layer::Project, path: path.clone(), text, etag: "project-1".to_owned() }))
    }
}

/// A program that is no worker.
#[cfg(target_os = "linux")]
pub(crate) fn shell(script: &str) -> (PathBuf, Vec<OsString>) {
    (PathBuf::from("/bin/sh"), vec!["-c".into(), script.into()])
}
