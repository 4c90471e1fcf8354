//! `footbridge serve`

use std::path::PathBuf;

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::out::{Format, remark};
use super::session::Session;
use super::table::{cell, optional, table};
use super::{logging, running};
use crate::config::state::StateFolder;
use crate::config::{Flags, Key, Loaded, ShownSetting, Sources, load};

/// What is logged where nobody says.
const LOG: &str = "info";

/// What `--help` says.
pub(super) const LONG: &str = "\
Start a hub as a service.

Settings come from defaults, then the file, then the environment (FOOTBRIDGE_LISTEN, FOOTBRIDGE_DATA, …), then flags; \
the last one that says something wins. --print-config shows what came out and who said it.

Before the first start, `footbridge token create --data DIR` makes the first token. Ctrl-C lets running calls end; a \
second one does not wait.";

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// A file with settings [env: FOOTBRIDGE_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7800]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The folder of the data [default: in your state folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A folder whose files are documents: DIR/<tenant>/<project>/<path>
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// Scripts that run at once
    #[arg(long, value_name = "N")]
    script_workers: Option<String>,
    /// Of these, for one tenant
    #[arg(long, value_name = "N")]
    script_per_tenant: Option<String>,
    /// Scripts that may wait
    #[arg(long, value_name = "N")]
    script_queue: Option<String>,
    /// Programs that documents may have started as MCP servers: names and absolute paths, with commas between them [default: none]
    #[arg(long, value_name = "PROGRAMS")]
    mcp_commands: Option<String>,
    /// What to log: a level, or levels by target [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// Show the settings and where each comes from, and start nothing
    #[arg(long)]
    print_config: bool,
}

pub(super) async fn run(args: ServeArgs, session: &mut Session) -> Result<Exit, CliError> {
    let print = args.print_config;
    let loaded = settings(args, session)?;
    if print {
        session.out.show_table(&loaded.settings, "", |settings| settings_table(settings))?;
        return Ok(Exit::Done);
    }
    logging::start(&loaded.config.log)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    for ShownSetting { key, value, origin, .. } in loaded.settings.iter().filter(|setting| !setting.is_default) {
        tracing::info!(key, value = value.as_deref().unwrap_or_default(), origin, "setting");
    }
    let mut interrupts = Interrupts::listen()?;
    let hub = running::start(loaded.config).await?;
    if session.out.format() == Format::Text {
        remark(&format!("listening on {}", running::url(hub.address())));
    }
    if !hub.address().ip().is_loopback() {
        tracing::warn!(
            address = %hub.address(),
            "this hub speaks plain HTTP beyond loopback: put a reverse proxy with TLS in front of it"
        );
    }
    tracing::warn!(
        "targets of MCP servers are not address-checked yet: whoever may write documents here can make the hub connect to \
         internal addresses"
    );
    if hub.tokens().is_empty() {
        tracing::warn!("there is no token yet: stop the hub and run `footbridge token create --data DIR`");
    }
    interrupts.next().await;
    running::stop(&hub, &mut interrupts).await;
    Ok(Exit::Done)
}

fn settings(args: ServeArgs, session: &Session) -> Result<Loaded, CliError> {
    let flags = Flags::default()
        .with(Key::Listen, args.listen)
        .with(Key::Data, args.data)
        .with(Key::Documents, args.documents)
        .with(Key::ScriptWorkers, args.script_workers)
        .with(Key::ScriptPerTenant, args.script_per_tenant)
        .with(Key::ScriptQueue, args.script_queue)
        .with(Key::McpCommands, args.mcp_commands)
        .with(Key::Log, args.log);
    // A service may have no home; then somebody says where the data is, or is told to.
    let data = StateFolder::find(&session.environment).ok().map(|state| state.data());
    Ok(load(&Sources {
        file: args.config.as_deref(),
        environment: &session.environment,
        flags: &flags,
        data: data.as_deref(),
        log: LOG,
    })?)
}

fn settings_table(settings: &[ShownSetting]) -> comfy_table::Table {
    let mut table = table(["setting", "value", "from"]);
    for setting in settings {
        table.add_row([cell(setting.key), optional(setting.value.as_ref()), cell(&setting.origin)]);
    }
    table
}
