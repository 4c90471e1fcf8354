//! `exec_input`: more to read for a command.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use serde::Deserialize;
use serde_json::json;

use super::exec_entry::{ID, Kind, entry};
use super::{Arguments, CallContext, Plan, Tool};
use crate::exec::{self, Executor};
use crate::failure::Failure;
use crate::permissions::Action;

#[derive(Debug, Deserialize)]
struct InputArguments {
    id: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    close: bool,
}

/// The tool.
#[derive(Debug)]
pub(super) struct ExecInput {
    pub(super) executor: Arc<Executor>,
}

#[async_trait]
impl Tool for ExecInput {
    fn entry(&self) -> ToolEntry {
        let description = "Writes to the input of a command that exec_run started with `stdin` and `waitMs`, or ends its \
            input. Waits until the command has taken it.";
        let properties = json!({
            "id": {"type": "string", "description": ID},
            "data": {"type": "string", "description": "What to write, with the line breaks that it needs."},
            "close": {"type": "boolean", "description": "Whether nothing more follows [default: false]."},
        });
        entry("exec_input", "Write to a command", description, Kind::Changes, &properties, &["id"])
    }

    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let InputArguments { id, data, close } = arguments.parse()?;
        let jobs = self.executor.jobs().clone();
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            let job = jobs.get(&id, &ctx.caller.subject)?;
            exec::write_input(&job, data.as_bytes(), close, &ctx).await?;
            Ok(exec::state(&job, jobs.now()))
        }))
    }
}
