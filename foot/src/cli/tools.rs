//! `foot tools`

use std::sync::Arc;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};

use super::{BROKEN, complain, say};
use crate::permissions::{Defaults, Permissions};
use crate::policy::{Floor, Policy};
use crate::runner::Runner;
use crate::tools::ToolSet;

/// Options of `foot tools`.
#[derive(Debug, Args)]
pub(super) struct ToolsArgs {
    /// As JSON, with the schemas.
    #[arg(long)]
    json: bool,
    /// The tools that only echo.
    #[arg(long, hide = true)]
    echo: bool,
}

/// Lists the tools; returns the exit code. They are the same for every root, so none is asked for.
pub(super) fn tools(args: &ToolsArgs) -> u8 {
    let runner = if args.echo { Runner::Echo } else { Runner::Real };
    let permissions = match Policy::new(&["/".into()], Floor::default()) {
        Ok(policy) => Permissions::new(Arc::new(policy), Defaults::default()),
        Err(error) => {
            complain(&error);
            return BROKEN;
        }
    };
    let entries = ToolSet::new(runner.tools(&permissions), &permissions).0.entries();
    if args.json {
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
