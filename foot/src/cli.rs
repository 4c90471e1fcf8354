//! The command line of a foot. The `footbridge` binary has the same one, behind a word of its own.

mod args;
mod audit;
mod check;
mod own;
mod permissions;
mod run;
mod tools;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::config::Environment;
use args::SettingsArgs;

/// Exit code of a wrong command line or configuration.
const USAGE: u8 = 2;
/// Exit code of everything else that goes wrong on this side.
const BROKEN: u8 = 1;
/// How long threads that still wait for something may keep the process from ending.
const THREADS_TIMEOUT: Duration = Duration::from_millis(200);

/// Each paragraph is one line: it is broken where the terminal ends.
const AFTER_HELP: &str = "\
Settings come from foot.yaml in your configuration folder, then from the environment (FOOTBRIDGE_URL, FOOTBRIDGE_TENANT, \
FOOTBRIDGE_PROJECT, FOOTBRIDGE_TOKEN), then from the command line; the later one wins.

Exit codes: 0 stopped, or all is well; 1 `check` found something amiss, or something broke on this side; 2 wrong command \
line or configuration; 3 the hub does not accept the token; 4 the hub refuses this foot; 5 its name belongs to another \
foot; 6 a newer process of the same foot took over; 7 no common protocol version.";

/// Offers this machine's tools to a Footbridge hub.
#[derive(Debug, Parser)]
#[command(name = "foot", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What to log, for instance `debug` or `footbridge_foot=debug`.
    #[arg(long, global = true, value_name = "FILTER", display_order = 900)]
    log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Connect to the hub and serve, until stopped.
    Run(run::RunArgs),
    /// List the tools that this foot offers.
    Tools(tools::ToolsArgs),
    /// Check the configuration, the token and the way to the hub, and say what `run` would do; or explain what one call would be
    /// answered.
    Check(check::CheckArgs),
    /// Show what was asked of this machine, and what was decided.
    Audit(audit::AuditArgs),
    /// Show, and forget, the answers that were given once and for all.
    Permissions(permissions::PermissionsArgs),
}

/// Runs the command line of a foot. `arguments` are those behind the name of the program.
pub fn cli_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if footbridge_launcher::is_meant(&arguments) {
        return footbridge_launcher::main();
    }
    let arguments = std::iter::once(OsString::from("foot")).chain(arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and go to standard output.
            let code = if error.use_stderr() { USAGE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let environment = Environment::of_process();
    // A foot that another program started speaks up when something is wrong: the rest is that program's to tell.
    let quiet = matches!(&cli.command, Command::Run(args) if args.has_parent());
    if let Err(error) = start_log(cli.log, if quiet { "warn" } else { "info" }, &environment) {
        complain(&error);
        return ExitCode::from(USAGE);
    }
    let here = match std::env::current_dir() {
        Ok(here) => here,
        Err(error) => {
            complain(&format!("the current folder cannot be used: {error}"));
            return ExitCode::from(USAGE);
        }
    };
    let code = match cli.command {
        Command::Run(args) => run::run(args, environment, &here),
        Command::Tools(args) => tools::tools(args, &environment, &here),
        Command::Check(args) => check::check(args, &environment, &here),
        Command::Audit(args) => audit::audit(&args, &environment, &here),
        Command::Permissions(args) => permissions::permissions(&args, &environment, &here),
    };
    ExitCode::from(code)
}

/// Logs to standard error: standard output is for answers.
fn start_log(filter: Option<String>, default: &str, environment: &Environment) -> Result<(), String> {
    let filter = filter.or(environment.text("FOOTBRIDGE_LOG").map_err(|error| error.to_string())?);
    let filter = tracing_subscriber::EnvFilter::try_new(filter.as_deref().unwrap_or(default))
        .map_err(|error| format!("the log filter cannot be read: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // It would be reported where it failed, on standard error, and that by a panic: losing the log must lose nothing else.
    let log = log.log_internal_errors(false);
    // Whoever runs a foot within a program of their own may log already.
    let _ = log.with_ansi(std::io::stderr().is_terminal()).try_init();
    Ok(())
}

/// One line for a person, on standard error.
fn complain(message: &dyn std::fmt::Display) {
    // Where that is closed, nobody reads it anyway.
    let _ = writeln!(std::io::stderr(), "foot: {message}");
}

/// Text for standard output; a reader that left (`| head`) is no failure.
fn say(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => BROKEN,
        _ => 0,
    }
}

/// Runs to the end on one thread for the socket, which is all that waits. Files are read on threads of their own, and a
/// second thread here would only cost a wake-up a call.
fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A thread that hangs in a file system, in a name look-up, or in a standard input that never ends, must not hold the
    // process.
    runtime.shutdown_timeout(THREADS_TIMEOUT);
    Ok(done)
}

#[cfg(test)]
mod tests;
