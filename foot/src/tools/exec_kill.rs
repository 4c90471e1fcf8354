//! `exec_kill`: the end of a command.

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
struct KillArguments {
    id: String,
}

/// The tool.
#[derive(Debug)]
pub(super) struct ExecKill {
    pub(super) executor: Arc<Executor>,
}

#[async_trait]
impl Tool for ExecKill {
    fn entry(&self) -> ToolEntry {
        let description = "Ends a command that exec_run started, with all that it started: they are asked to end, and killed \
            a second later. One that has ended stays as it is.";
        let properties = json!({ "id": {"type": "string", "description": ID} });
        entry("exec_kill", "End a command", description, Kind::Changes, &properties, &["id"])
    }

    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let KillArguments { id } = arguments.parse()?;
        let jobs = self.executor.jobs().clone();
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            let job = jobs.get(&id, &ctx.caller.subject)?;
            job.kill();
            tokio::select! {
                () = job.ended() => {}
                () = ctx.cancelled() => {}
            }
            Ok(exec::state(&job, jobs.now()))
        }))
    }
}
