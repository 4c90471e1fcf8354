//! `exec_tail`: what a command wrote last.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::{Stream, ToolEntry};
use serde::Deserialize;
use serde_json::json;

use super::exec_entry::{ID, Kind, entry};
use super::{Arguments, CallContext, Plan, Tool};
use crate::exec::{self, Executor, Lines};
use crate::failure::Failure;
use crate::permissions::Action;

/// Lines that are answered unless more are asked for.
const DEFAULT_LINES: usize = 10;
/// Most lines.
const MAX_LINES: usize = 500;

#[derive(Debug, Deserialize)]
struct TailArguments {
    id: String,
    lines: Option<usize>,
    stream: Option<Stream>,
}

/// The tool.
#[derive(Debug)]
pub(super) struct ExecTail {
    pub(super) executor: Arc<Executor>,
}

#[async_trait]
impl Tool for ExecTail {
    fn entry(&self) -> ToolEntry {
        let description = "Answers with the last lines that a command wrote, which exec_run started. It may still run.";
        let properties = json!({
            "id": {"type": "string", "description": ID},
            "lines": {"type": "integer", "minimum": 1, "maximum": MAX_LINES, "description": "How many [default: 10]."},
            "stream": {"type": "string", "enum": ["stdout", "stderr"], "description": "One of the two [default: both]."},
        });
        entry("exec_tail", "Read a command's output", description, Kind::Looks, &properties, &["id"])
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let TailArguments { id, lines, stream } = arguments.parse()?;
        let jobs = self.executor.jobs().clone();
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            let job = jobs.get(&id, &ctx.caller.subject)?;
            Ok(exec::lines(&job, jobs.now(), Lines { count: lines.unwrap_or(DEFAULT_LINES), stream }))
        }))
    }
}
