//! Tools that the owner made of commands.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;

use super::exec_entry::{Kind, entry};
use super::{Arguments, CallContext, Plan, Tool};
use crate::clock::millis;
use crate::exec::{Checked, Executor, Input, Request};
use crate::failure::Failure;
use crate::permissions::{Action, Command, CommandLine};

/// The tool.
#[derive(Debug)]
pub(super) struct ConfiguredCommand {
    pub(super) executor: Arc<Executor>,
    pub(super) checked: Checked,
}

#[async_trait]
impl Tool for ConfiguredCommand {
    fn entry(&self) -> ToolEntry {
        let tool = &self.checked.tool;
        let kind = if tool.read_only { Kind::Looks } else { Kind::Changes };
        let (properties, required) = self.checked.properties();
        let limit = Some(millis(self.checked.limit()));
        ToolEntry {
            timeout_ms: limit,
            max_timeout_ms: limit,
            ..entry(&tool.name, &tool.name, &tool.description, kind, &properties, &required)
        }
    }

    fn is_read_only(&self) -> bool {
        self.checked.tool.read_only
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let (argv, stdin) = self.checked.fill(&arguments.parse()?)?;
        let cwd = self.executor.resolve_cwd(self.checked.tool.cwd.clone()).await?;
        let env = self.checked.tool.env.clone();
        let command = Command { line: CommandLine::Argv(argv), cwd, env, stdin: stdin.clone(), configured: true };
        let request = Request {
            command: command.clone(),
            input: stdin.map(|text| Input { data: text.into_bytes(), stays_open: false }),
            limit: self.checked.limit(),
            wait: None,
        };
        let executor = self.executor.clone();
        Ok(Plan::new(Action::Run(command), async move |ctx| executor.run(request, &ctx).await))
    }
}
