//! The command line of a foot. The `footbridge` binary has the same one, behind a word of its own.

mod audit;
mod check;
mod own;
mod permissions;
mod run;
mod tools;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::config::{self, Environment, Resolved, Served, Settings};
use crate::error::FootError;
use crate::exec::KernelSandbox;
use crate::launcher;
use crate::permissions::Mode;
use crate::runner::Runner;

/// Exit code of a wrong command line or configuration.
const USAGE: u8 = 2;
/// Exit code of everything else that goes wrong on this side.
const BROKEN: u8 = 1;
/// How long threads that still wait for something may keep the process from ending.
const THREADS_TIMEOUT: Duration = Duration::from_millis(200);

/// Each paragraph is one line: it is broken where the terminal ends.
const EXIT_CODES: &str = "\
Settings come from foot.yaml in your configuration folder, then from the environment (FOOTBRIDGE_URL, FOOTBRIDGE_TENANT, \
FOOTBRIDGE_PROJECT, FOOTBRIDGE_TOKEN), then from the command line; the later one wins.

Exit codes: 0 stopped, or all is well; 1 `check` found something amiss, or something broke on this side; 2 wrong command \
line or configuration; 3 the hub does not accept the token; 4 the hub refuses this foot; 5 its name belongs to another \
foot; 6 a newer process of the same foot took over; 7 no common protocol version.";

/// Offers this machine's tools to a Footbridge hub.
#[derive(Debug, Parser)]
#[command(name = "foot", version, after_help = EXIT_CODES, max_term_width = 100)]
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

/// What a foot can be told on the command line.
#[derive(Debug, Clone, Args)]
struct SettingsArgs {
    /// The hub, for instance https://hub.example.org
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// A file with the token, readable by you alone.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The tenant to serve [default: local]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// The project to serve.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// A folder to serve; can be repeated. Relative paths in calls start at the first [default: the current folder]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// The name of this foot [default: after the first root]
    #[arg(long)]
    name: Option<String>,
    /// For whom it works: `owner`, `project`, or subjects with commas between them [default: owner]
    #[arg(long, value_name = "WHOM")]
    share: Option<String>,
    /// Where the key of this foot is kept [default: in your state folder]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Certificates to trust besides the public authorities, as PEM.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Calls to run at once [default: 64]
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// A path that is never served, with everything below it; can be repeated.
    #[arg(long = "deny", value_name = "PATH")]
    deny: Vec<PathBuf>,
    #[command(flatten)]
    permitted: PermittedArgs,
    /// Settings file [default: footbridge/foot.yaml in your configuration folder]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Offer tools that only echo, for tests and measurements.
    #[arg(long, hide = true)]
    echo: bool,
    /// The same, and one that appends lines to this file.
    #[arg(long, hide = true, value_name = "FILE")]
    echo_append: Option<PathBuf>,
}

/// What a foot can be told on the command line of what callers may do.
#[derive(Debug, Clone, Args)]
struct PermittedArgs {
    /// What becomes of calls that write or delete files, where no rule speaks of them: `deny` (the tools are not offered),
    /// `ask`, or `allow` [default: deny]
    #[arg(long, value_name = "MODE")]
    write: Option<Mode>,
    /// The same for calls that run commands [default: deny]
    #[arg(long, value_name = "MODE")]
    exec: Option<Mode>,
    /// The same as --write allow: callers write and delete files in the roots without asking.
    #[arg(long, conflicts_with = "write")]
    allow_write: bool,
    /// The same as --exec allow: callers run any command without asking. This equals handing over your account, within
    /// the sandbox.
    #[arg(long, conflicts_with = "exec")]
    allow_exec: bool,
    /// Run commands without the kernel's sandbox: they can then do whatever you can.
    #[arg(long)]
    no_kernel_sandbox: bool,
}

impl PermittedArgs {
    fn write(&self) -> Option<Mode> {
        self.write.or(self.allow_write.then_some(Mode::Allow))
    }

    fn exec(&self) -> Option<Mode> {
        self.exec.or(self.allow_exec.then_some(Mode::Allow))
    }
}

impl SettingsArgs {
    /// The configuration, with all layers.
    fn resolve(mut self, environment: &Environment, here: &Path) -> Result<Resolved, FootError> {
        let runner = match self.echo_append.take() {
            Some(file) => Runner::EchoAppend(here.join(file)),
            None if self.echo => Runner::Echo,
            None => Runner::Real,
        };
        let (flags, file) = self.layer();
        let mut resolved = config::resolve(flags, file.as_deref(), environment, here)?;
        resolved.config.runner = runner;
        Ok(resolved)
    }

    /// What of it says which files are served.
    fn served(self, environment: &Environment, here: &Path) -> Result<Served, FootError> {
        let (flags, file) = self.layer();
        Ok(config::served(flags, file.as_deref(), environment, here)?)
    }

    /// The layer of the command line, and the settings file that it names.
    fn layer(self) -> (Settings, Option<PathBuf>) {
        let flags = Settings {
            hub: self.hub,
            token_file: self.token_file,
            tenant: self.tenant,
            project: self.project,
            name: self.name,
            roots: (!self.roots.is_empty()).then_some(self.roots),
            share: self.share,
            state: self.state,
            ca: self.ca,
            max_concurrent: self.max_concurrent,
            deny: (!self.deny.is_empty()).then_some(self.deny),
            write: self.permitted.write(),
            exec: self.permitted.exec(),
            kernel_sandbox: self.permitted.no_kernel_sandbox.then_some(KernelSandbox::Off),
            ..Settings::default()
        };
        (flags, self.config)
    }
}

/// Runs the command line of a foot. `arguments` are those behind the name of the program.
pub fn cli_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if launcher::is_meant(&arguments) {
        return launcher::main();
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
