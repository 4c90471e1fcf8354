//! `footbridge calls`

use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::Table;

use super::call::ended;
use super::client::{At, Client};
use super::error::CliError;
use super::exit::Exit;
use super::out::Format;
use super::session::{JsonFlag, ScopeArgs, Session};
use super::table::{cell, elapsed, optional, table};
use crate::api::calls::{CallList, CallState, CallSummary, CallView};

/// Longest wait that a hub grants one request, in milliseconds.
const LONG_WAIT_MS: u64 = 60_000;

#[derive(Debug, Args)]
pub(super) struct CallsArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    json: JsonFlag,
    #[command(subcommand)]
    command: Option<CallsCommand>,
}

#[derive(Debug, Subcommand)]
enum CallsCommand {
    /// List calls that run, and those of the last minutes (the default)
    List,
    /// Show one call, and its result if it ended
    Get {
        /// The call
        id: String,
        /// Wait so long for its end
        #[arg(long, value_name = "MS")]
        wait_ms: Option<u64>,
        /// Wait for its end, however long that takes
        #[arg(long, conflicts_with = "wait_ms")]
        wait: bool,
    },
    /// Ask for the end of a call
    Cancel {
        /// The call
        id: String,
    },
}

pub(super) async fn run(args: CallsArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    session.heed_json(args.json);
    let client = session.client()?;
    match args.command.unwrap_or(CallsCommand::List) {
        CallsCommand::List => {
            let list: CallList = client.get(At::Scope(&["calls"]))?.json().await?;
            session.out.show_table(&list, "no calls", |list| calls_table(&list.calls))?;
        }
        CallsCommand::Get { id, wait_ms, wait } => {
            let mut view = get(&client, &id, wait_ms.or(wait.then_some(LONG_WAIT_MS))).await?;
            while wait && view.summary.state == CallState::Running {
                view = get(&client, &id, Some(LONG_WAIT_MS)).await?;
            }
            show(&view, session)?;
        }
        CallsCommand::Cancel { id } => {
            let view = client.cancel(&id).await?;
            show(&view, session)?;
        }
    }
    Ok(Exit::Done)
}

async fn get(client: &Client, id: &str, wait_ms: Option<u64>) -> Result<CallView<'static>, CliError> {
    let request = client.get(At::Scope(&["calls", id]))?.query("waitMs", wait_ms);
    request.waits(Duration::from_millis(wait_ms.unwrap_or(0))).json().await
}

/// One call: for people a line of the listing, and below it the result as the call itself would have shown it.
fn show(view: &CallView<'_>, session: &mut Session) -> Result<(), CliError> {
    if session.out.format() == Format::Json {
        return Ok(session.out.json(view)?);
    }
    session.out.show_table(view, "", |view| calls_table(std::slice::from_ref(&view.summary)))?;
    if let Some(reply) = &view.result {
        // Looking at a failure is no failure.
        ended(&view.summary.tool, reply, &mut session.out)?;
    }
    Ok(())
}

fn calls_table(calls: &[CallSummary]) -> Table {
    let mut table = table(["call", "tool", "state", "time", "started", "for", "process"]);
    for call in calls {
        table.add_row([
            cell(&call.call),
            cell(&call.tool),
            cell(state(call)),
            elapsed(call.elapsed_ms),
            call.started_at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
            cell(&call.subject),
            optional(call.process.as_ref()),
        ]);
    }
    table
}

fn state(call: &CallSummary) -> String {
    match (call.state, call.is_error, call.code) {
        (CallState::Running, ..) => "running".to_owned(),
        (CallState::Ended, Some(true), Some(code)) => code.to_string(),
        (CallState::Ended, Some(true), None) => "failed".to_owned(),
        (CallState::Ended, ..) => "done".to_owned(),
    }
}
