//! `footbridge feet`

use clap::{Args, Subcommand};
use comfy_table::Table;

use super::client::At;
use super::error::CliError;
use super::exit::Exit;
use super::out::{Format, remark};
use super::session::{JsonFlag, ScopeArgs, Session};
use super::table::{cell, optional, table};
use crate::api::feet::{FootList, FootView};

#[derive(Debug, Args)]
pub(super) struct FeetArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    json: JsonFlag,
    #[command(subcommand)]
    command: Option<FeetCommand>,
}

#[derive(Debug, Subcommand)]
enum FeetCommand {
    /// List the feet you may see (the default)
    List,
    /// Give a foot's name back, so that another machine can take it; its connection ends
    Release {
        /// The foot, as its owner calls it
        name: String,
        /// Its owner, for an admin [default: you]
        #[arg(long, value_name = "SUBJECT")]
        owner: Option<String>,
    },
}

pub(super) async fn run(args: FeetArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    session.heed_json(args.json);
    let client = session.client()?;
    match args.command.unwrap_or(FeetCommand::List) {
        FeetCommand::List => {
            let list: FootList = client.get(At::Scope(&["feet"]))?.json().await?;
            session.out.show_table(&list, "no feet", |list| feet_table(&list.feet))?;
        }
        FeetCommand::Release { name, owner } => {
            client.delete(At::Scope(&["feet", &name]))?.query("owner", owner).done().await?;
            if session.out.format() == Format::Text {
                remark(&format!("released {name}"));
            }
        }
    }
    Ok(Exit::Done)
}

fn feet_table(feet: &[FootView]) -> Table {
    let mut table = table(["foot", "state", "owner", "shared with", "tools", "machine", "folder"]);
    for foot in feet {
        table.add_row([
            cell(&foot.name),
            cell(&foot.state),
            cell(if foot.own { format!("{} (you)", foot.owner) } else { foot.owner.clone() }),
            optional(foot.share.as_ref()),
            optional(foot.tools.as_ref().map(|tools| tools.len().to_string())),
            optional(foot.hostname.as_ref()),
            optional(foot.cwd.as_ref()),
        ]);
    }
    table
}
