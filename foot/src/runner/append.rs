//! A tool whose runs can be counted afterwards: each appends one line to a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use footbridge_shared::message::ToolEntry;
use serde::Deserialize;
use serde_json::json;

use crate::failure::Failure;
use crate::permissions::Action;
use crate::tools::{Arguments, CallContext, Plan, Tool, ToolOutput};

/// `echo_append`
#[derive(Debug)]
pub(super) struct Append {
    file: PathBuf,
}

impl Append {
    /// On a file that whoever starts the foot names. No caller can choose another: that is why no rule is asked.
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }
}

#[derive(Debug, Deserialize)]
struct Line {
    line: String,
    #[serde(default)]
    ms: u64,
}

#[async_trait]
impl Tool for Append {
    fn entry(&self) -> ToolEntry {
        let schema = json!({"type": "object", "required": ["line"], "additionalProperties": false,
            "properties": {"line": {"type": "string", "pattern": "^[^\\n]*$"}, "ms": {"type": "integer", "minimum": 0}}});
        let description = "Appends `line` to the file of this tool, amidst `ms` milliseconds of other work.";
        ToolEntry {
            labels: vec!["echo".to_owned()],
            ..ToolEntry::new("echo_append", description, crate::tools::raw(&schema))
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let Line { line, ms } = arguments.parse()?;
        let (file, half) = (self.file.clone(), Duration::from_millis(ms / 2));
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            if stopped_within(half, &ctx).await {
                return Err(Failure::not_run(ErrorCode::Cancelled, "stopped before the line was written"));
            }
            let output = ToolOutput::text(&line);
            let done = tokio::task::spawn_blocking(move || append(&file, &line)).await;
            let done = done.map_err(std::io::Error::other).flatten();
            done.map_err(|error| Failure::completed(ErrorCode::ToolFailed, "the line was not written").cause(error))?;
            if stopped_within(half, &ctx).await {
                return Err(Failure::completed(ErrorCode::Cancelled, "stopped after the line was written"));
            }
            Ok(output)
        }))
    }
}

async fn stopped_within(time: Duration, ctx: &CallContext) -> bool {
    tokio::time::timeout(time, ctx.cancelled()).await.is_ok()
}

/// One write: a process that is killed writes the line whole or not at all.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(format!("{line}\n").as_bytes())
}
