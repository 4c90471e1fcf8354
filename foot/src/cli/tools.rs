//! `foot tools`

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};

use super::{BROKEN, SettingsArgs, complain, say};
use crate::config::Environment;
use crate::offer;
use crate::permissions::{Desk, Permissions};
use crate::policy::Floor;
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

/// Lists the tools; returns the exit code. They are the same for every root, so none has to be there.
pub(super) fn tools(args: ToolsArgs, environment: &Environment, here: &Path) -> u8 {
    let ToolsArgs { settings, json } = args;
    let runner = if settings.echo { Runner::Echo } else { Runner::Real };
    let judge = settings
        .served(environment, here)
        .and_then(|served| Ok(offer::judge(&["/".into()], Floor::default(), &served.permitted)?));
    let permissions = match judge {
        Ok(judge) => Permissions::with(judge, Arc::new(Desk::closed())),
        Err(error) => {
            complain(&error);
            return error.code();
        }
    };
    let entries = ToolSet::new(runner.tools(&permissions), &permissions).0.entries();
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
