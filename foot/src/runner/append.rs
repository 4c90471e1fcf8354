//! A tool whose runs can be counted afterwards: each appends one line to a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

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
}

#[async_trait]
impl Tool for Append {
    fn entry(&self) -> ToolEntry {
        let schema = json!({"type": "object", "properties": {"line": {"type": "string", "pattern": "^[^\\n]*$"}},
            "required": ["line"], "additionalProperties": false});
        ToolEntry {
            labels: vec!["echo".to_owned()],
            ..ToolEntry::new("echo_append", "Appends `line` to the file of this tool.", crate::tools::raw(&schema))
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let Line { line } = arguments.parse()?;
        let file = self.file.clone();
        let work = move || append(&file, &line).map(|()| ToolOutput::text(&line));
        Ok(Plan::new(Action::Nothing, async move |_| {
            let done = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten();
            done.map_err(|error| Failure::completed(ErrorCode::ToolFailed, "the line was not written").cause(error))
        }))
    }
}

/// One write: a process that is killed writes the line whole or not at all.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(format!("{line}\n").as_bytes())
}
