//! `footbridge tenants`

use clap::{Args, Subcommand};
use comfy_table::Table;

use super::client::At;
use super::error::CliError;
use super::exit::Exit;
use super::out::{Format, remark};
use super::session::{JsonFlag, Session};
use super::table::{cell, table};
use crate::api::tenants::{PutTenant, TenantList, TenantView};

#[derive(Debug, Args)]
pub(super) struct TenantsArgs {
    #[command(flatten)]
    json: JsonFlag,
    #[command(subcommand)]
    command: TenantsCommand,
}

#[derive(Debug, Subcommand)]
enum TenantsCommand {
    /// List tenants and their projects
    List,
    /// Make a tenant, or replace its list of projects
    Put {
        /// The tenant
        name: String,
        /// A project; stands once for each
        #[arg(long = "project", value_name = "PROJECT", required = true, value_delimiter = ',')]
        projects: Vec<String>,
    },
    /// Delete a tenant
    Delete {
        /// The tenant
        name: String,
    },
}

pub(super) async fn run(args: TenantsArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_json(args.json);
    let client = session.client()?;
    match args.command {
        TenantsCommand::List => {
            let list: TenantList = client.get(At::Hub(&["tenants"]))?.json().await?;
            session.out.show_table(&list, "no tenants", |list| tenants_table(&list.tenants))?;
        }
        TenantsCommand::Put { name, projects } => {
            let request = client.put(At::Hub(&["tenants", &name]))?.json_body(&PutTenant { projects })?;
            let view: TenantView = request.json().await?;
            session.out.show_table(&view, "", |view| tenants_table(std::slice::from_ref(view)))?;
        }
        TenantsCommand::Delete { name } => {
            client.delete(At::Hub(&["tenants", &name]))?.done().await?;
            if session.out.format() == Format::Text {
                remark(&format!("deleted {name}"));
            }
        }
    }
    Ok(Exit::Done)
}

fn tenants_table(tenants: &[TenantView]) -> Table {
    let mut table = table(["tenant", "projects"]);
    for tenant in tenants {
        table.add_row([cell(&tenant.name), cell(tenant.projects.join(", "))]);
    }
    table
}
