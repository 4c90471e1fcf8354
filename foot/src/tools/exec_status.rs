//! `exec_status`: how far a command is.

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
struct StatusArguments {
    id: String,
}

/// The tool.
#[derive(Debug)]
pub(super) struct ExecStatus {
    pub(super) executor: Arc<Executor>,
}

#[async_trait]
impl Tool for ExecStatus {
    fn entry(&self) -> ToolEntry {
        let description = "Says how far a command is that exec_run started: running, or how it ended, for how long it ran \
            and how much it wrote.";
        let properties = json!({ "id": {"type": "string", "description": ID} });
        entry("exec_status", "Look at a command", description, Kind::Looks, &properties, &["id"])
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let StatusArguments { id } = arguments.parse()?;
        let jobs = self.executor.jobs().clone();
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            let job = jobs.get(&id, &ctx.caller.subject)?;
            Ok(exec::state(&job, jobs.now()))
        }))
    }
}
