//! `foot tools`

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use footbridge_launcher::Launcher;

use super::{BROKEN, SettingsArgs, complain, say};
use crate::clock::SystemClock;
use crate::config::Environment;
use crate::exec::Jobs;
use crate::offer;
use crate::permissions::{Desk, Permissions};
use crate::runner::Runner;
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
    let offered = settings.served(environment, here).and_then(|served| {
        let judge = offer::judge(&served.roots, served.floor(), &served.permitted)?;
        let permissions = Permissions::with(judge, Arc::new(Desk::closed()));
        let jobs = Jobs::new(Launcher::of_this_program(), Arc::new(SystemClock), served.exec.max_jobs);
        Ok((offer::tools(&runner, &served.exec, &jobs, &permissions), permissions))
    });
    let entries = match offered {
        Ok((tools, permissions)) => ToolSet::new(tools, &permissions).0.entries(),
        Err(error) => {
            complain(&error);
            return error.code();
        }
    };
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
