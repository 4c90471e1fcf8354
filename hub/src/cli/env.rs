//! `footbridge env`

use clap::{Args, ValueEnum};
use serde_json::json;

use super::error::CliError;
use super::exit::Exit;
use super::out::Format;
use super::session::{JsonFlag, Session, current_folder};
use crate::config::state::{StateFolder, read_token};

/// What `--help` says.
pub(super) const LONG: &str = "\
Print the variables by which other programs reach this folder's hub.

They are FOOTBRIDGE_URL, FOOTBRIDGE_TOKEN, FOOTBRIDGE_TENANT and FOOTBRIDGE_PROJECT. For a shell: eval \"$(footbridge env)\"";

#[derive(Debug, Args)]
pub(super) struct EnvArgs {
    /// How to write them
    #[arg(long, value_enum, default_value_t)]
    shell: Shell,
    #[command(flatten)]
    json: JsonFlag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Shell {
    /// export NAME='value'
    #[default]
    Sh,
    /// set -gx NAME 'value'
    Fish,
    /// A JSON object
    Json,
}

pub(super) fn run(args: EnvArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_json(args.json);
    let state = StateFolder::find(&session.environment)?;
    let folder = current_folder()?;
    let Some(hub) = state.nearest(&folder) else {
        return Err(CliError::usage_hint(
            format!("no hub runs in {} or above it", folder.display()),
            "start one with `footbridge up`",
        ));
    };
    let token = read_token(&hub.token_file)?;
    let variables = [
        ("FOOTBRIDGE_URL", hub.url.as_str()),
        ("FOOTBRIDGE_TOKEN", token.reveal()),
        ("FOOTBRIDGE_TENANT", hub.tenant.as_str()),
        ("FOOTBRIDGE_PROJECT", hub.project.as_str()),
    ];
    match (args.shell, session.out.format()) {
        (Shell::Json, _) | (_, Format::Json) => {
            let object: serde_json::Map<_, _> =
                variables.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            session.out.json(&object)?;
        }
        (shell, Format::Text) => {
            let lines: String = variables.into_iter().map(|(name, value)| line(shell, name, value)).collect();
            session.out.exactly(&lines)?;
        }
    }
    Ok(Exit::Done)
}

fn line(shell: Shell, name: &str, value: &str) -> String {
    if shell == Shell::Fish {
        format!("set -gx {name} '{}'\n", value.replace('\\', r"\\").replace('\'', r"\'"))
    } else {
        format!("export {name}='{}'\n", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_quotes() {
        assert_eq!(line(Shell::Sh, "A", "x'; rm y"), "export A='x'\\''; rm y'\n");
        assert_eq!(line(Shell::Fish, "A", "x\\'y"), "set -gx A 'x\\\\\\'y'\n");
    }
}
