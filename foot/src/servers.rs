//! Local MCP servers: what the owner attaches to this foot, and the hub offers on.
//!
//! Each is reached in the background, its tools are a pack of the foot's, and the rest of MCP goes through as it comes. One
//! that fails costs itself. What stands between a caller and a server is decided here: who shares a connection, who is asked
//! what a server asks, and how clients with and without sessions come together with servers of the other kind.

mod attached;
mod board;
mod exchange;
mod follows;
mod listing;
mod opener;
mod pool;
mod requests;
mod router;
mod server;
mod settings;
mod tasks;
#[cfg(test)]
pub(crate) mod tests;
mod tool;
mod unreached;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use footbridge_launcher::Launcher;
use footbridge_shared::id::EntryName;
use tokio::sync::watch;

pub(crate) use board::Infos;
pub(crate) use settings::{LeftOut, ServerSettings, ServerText, Target, Transport};

use crate::clock::SharedClock;
use crate::error::FootError;
use crate::exec::Orders;
use crate::line::Line;
use crate::permissions::{Mode, Permissions};
use crate::tools::ToolSet;
use board::Board;
use opener::Opener;
use requests::Requests;
use server::{Server, State};
use tasks::Tasks;

/// How long it may take to reach an address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long servers may take to end with the foot.
const END_WITHIN: Duration = Duration::from_secs(4);

/// All local servers of a foot.
#[derive(Debug)]
pub(crate) struct Servers {
    board: Arc<Board>,
    launcher: Launcher,
    http: reqwest::Client,
    tasks: Tasks,
    running: Mutex<BTreeMap<EntryName, Running>>,
    requests: Arc<Requests>,
}

/// A server, and what its program was started under.
struct Running {
    server: Arc<Server>,
    fingerprint: String,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("name", &self.server.name).finish_non_exhaustive()
    }
}

impl Servers {
    /// None yet. What they offer goes into the set, what they say over the line.
    pub(crate) fn new(
        (tools, permissions): (Arc<ToolSet>, Arc<Permissions>),
        line: Line,
        (launcher, http): (Launcher, reqwest::Client),
        clock: SharedClock,
    ) -> Self {
        let (permissions, infos) = (Mutex::new(permissions), watch::Sender::default());
        let board = Arc::new(Board { tools, line, clock, permissions, infos, showing: Mutex::default() });
        let (tasks, running, requests) = Default::default();
        Self { board, launcher, http, tasks, running, requests }
    }

    /// None yet, for a foot that trusts these certificates besides the public authorities.
    ///
    /// # Errors
    /// [`FootError::Certificates`]: those that are to be trusted cannot be used.
    pub(crate) fn open(
        ca: Option<&Path>,
        (tools, permissions): (&Arc<ToolSet>, &Arc<Permissions>),
        clock: SharedClock,
    ) -> Result<Arc<Self>, FootError> {
        let offered = (tools.clone(), permissions.clone());
        let http = http_client(ca)?;
        Ok(Arc::new(Self::new(offered, Line::default(), (Launcher::of_this_program(), http), clock)))
    }

    /// The same, with another launcher.
    #[cfg(test)]
    pub(crate) fn launched_by(
        launcher: Launcher,
        (tools, permissions): (&Arc<ToolSet>, &Arc<Permissions>),
        clock: SharedClock,
    ) -> Arc<Self> {
        let offered = (tools.clone(), permissions.clone());
        Arc::new(Self::new(offered, Line::default(), (launcher, http_client(None).unwrap()), clock))
    }

    /// The way to the hub that they speak over.
    pub(crate) fn line(&self) -> &Line {
        &self.board.line
    }

    /// What they say of themselves.
    pub(crate) fn infos(&self) -> watch::Receiver<Infos> {
        self.board.infos.subscribe()
    }

    /// Puts settings into force: starts and stops what is new and gone, and leaves alone what stays as it is.
    pub(crate) fn apply(&self, wanted: &[ServerSettings], orders: &Arc<Orders>, permissions: &Arc<Permissions>) {
        *self.board.permissions.lock().unwrap_or_else(PoisonError::into_inner) = permissions.clone();
        let mut running = self.running();
        let wanted: BTreeMap<&EntryName, &ServerSettings> = wanted
            .iter()
            .filter(|settings| settings.permission != Mode::Deny || permissions.could_allow_some())
            .map(|settings| (&settings.name, settings))
            .collect();
        running.retain(|name, known| {
            let stays = wanted.contains_key(name);
            if !stays {
                known.server.stop();
                self.board.remove(name);
                tracing::info!(server = %name, "a local MCP server is taken away");
            }
            stays
        });
        for (name, settings) in wanted {
            let fingerprint = match &settings.target {
                Target::Program { .. } => orders.fingerprint(),
                Target::Http { .. } => String::new(),
            };
            if let Some(known) = running.get(name) {
                if known.fingerprint == fingerprint && known.server.settings().reaches_as(settings) {
                    known.server.tune(settings.clone());
                    continue;
                }
                known.server.stop();
            }
            let opener = Opener::new(self.launcher.clone(), orders.clone(), self.http.clone(), self.tasks.clone());
            if let Target::Program { confine, .. } = &settings.target
                && !(*confine && orders.confine())
            {
                tracing::info!(server = %name, "a local MCP server may do what your account may; `confine: true` keeps it to the roots");
            }
            let server = Server::new(settings.clone(), opener, self.board.clone());
            self.tasks.run(server.clone().attend());
            running.insert(name.clone(), Running { server, fingerprint });
        }
    }

    /// How each of them is, in words for the owner, once it is known: `Err` says why it cannot be reached.
    pub(crate) async fn settled(&self) -> Vec<(EntryName, Result<(), String>)> {
        let servers: Vec<Arc<Server>> = self.running().values().map(|running| running.server.clone()).collect();
        let mut settled = Vec::new();
        for server in servers {
            let mut state = server.state();
            let known = state.wait_for(|state| !matches!(state, State::Connecting)).await;
            let result = match known.as_deref() {
                Ok(State::Failed(why)) => Err(why.clone()),
                Ok(State::Ready(_) | State::Connecting) => Ok(()),
                Err(_) => Err("it was stopped".to_owned()),
            };
            drop(known);
            let result = match result {
                Ok(()) => server.is_listed().await,
                failed => failed,
            };
            settled.push((server.name.clone(), result));
        }
        settled
    }

    /// Ends all of them, and waits until nothing is left.
    pub(crate) async fn end(&self) {
        self.requests.cancel_all();
        for (_, known) in std::mem::take(&mut *self.running()) {
            known.server.stop();
        }
        self.tasks.ended(END_WITHIN).await;
    }

    fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.running().get(name).map(|running| running.server.clone())
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<EntryName, Running>> {
        // Nothing panics while it holds the lock.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says which servers of the settings are not reached.
pub(crate) fn tell(left_out: &[LeftOut]) {
    for LeftOut { name, why } in left_out {
        tracing::warn!(server = name, why, "a local MCP server is left out");
    }
}

/// What dials servers. It follows no redirects: a credential goes nowhere else.
///
/// # Errors
/// [`FootError::Certificates`].
pub(crate) fn http_client(ca: Option<&Path>) -> Result<reqwest::Client, FootError> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(crate::connection::tls::client_config(ca)?)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("footbridge-foot/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| FootError::Certificates { path: String::new(), reason: error.to_string() })
}
