//! The command line: a file a command. Commands speak to a hub over HTTP, as any other client; `up` and `serve` start
//! one in this process.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::Environment;

pub mod arguments;
pub mod client;
pub mod error;
pub mod exit;
pub mod out;
pub mod session;

mod call;
mod calls;
mod completions;
mod docs;
mod env;
mod feet;
mod input;
mod interrupt;
mod logging;
mod mcp_stdio;
mod packs;
mod running;
#[cfg(test)]
mod scripted_hub;
mod serve;
mod table;
mod tenants;
mod token;
mod tools;
mod up;

use error::CliError;
use exit::Exit;
use session::{Globals, Session};

/// The first word that makes this binary a foot; the rest are the foot's own arguments.
pub const FOOT_COMMAND: &str = "__foot";

/// Joins the tools of an LLM system into one surface.
///
/// `footbridge up` starts a hub and shares this folder with it; the other commands speak to that hub, or to the one that
/// --url or the environment names.
#[derive(Debug, Parser)]
#[command(name = "footbridge", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a hub for this folder, and a foot that offers the folder's files to it
    #[command(long_about = up::LONG)]
    Up(up::UpArgs),
    /// Start a hub as a service
    #[command(long_about = serve::LONG)]
    Serve(serve::ServeArgs),
    /// Print the variables by which other programs reach this folder's hub
    #[command(long_about = env::LONG)]
    Env(env::EnvArgs),
    /// Call a tool
    #[command(long_about = call::LONG, after_help = call::EXAMPLES)]
    Call(call::CallArgs),
    /// List, describe and configure tools
    Tools(tools::ToolsArgs),
    /// Show how packs are: whether their servers are there, what they offer, what is wrong
    Packs(packs::PacksArgs),
    /// Read and write documents
    Docs(docs::DocsArgs),
    /// List feet, and release their names
    Feet(feet::FeetArgs),
    /// List calls, look one up, cancel one
    Calls(calls::CallsArgs),
    /// Make, list and revoke tokens
    Token(token::TokenArgs),
    /// List, set up and delete tenants
    Tenants(tenants::TenantsArgs),
    /// Be an MCP server on standard input and output, with the hub's tools
    #[command(long_about = mcp_stdio::LONG)]
    McpStdio(mcp_stdio::McpStdioArgs),
    /// Print the completions of a shell
    Completions(completions::CompletionsArgs),
}

/// Runs a command line, the program's name first, and tells how it ended.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no failure; a reader that went away is none either.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { Exit::Done } else { Exit::Usage }.into();
        }
    };
    let mut session = Session::new(cli.globals, Environment::of_process());
    // The reqwest and WebSocket clients of this process look for it; a second install finds the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ended = runtime(&cli.command).map_err(CliError::from).and_then(|runtime| {
        let ended = runtime.block_on(run(cli.command, &mut session));
        // A read from a terminal cannot be ended; nothing else is left that is worth waiting for.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            error.report(session.out.format());
            error.exit().into()
        }
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

/// The whole grammar.
fn command() -> clap::Command {
    Cli::command().after_long_help(exit::help())
}

/// A hub needs every core, a client one thread.
fn runtime(command: &Command) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match command {
        Command::Up(_) | Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

async fn run(command: Command, session: &mut Session) -> Result<Exit, CliError> {
    match command {
        Command::Up(args) => up::run(args, session).await,
        Command::Serve(args) => serve::run(args, session).await,
        Command::Env(args) => env::run(args, session),
        Command::Call(args) => call::run(args, session).await,
        Command::Tools(args) => tools::run(args, session).await,
        Command::Packs(args) => packs::run(args, session).await,
        Command::Docs(args) => docs::run(args, session).await,
        Command::Feet(args) => feet::run(args, session).await,
        Command::Calls(args) => calls::run(args, session).await,
        Command::Token(args) => token::run(args, session).await,
        Command::Tenants(args) => tenants::run(args, session).await,
        Command::McpStdio(args) => mcp_stdio::run(args, session).await,
        Command::Completions(args) => completions::run(args, session),
    }
}

#[cfg(test)]
mod tests;
