//! What a foot runs: the tools of the machine, or echoes of its calls.

mod append;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use footbridge_shared::{ErrorCode, Outcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::permissions::{Action, Permissions};
use crate::tools::{Arguments, CallContext, Plan, Tool, ToolOutput, file_tools};

/// Where a foot's tools come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Runner {
    /// The machine: its files.
    #[default]
    Real,
    /// Tools that answer with what they were given and touch nothing, for tests and measurements.
    Echo,
    /// The same, and one that appends a line to this file: what ran, and how often, can be read there.
    EchoAppend(PathBuf),
}

impl Runner {
    /// The tools, within what is permitted.
    pub(crate) fn tools(&self, permissions: &Arc<Permissions>) -> Vec<Arc<dyn Tool>> {
        match self {
            Self::Real => file_tools(permissions),
            Self::Echo => echoes(),
            Self::EchoAppend(file) => {
                let mut tools = echoes();
                tools.push(Arc::new(append::Append::new(file)));
                tools
            }
        }
    }
}

fn echoes() -> Vec<Arc<dyn Tool>> {
    let runs = Arc::new(AtomicU64::new(0));
    Kind::ALL.into_iter().map(|kind| Arc::new(Echo { kind, runs: runs.clone() }) as Arc<dyn Tool>).collect()
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Answers with its arguments.
    Echo,
    /// Answers with a text, and nothing else.
    Text,
    /// Takes its time and shows life.
    Wait,
    /// Answers with so many bytes.
    Bytes,
    /// Fails.
    Fail,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Echo, Self::Text, Self::Wait, Self::Bytes, Self::Fail];

    const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Text => "echo_text",
            Self::Wait => "echo_wait",
            Self::Bytes => "echo_bytes",
            Self::Fail => "echo_fail",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Echo => "Answers with its arguments, its caller, and how many calls ran so far.",
            Self::Text => "Answers with `text`.",
            Self::Wait => "Waits `ms` milliseconds and shows life every `progressMs`, if that is given.",
            Self::Bytes => "Answers with a text of `bytes` bytes.",
            Self::Fail => "Fails.",
        }
    }

    fn schema(self) -> Value {
        let number = json!({"type": "integer", "minimum": 0});
        match self {
            Self::Echo => json!({"type": "object"}),
            Self::Text => json!({"type": "object", "properties": {"text": {"type": "string"}},
                "required": ["text"], "additionalProperties": false}),
            Self::Wait => json!({"type": "object", "properties": {"ms": number, "progressMs": number},
                "required": ["ms"], "additionalProperties": false}),
            Self::Bytes => json!({"type": "object", "properties": {"bytes": number},
                "required": ["bytes"], "additionalProperties": false}),
            Self::Fail => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        }
    }
}

#[derive(Debug, Clone)]
struct Echo {
    kind: Kind,
    runs: Arc<AtomicU64>,
}

#[derive(Debug, Deserialize)]
struct Text {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wait {
    ms: u64,
    progress_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Bytes {
    bytes: usize,
}

#[async_trait]
impl Tool for Echo {
    fn entry(&self) -> ToolEntry {
        let schema = crate::tools::raw(&self.kind.schema());
        ToolEntry {
            labels: vec!["echo".to_owned()],
            ..ToolEntry::new(self.kind.name(), self.kind.description(), schema)
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let me = self.clone();
        Ok(Plan::new(Action::Nothing, async move |ctx| me.run(&arguments, &ctx).await))
    }
}

impl Echo {
    async fn run(&self, arguments: &Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        match self.kind {
            Kind::Echo => {
                let given: Value = arguments.parse()?;
                let structured = json!({"arguments": given, "run": run, "caller": ctx.caller.subject});
                Ok(ToolOutput::text(arguments.json()).with_structured(&structured))
            }
            Kind::Text => {
                let Text { text } = arguments.parse()?;
                Ok(ToolOutput::text(&text))
            }
            Kind::Wait => {
                let Wait { ms, progress_ms } = arguments.parse()?;
                wait(ms, progress_ms, ctx).await?;
                Ok(ToolOutput::text("waited").with_structured(&json!({"run": run})))
            }
            Kind::Bytes => {
                let Bytes { bytes } = arguments.parse()?;
                Ok(ToolOutput::text(&"x".repeat(bytes)))
            }
            Kind::Fail => Err(Failure::completed(ErrorCode::ToolFailed, "this tool always fails")),
        }
    }
}

async fn wait(ms: u64, progress_ms: Option<u64>, ctx: &CallContext) -> Result<(), Failure> {
    let end = tokio::time::Instant::now() + Duration::from_millis(ms);
    let step = progress_ms.filter(|ms| *ms > 0).map_or(Duration::MAX, Duration::from_millis);
    let mut steps = 0.0;
    loop {
        let next = tokio::time::Instant::now().checked_add(step).map_or(end, |next| next.min(end));
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = ctx.cancelled() => {
                return Err(Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "stopped while waiting"));
            }
        }
        if next == end {
            return Ok(());
        }
        steps += 1.0;
        ctx.progress(steps, None, "waiting");
    }
}
