//! `footbridge completions`

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use super::session::Session;

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(args: CompletionsArgs, session: &mut Session) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "footbridge", &mut script);
    session.out.exactly(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
