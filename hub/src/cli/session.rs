//! What every command gets: where to write, and how to reach the hub it was asked to speak to.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use footbridge_shared::id::{ProjectName, Subject};

use super::client::Client;
use super::error::CliError;
use super::out::{Format, Out};
use crate::config::Environment;
use crate::config::connection::{self, Connection, ConnectionFlags};
use crate::config::state::StateFolder;

/// The subject of who has no usable login name.
const NOBODY: &str = "me";
/// Heading of the flags that say which hub is meant.
const CONNECTION: &str = "Connection";

/// Flags of every command.
#[derive(Debug, Args)]
pub struct Globals {
    /// The hub's address [env: FOOTBRIDGE_URL] [default: the hub that runs in this folder or above]
    #[arg(long, global = true, value_name = "URL", help_heading = CONNECTION, display_order = 101, value_parser = NonEmptyStringValueParser::new())]
    url: Option<String>,
    /// A file that holds the token; a token itself is no flag, since others can see those [env: FOOTBRIDGE_TOKEN holds a token]
    #[arg(long, global = true, value_name = "FILE", help_heading = CONNECTION, display_order = 102)]
    token_file: Option<PathBuf>,
    /// Send the token over plain http to another machine
    #[arg(long, global = true, help_heading = CONNECTION, display_order = 105)]
    allow_plain_http: bool,
    /// Write text for people, or JSON for programs
    #[arg(long, short, global = true, value_name = "FORMAT", value_enum, default_value_t, display_order = 91)]
    output: Format,
}

/// Flags of commands that work in one tenant and project.
#[derive(Debug, Clone, Default, Args)]
pub struct ScopeArgs {
    /// The tenant [env: FOOTBRIDGE_TENANT] [default: that of the folder's hub]
    #[arg(long, global = true, value_name = "TENANT", help_heading = CONNECTION, display_order = 103)]
    tenant: Option<String>,
    /// The project [env: FOOTBRIDGE_PROJECT] [default: that of the folder's hub]
    #[arg(long, global = true, value_name = "PROJECT", help_heading = CONNECTION, display_order = 104)]
    project: Option<String>,
}

/// The flag of commands whose results programs read.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct JsonFlag {
    /// The same as `--output json`
    #[arg(long, global = true, display_order = 90)]
    json: bool,
}

/// What every command gets.
#[derive(Debug)]
pub struct Session {
    /// Where results go.
    pub out: Out,
    /// The environment.
    pub environment: Environment,
    connection: ConnectionFlags,
    plain_http: bool,
}

impl Session {
    /// What the command line and the environment make of it.
    pub fn new(globals: Globals, environment: Environment) -> Self {
        let connection =
            ConnectionFlags { url: globals.url, token_file: globals.token_file, tenant: None, project: None };
        Self { out: Out::stdout(globals.output), environment, connection, plain_http: globals.allow_plain_http }
    }

    /// Heeds `--json`.
    pub fn heed_json(&mut self, flag: JsonFlag) {
        if flag.json {
            self.out.set_json();
        }
    }

    /// Heeds `--tenant` and `--project`.
    pub fn heed_scope(&mut self, scope: ScopeArgs) {
        self.connection.tenant = scope.tenant;
        self.connection.project = scope.project;
    }

    /// Turns to what all projects of the tenant share.
    pub fn heed_tenant_layer(&mut self, wanted: bool) {
        if wanted {
            self.connection.project = Some(ProjectName::TENANT_LAYER.to_owned());
        }
    }

    /// The name of who runs this, as far as a subject can hold it; `me` where nothing is left of it.
    pub fn user(&self) -> String {
        subject_of(self.environment.user().unwrap_or_default())
    }

    /// Where the hub is and as whom to speak.
    ///
    /// # Errors
    /// A token file that cannot be read.
    pub fn connection(&self) -> Result<Connection, CliError> {
        // Without a home there is no hub of the folder, but there may be one in the environment.
        let state = StateFolder::find(&self.environment).ok();
        let folder = current_folder()?;
        Ok(connection::resolve(self.connection.clone(), &self.environment, state.as_ref(), &folder)?)
    }

    /// A client of that hub.
    ///
    /// # Errors
    /// Nobody says which hub, or with which token.
    pub fn client(&self) -> Result<Client, CliError> {
        Client::new(self.connection()?, self.plain_http)
    }
}

/// What remains of a login name as a subject.
fn subject_of(user: &str) -> String {
    let fits = |c: &char| Subject::parse(c.encode_utf8(&mut [0; 4])).is_ok();
    let name: String = user.chars().filter(fits).collect();
    Subject::parse(&name).map_or_else(|_| NOBODY.to_owned(), |subject| subject.to_string())
}

/// The current folder, canonical.
///
/// # Errors
/// It is gone.
pub fn current_folder() -> Result<PathBuf, CliError> {
    let folder = PathBuf::from(".");
    folder.canonicalize().map_err(|source| CliError::File { path: folder, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_name_becomes_a_subject_or_me() {
        assert_eq!(subject_of("ana.b"), "ana.b");
        assert_eq!(subject_of("DOMAIN\\ana b"), "DOMAINanab");
        assert_eq!(subject_of("\\ "), "me");
        assert_eq!(subject_of(""), "me");
        assert_eq!(subject_of(&"x".repeat(500)), "me");
    }
}
