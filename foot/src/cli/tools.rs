//! `foot tools`

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use footbridge_launcher::Launcher;
use footbridge_shared::id::EntryName;
use footbridge_shared::message::ToolEntry;

use super::{BROKEN, SettingsArgs, complain, say};
use crate::clock::SystemClock;
use crate::config::Environment;
use crate::error::FootError;
use crate::exec::Jobs;
use crate::offer;
use crate::permissions::{Desk, Permissions};
use crate::runner::Runner;
use crate::servers::{LeftOut, Servers};
use crate::tools::ToolSet;

/// Options of `foot tools`.
#[derive(Debug, Args)]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// As JSON, with the schemas.
    #[arg(long)]
    json: bool,
}

/// Lists the tools that a foot offers under its settings; returns the exit code.
pub(super) fn tools(args: ToolsArgs, environment: &Environment, here: &Path) -> u8 {
    let ToolsArgs { settings, json } = args;
    let runner = if settings.echo { Runner::Echo } else { Runner::Real };
    let Offered { entries, states, left_out } = match offered(settings, runner, environment, here) {
        Ok(offered) => offered,
        Err(error) => {
            complain(&error);
            return error.code();
        }
    };
    for LeftOut { name, why } in &left_out {
        complain(&format!("the MCP server `{name}` is left out: {why}"));
    }
    for (name, state) in &states {
        if let Err(why) = state {
            complain(&format!("the MCP server `{name}` is not there: {why}"));
        }
    }
    if json {
        return match serde_json::to_string_pretty(&entries) {
            Ok(json) => say(&format!("{json}\n")),
            Err(error) => {
                complain(&error);
                BROKEN
            }
        };
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["NAME", "LABELS", "DESCRIPTION"]);
    for entry in entries {
        let first = entry.description.split_inclusive(". ").next().unwrap_or_default();
        table.add_row([&entry.name, &entry.labels.join(", "), first.trim_end()]);
    }
    say(&format!("{table}\n"))
}

/// What there is to list.
struct Offered {
    entries: Vec<ToolEntry>,
    /// How each server is.
    states: Vec<(EntryName, Result<(), String>)>,
    /// Those that are not reached.
    left_out: Vec<LeftOut>,
}

/// The tools, those of local servers among them: these are started for it, and end when they have listed theirs.
fn offered(
    settings: SettingsArgs,
    runner: Runner,
    environment: &Environment,
    here: &Path,
) -> Result<Offered, FootError> {
    let served = settings.served(environment, here)?;
    let judge = offer::judge(&served.roots, served.floor(), &served.permitted)?;
    let permissions = Permissions::with(judge, Arc::new(Desk::closed()));
    let clock = Arc::new(SystemClock);
    let jobs = Jobs::new(Launcher::of_this_program(), clock.clone(), served.exec.max_jobs);
    let tools = ToolSet::new(offer::tools(&runner, &served.exec, &jobs, &permissions), &permissions).0;
    if served.servers.is_empty() {
        return Ok(Offered { entries: tools.entries(), states: Vec::new(), left_out: served.left_out });
    }
    let tools = Arc::new(tools);
    let offered = super::block_on(async {
        let servers = Servers::open(served.ca.as_deref(), (&tools, &permissions), clock)?;
        servers.apply(&served.servers, &offer::orders(&served.exec, &permissions), &permissions);
        let states = servers.settled().await;
        let entries = tools.entries();
        servers.end().await;
        Ok(Offered { entries, states, left_out: served.left_out })
    });
    offered.map_err(FootError::Runtime)?
}
