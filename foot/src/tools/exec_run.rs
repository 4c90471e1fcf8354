//! `exec_run`: runs a command.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use serde::Deserialize;
use serde_json::json;

use super::exec_entry::{Kind, entry};
use super::{Arguments, CallContext, Plan, Tool};
use crate::clock::millis;
use crate::exec::{self, DEFAULT_LIMIT, Executor, Input, MAX_LIMIT, Request};
use crate::failure::Failure;
use crate::permissions::{Action, Command, CommandLine};

/// Longest that a call waits for a command which goes on without it, in milliseconds.
const MAX_WAIT_MS: u64 = 10 * 60 * 1000;
/// How long a command may be silent: a build may say nothing for a while.
const IDLE: Duration = Duration::from_secs(10 * 60);

const DESCRIPTION: &str = "\
Runs a command on this machine and answers with its output. `argv` is a program and its arguments, with no shell; \
`command` is a script for sh -c. It starts in `cwd` (default: the first root folder) and reads `stdin`, or nothing. \
Without `waitMs` it is waited for; with it, a command that takes longer goes on, and exec_status, exec_tail, exec_input \
and exec_kill work on its id. A long output is shown by its beginning and its end.";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunArguments {
    argv: Option<Vec<String>>,
    command: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    stdin: Option<String>,
    wait_ms: Option<u64>,
    deadline_seconds: Option<u64>,
}

/// The tool.
#[derive(Debug)]
pub(super) struct ExecRun {
    pub(super) executor: Arc<Executor>,
}

#[async_trait]
impl Tool for ExecRun {
    fn entry(&self) -> ToolEntry {
        let properties = json!({
            "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                "description": "The program and its arguments, one word each. Give this or `command`."},
            "command": {"type": "string", "minLength": 1, "description": "A script for sh -c. Give this or `argv`."},
            "cwd": {"type": "string", "description": "The folder to start in."},
            "env": {"type": "object", "additionalProperties": {"type": "string"},
                "description": "Variables to set besides the few that are inherited."},
            "stdin": {"type": "string",
                "description": "What it reads. With `waitMs` its input stays open for exec_input, also behind an empty text."},
            "waitMs": {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS,
                "description": "How long to wait, in milliseconds, before the command goes on by itself."},
            "deadlineSeconds": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT.as_secs(),
                "description": "When to end the command [default: 3600]."},
        });
        let description = "Run a command";
        ToolEntry {
            primary: true,
            timeout_ms: Some(millis(IDLE)),
            max_timeout_ms: Some(millis(DEFAULT_LIMIT)),
            ..entry("exec_run", description, DESCRIPTION, Kind::Changes, &properties, &[])
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let RunArguments { argv, command, cwd, env, stdin, wait_ms, deadline_seconds } = arguments.parse()?;
        let line = match (argv, command) {
            (Some(argv), None) => CommandLine::Argv(argv),
            (None, Some(script)) => CommandLine::Shell(script),
            _ => return Err(Failure::invalid_arguments("give either `argv` or `command`")),
        };
        exec::check_environment(&env)?;
        let cwd = self.executor.resolve_cwd(cwd).await?;
        let command = Command { line, cwd, env, stdin: stdin.clone(), configured: false };
        let wait = wait_ms.map(Duration::from_millis);
        let request = Request {
            command: command.clone(),
            input: stdin.map(|text| Input { data: text.into_bytes(), stays_open: wait.is_some() }),
            limit: deadline_seconds.map_or(DEFAULT_LIMIT, Duration::from_secs),
            wait,
        };
        let executor = self.executor.clone();
        Ok(Plan::new(Action::Run(command), async move |ctx| executor.run(request, &ctx).await))
    }
}
