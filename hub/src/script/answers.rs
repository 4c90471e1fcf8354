//! What a script asks of the hub, answered within what its process may do.

use std::future::Future;

use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{sleep, sleep_until};

use super::frame::{Ask, HostError, Level};
use super::limits::{INNER_GRACE, MAX_ANSWER_BYTES, MAX_LOG_CHARS, MAX_LOG_LINES, MAX_MESSAGE_CHARS};
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::document::{DocumentPath, DocumentReader};
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::Via;

/// Answers for one run.
pub(super) struct Answers<'a> {
    /// The run's own context: its clock and its token.
    ctx: &'a CallContext,
    documents: &'a dyn DocumentReader,
    script: &'a str,
    lines: u32,
}

impl<'a> Answers<'a> {
    pub(super) fn new(ctx: &'a CallContext, documents: &'a dyn DocumentReader, script: &'a str) -> Self {
        Self { ctx, documents, script, lines: 0 }
    }

    /// Answers one question, at the latest a moment after the run's deadline.
    pub(super) async fn answer(&self, ask: Ask) -> Result<Raw, HostError> {
        // A script that asks is alive.
        self.ctx.clock.touch();
        let answer = match ask {
            Ask::Call { name, params } => self.call(&name, params).await,
            Ask::List => self.list().await,
            Ask::Has { name } => self.has(&name).await,
            Ask::Read { path } => self.read(&path).await,
        };
        self.ctx.clock.touch();
        match answer {
            Ok(json) if json.get().len() > MAX_ANSWER_BYTES => Err(HostError {
                code: ErrorCode::ResultTooLarge,
                message: format!("the answer has more than {MAX_ANSWER_BYTES} bytes"),
                hint: None,
                outcome: Outcome::Completed,
            }),
            other => other,
        }
    }

    async fn call(&self, name: &str, params: Raw) -> Result<Raw, HostError> {
        // No `inner` here: the caller of tools goes one deeper, and says so when that is too deep.
        let inner = self.ctx.stoppable();
        let call = self.ctx.tools.call(&inner, name, Arguments::new(params), Via::Script);
        match self.in_time(&inner, call).await? {
            output if output.is_error => Err(told(&output)),
            output => Ok(value_of(output)),
        }
    }

    async fn list(&self) -> Result<Raw, HostError> {
        #[derive(Serialize)]
        struct Entry<'a> {
            name: &'a str,
            description: &'a str,
        }
        let inner = self.ctx.stoppable();
        let tools = self.in_time(&inner, self.ctx.tools.list(&inner)).await?;
        let entries: Vec<_> = tools
            .iter()
            .map(|tool| Entry { name: tool.spec.name.as_str(), description: &tool.spec.description })
            .collect();
        json(&entries)
    }

    async fn has(&self, name: &str) -> Result<Raw, HostError> {
        let inner = self.ctx.stoppable();
        json(&self.in_time(&inner, self.ctx.tools.find(&inner, name)).await?.is_some())
    }

    async fn read(&self, path: &str) -> Result<Raw, HostError> {
        let path = DocumentPath::parse(path)
            .map_err(|error| HostError::from(Failure::not_run(ErrorCode::InvalidPath, error.to_string())))?;
        let hidden = path.as_str().split('/').any(|segment| segment.starts_with('_'));
        let inner = self.ctx.stoppable();
        let document = match hidden {
            true => None,
            false => self.in_time(&inner, self.documents.read(&self.ctx.scope, &path)).await?,
        };
        match document {
            Some(document) => json(&document.text),
            None => Err(Failure::not_run(ErrorCode::NotFound, format!("there is no document `{path}` here")).into()),
        }
    }

    /// Waits for an inner call. At the deadline it is cancelled, and soon after given up.
    async fn in_time<T>(
        &self,
        inner: &CallContext,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, HostError> {
        let late = async {
            sleep_until(self.ctx.clock.hard()).await;
            inner.cancel.cancel();
            sleep(INNER_GRACE).await;
        };
        tokio::select! {
            biased;
            result = work => result.map_err(HostError::from),
            () = late => Err(Failure::new(
                ErrorCode::DeadlineExceeded,
                Outcome::Unknown,
                "the script ran out of time while it waited for this call",
            ).into()),
        }
    }

    /// Writes a script's line to the log. The worker counts lines too; a worker gone wrong does not flood the log.
    pub(super) fn log(&mut self, level: Level, line: &str) {
        self.lines += 1;
        if self.lines > MAX_LOG_LINES {
            return;
        }
        let line: String = line.chars().take(MAX_LOG_CHARS).flat_map(escaped).collect();
        let (tenant, project, script) = (&self.ctx.scope.tenant, &self.ctx.scope.project, self.script);
        match level {
            Level::Debug => tracing::debug!(%tenant, %project, script, "{line}"),
            Level::Info => tracing::info!(%tenant, %project, script, "{line}"),
            Level::Warn => tracing::warn!(%tenant, %project, script, "{line}"),
            Level::Error => tracing::error!(%tenant, %project, script, "{line}"),
        }
    }
}

/// A script cannot begin a line of its own in the log, nor steer a terminal.
fn escaped(c: char) -> Vec<char> {
    if footbridge_shared::text::is_hidden(c) || c == '\n' { c.escape_unicode().collect() } else { vec![c] }
}

/// A tool's value: what it says in structure, else its text as JSON, else its text.
fn value_of(output: ToolOutput) -> Raw {
    if let Some(structured) = output.structured {
        return structured;
    }
    let text = output.joined_text();
    match serde_json::from_str::<Raw>(&text) {
        Ok(value) => value,
        Err(_) => to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}

/// A tool that says it failed.
fn told(output: &ToolOutput) -> HostError {
    HostError {
        code: output.code.unwrap_or(ErrorCode::ToolFailed),
        message: output.joined_text().chars().take(MAX_MESSAGE_CHARS).collect(),
        hint: output.hint.clone(),
        outcome: Outcome::Completed,
    }
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        // The cause stays out: it is for the log alone, and whoever found it has logged it.
        Self { code: failure.code, message: failure.message, hint: failure.hint, outcome: failure.outcome }
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Raw, HostError> {
    to_raw_value(value).map_err(|error| Failure::not_run(ErrorCode::Internal, error.to_string()).into())
}
