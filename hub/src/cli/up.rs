//! `footbridge up`

use std::path::{Path, PathBuf};

use clap::Args;
use footbridge_shared::id::{ProjectName, TenantName};

use super::client::Client;
use super::error::CliError;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::out::remark;
use super::session::{Session, current_folder};
use super::{logging, running};
use crate::app::Hub;
use crate::config::connection::Connection;
use crate::config::state::{HubFile, HubFolder, LockError, StateFolder};
use crate::config::{Flags, Key, Loaded, McpCommands, Sources, load};
use crate::domain::scope::Scope;

mod foot;
mod report;
mod tokens;

use foot::{Foot, Registered};

/// The tenant that `up` serves.
const TENANT: &str = "local";
/// Its project.
const PROJECT: &str = "main";
/// The foot's own state, within the folder of its hub.
const FOOT_STATE: &str = "foot";
/// What is logged where nobody says: a person looks at the terminal.
const LOG: &str = "warn";

/// What `--help` says.
pub(super) const LONG: &str = "\
Start a hub for this folder, and a foot that offers the folder's files to it.

The hub serves the tenant `local` and its project `main`. Its data, and a token that may do everything, lie in your state \
folder and are there again at the next start. The other commands find the hub by the folder they run in, or by a folder \
above it. Ctrl-C ends both; running calls may end first, and a second Ctrl-C does not wait for them.";

#[derive(Debug, Args)]
pub(super) struct UpArgs {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7800]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The folder of data and tokens [default: in your state folder, by the current folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A folder whose files are documents: DIR/<tenant>/<project>/<path>
    #[arg(long, value_name = "DIR")]
    documents: Option<PathBuf>,
    /// Do not offer this folder's files
    #[arg(long, conflicts_with_all = ["allow_write", "allow_exec", "no_kernel_sandbox"])]
    no_foot: bool,
    /// Let callers write and delete this folder's files
    #[arg(long)]
    allow_write: bool,
    /// Let callers run any command without asking. This equals handing over your account, within the sandbox
    #[arg(long)]
    allow_exec: bool,
    /// Run commands without the kernel's sandbox: they can then do whatever you can
    #[arg(long)]
    no_kernel_sandbox: bool,
}

impl UpArgs {
    fn allowed(&self) -> Allowed {
        Allowed { write: self.allow_write, exec: self.allow_exec, kernel_sandbox: !self.no_kernel_sandbox }
    }
}

/// What the foot lets callers do, besides reading. Its own settings file may allow and deny more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowed {
    write: bool,
    exec: bool,
    kernel_sandbox: bool,
}

pub(super) async fn run(args: UpArgs, session: &mut Session) -> Result<Exit, CliError> {
    let folder = current_folder()?;
    let state = StateFolder::find(&session.environment)?;
    let place = state.hub_folder(&folder);
    // Held until the end: it says to the other commands that the hub runs.
    let _lock = place.lock().map_err(|error| not_ours(&error))?;
    let (with_foot, allowed) = (!args.no_foot, args.allowed());
    let loaded = settings(args, session, &place)?;
    if with_foot {
        refuse_served_data(&loaded.config.data, &folder, &state)?;
    }
    logging::start(&loaded.config.log)?;
    loaded.warnings.iter().for_each(|warning| remark(&format!("warning: {warning}")));
    let mut interrupts = Interrupts::listen()?;
    let data = loaded.config.data.clone();
    let hub = running::start(loaded.config).await?;
    // Whatever goes wrong from here on, the hub is stopped in order.
    let foot = with_foot.then_some(allowed);
    let served = serve(&hub, &data, folder, &place, foot, session, &mut interrupts).await;
    place.remove_hub();
    let foot = match served {
        Ok(foot) => {
            running::stop(&hub, &mut interrupts).await;
            foot
        }
        Err(error) => {
            hub.stop(std::time::Duration::ZERO).await;
            return Err(error);
        }
    };
    if let Some(foot) = foot {
        foot.stop().await;
    }
    Ok(Exit::Done)
}

/// Makes the hub known, starts the foot, tells what is there, and waits for Ctrl-C. The foot is left to its end, so that
/// calls which run on it may end too.
async fn serve(
    hub: &Hub,
    data: &Path,
    folder: PathBuf,
    place: &HubFolder,
    allowed: Option<Allowed>,
    session: &mut Session,
    interrupts: &mut Interrupts,
) -> Result<Option<Foot>, CliError> {
    let tokens = tokens::ready(hub, &scope()?, &session.user(), data, allowed.is_some()).await?;
    let known = HubFile {
        url: running::url(hub.address()),
        tenant: TENANT.to_owned(),
        project: PROJECT.to_owned(),
        token_file: tokens.admin_file,
        subject: session.user(),
        pid: std::process::id(),
        folder,
    };
    place.write_hub(&known).map_err(|source| CliError::File { path: place.path().to_owned(), source })?;
    let client = Client::new(
        Connection {
            url: Some(known.url.clone()),
            token: Some(tokens.admin),
            tenant: Some(known.tenant.clone()),
            project: Some(known.project.clone()),
            hub: Some(known.clone()),
        },
        true,
    )?;
    let mut foot = None;
    if let Some(allowed) = allowed {
        let state = place.path().join(FOOT_STATE);
        let started = foot.insert(Foot::start(&known, &tokens.foot_file, &state, allowed)?);
        let registered = tokio::select! {
            registered = started.registered(&client) => registered,
            () = interrupts.next() => return Ok(foot),
        };
        // To start it again would help nobody.
        if let Registered::Ended(status) = &registered
            && status.code() == Some(foot::UNUSABLE)
        {
            return Err(CliError::Hub {
                message: "the foot cannot use its settings; what is wrong stands above".to_owned(),
                hint: Some("mend foot.yaml, or leave the foot out with --no-foot".to_owned()),
            });
        }
        report::tell(&known, data, Some((&registered, allowed)), &mut session.out)?;
    } else {
        report::tell(&known, data, None, &mut session.out)?;
    }
    match &mut foot {
        Some(foot) => tokio::select! {
            () = foot.keep_running() => {}
            () = interrupts.next() => {}
        },
        None => interrupts.next().await,
    }
    Ok(foot)
}

fn scope() -> Result<Scope, CliError> {
    let wrong = |error: footbridge_shared::id::NameError| CliError::usage(error.to_string());
    Ok(Scope::new(TenantName::parse(TENANT).map_err(wrong)?, ProjectName::parse(PROJECT).map_err(wrong)?))
}

fn settings(args: UpArgs, session: &Session, place: &HubFolder) -> Result<Loaded, CliError> {
    let flags =
        Flags::default().with(Key::Listen, args.listen).with(Key::Data, args.data).with(Key::Documents, args.documents);
    let data = place.data();
    let sources = Sources { file: None, environment: &session.environment, flags: &flags, data: Some(&data), log: LOG };
    let mut loaded = load(&sources)?;
    // Whoever may write documents here is whoever started this, and can start programs anyway.
    loaded.config.mcp.commands.get_or_insert(McpCommands::Any);
    Ok(loaded)
}

fn not_ours(error: &LockError) -> CliError {
    let hint = match error {
        LockError::Held { .. } => Some("use it from another terminal in this folder, or stop it first".to_owned()),
        LockError::Io(_) => None,
    };
    CliError::Hub { message: error.to_string(), hint }
}

/// The foot would serve the hub's own token to whoever may call it. The state folder is one that no foot serves.
fn refuse_served_data(data: &Path, folder: &Path, state: &StateFolder) -> Result<(), CliError> {
    let real = real(data);
    if real.starts_with(folder) && !real.starts_with(state.path()) {
        return Err(CliError::usage_hint(
            format!("the data folder {} lies in the folder that is to be served", real.display()),
            "choose a --data elsewhere, or --no-foot",
        ));
    }
    Ok(())
}

/// Where a path leads that need not exist yet.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, above)));
    match existing {
        Some((real, above)) => path.strip_prefix(above).map_or_else(|_| path.clone(), |rest| real.join(rest)),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    #[test]
    fn the_hubs_own_data_is_never_served() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("outside")).unwrap();
        let served = folder.join("served");
        std::fs::create_dir(&served).unwrap();
        std::os::unix::fs::symlink(&served, folder.join("outside/link")).unwrap();
        let state = StateFolder::find(&Environment::of([("XDG_STATE_HOME", served.join("state"))])).unwrap();
        let refused = |data: &str| refuse_served_data(&folder.join(data), &served, &state).is_err();
        assert!(refused("served/data"));
        assert!(refused("served/not/yet/there"));
        assert!(refused("outside/link/data"), "a link leads there");
        assert!(!refused("outside/data"));
        assert!(!refused("served2/data"));
        assert!(!refused("served/state/footbridge/hubs/x/data"), "the foot's floor keeps it");
    }
}
