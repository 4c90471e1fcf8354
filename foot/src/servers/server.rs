//! One local server: it is reached, listed, followed and reached again, and its connections are handed out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use footbridge_mcp::{Lifecycle, Open, Preferred, Raw, ServerDescription, everything_carried};
use footbridge_shared::id::EntryName;
use footbridge_shared::limits::MAX_SERVER_BYTES;
use footbridge_shared::message::{Caller, ServerInfo};
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::attached::{Attached, Key, lifecycle};
use super::board::Board;
use super::follows::Taken;
use super::listing;
use super::opener::Opener;
use super::pool::Pool;
use super::router::{For, Router};
use super::settings::{ServerSettings, SessionMode, Target};
use super::tasks::Tasks;
use super::tool::ServerTool;
use crate::connection::backoff::Backoff;
use crate::random;
use crate::tools::{Tool, raw};

/// How long the end of a connection in order may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// Time after which a list is read again that changed: changes come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Time between two looks for connections that are of no more use.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// How a server is.
#[derive(Clone)]
pub(super) enum State {
    /// It is being reached.
    Connecting,
    /// It is there; over this connection it is listed.
    Ready(Arc<Attached>),
    /// It cannot be reached; for the owner, why. It is tried again.
    Failed(String),
}

/// A server.
pub(super) struct Server {
    pub(super) name: EntryName,
    settings: Mutex<Arc<ServerSettings>>,
    opener: Opener,
    board: Arc<Board>,
    state: watch::Sender<State>,
    /// What it listed last, and what it said of itself then.
    listed: Mutex<Option<(Arc<ServerDescription>, Vec<Raw>)>>,
    /// What became of the last listing.
    listings: watch::Sender<Option<Result<(), String>>>,
    pool: Pool,
    /// Calls that may run at once.
    pub(super) room: Semaphore,
    stale: Arc<tokio::sync::Notify>,
    stop: CancellationToken,
}

/// Why there is no connection for a call.
#[derive(Debug, Clone)]
pub(super) enum NoConnection {
    /// The server cannot be reached.
    Unreached,
    /// All connections that there may be are in use.
    Full,
}

impl Server {
    pub(super) fn new(settings: ServerSettings, opener: Opener, board: Arc<Board>) -> Arc<Self> {
        Arc::new(Self {
            name: settings.name.clone(),
            room: Semaphore::new(settings.concurrency),
            settings: Mutex::new(Arc::new(settings)),
            opener,
            board,
            state: watch::Sender::new(State::Connecting),
            listed: Mutex::default(),
            listings: watch::Sender::new(None),
            pool: Pool::default(),
            stale: Arc::default(),
            stop: CancellationToken::new(),
        })
    }

    pub(super) fn settings(&self) -> Arc<ServerSettings> {
        lock(&self.settings).clone()
    }

    /// Takes up settings under which it is reached as before, and tells its tools anew.
    pub(super) fn tune(self: &Arc<Self>, settings: ServerSettings) {
        *lock(&self.settings) = Arc::new(settings);
        self.offer();
    }

    /// It is not wanted any more.
    pub(super) fn stop(&self) {
        let _showing = lock(&self.board.showing);
        self.stop.cancel();
    }

    /// Follows how it is.
    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Waits until it was listed once, or could not be.
    ///
    /// # Errors
    /// Why not, for the owner.
    pub(super) async fn is_listed(&self) -> Result<(), String> {
        let mut listings = self.listings.subscribe();
        let listed = listings.wait_for(Option::is_some).await;
        listed.ok().and_then(|listed| listed.clone()).unwrap_or_else(|| Err("it was stopped".to_owned()))
    }

    /// Reaches it, and reaches it again, until it is stopped; then nothing of it is left running.
    pub(super) async fn attend(self: Arc<Self>) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.keep_reaching() => {}
        }
        let own = match self.state.send_replace(State::Failed("it was stopped".to_owned())) {
            State::Ready(attached) => Some(attached),
            State::Connecting | State::Failed(_) => None,
        };
        let all = self.pool.take_all().await.into_iter().chain(own);
        futures::future::join_all(all.map(close)).await;
    }

    async fn keep_reaching(self: &Arc<Self>) {
        let mut backoff = Backoff::default();
        let mut followed = Taken::default();
        loop {
            let since = self.board.clock.boot();
            // Servers show some tools to those alone who could answer what they ask.
            let shared = self.settings().session == SessionMode::Shared;
            let capabilities = if shared { json_object() } else { everything_carried() };
            let opened = self.open(For::Everybody, Preferred::Newest, capabilities).await;
            match opened {
                Ok(attached) => {
                    attached.follow_again(std::mem::take(&mut followed), &self.opener.tasks);
                    self.state.send_replace(State::Ready(attached.clone()));
                    self.attend_to(&attached).await;
                    self.state.send_replace(State::Connecting);
                    followed = attached.follows.take();
                    let lasted = self.board.clock.boot().saturating_sub(since);
                    backoff.lasted(lasted);
                    tracing::warn!(server = %self.name, "a local MCP server is gone; it is reached again");
                    // One that worked is reached again at once; one that keeps ending waits longer each time.
                    if backoff.is_fresh() {
                        let _ = backoff.next(None, 0.0);
                        continue;
                    }
                }
                Err(why) => {
                    tracing::warn!(server = %self.name, why, "a local MCP server cannot be reached");
                    self.state.send_replace(State::Failed(why));
                }
            }
            tokio::time::sleep(backoff.next(None, random::unit())).await;
        }
    }

    /// Lists it, and again when it changes, as long as a connection lasts.
    async fn attend_to(self: &Arc<Self>, attached: &Arc<Attached>) {
        let connection = &attached.connection;
        self.opener.tasks.run(attached.listen());
        let listing = async {
            let mut backoff = Backoff::default();
            loop {
                let next = match listing::tools(connection, self.settings().init_timeout).await {
                    Ok(tools) => {
                        tracing::info!(server = %self.name, tools = tools.len(), "a local MCP server is listed");
                        self.take_listing(connection.server(), tools).await;
                        self.listings.send_replace(Some(Ok(())));
                        backoff = Backoff::default();
                        None
                    }
                    Err(why) => {
                        tracing::warn!(server = %self.name, why, "a local MCP server could not be listed");
                        self.listings.send_replace(Some(Err(why)));
                        Some(backoff.next(None, random::unit()) + DEBOUNCE)
                    }
                };
                match next {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => {
                        self.stale.notified().await;
                        tokio::time::sleep(DEBOUNCE).await;
                    }
                }
            }
        };
        let sweeping = async {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                for dropped in self.pool.sweep(self.board.clock.boot()) {
                    self.opener.tasks.run(close(dropped));
                }
            }
        };
        tokio::select! {
            () = attached.over().cancelled() => {}
            () = listing => {}
            () = sweeping => {}
        }
    }

    async fn take_listing(self: &Arc<Self>, description: Arc<ServerDescription>, tools: Vec<Raw>) {
        *lock(&self.listed) = Some((description, tools));
        let server = self.clone();
        // Thousands of schemas take their time, and calls go on meanwhile.
        if let Err(error) = tokio::task::spawn_blocking(move || server.offer()).await {
            tracing::error!(%error, server = %self.name, "the tools of a local MCP server could not be offered");
        }
    }

    /// Tells what it listed last, under the settings and permissions as they are. May take a while.
    pub(super) fn offer(self: &Arc<Self>) {
        let listed = lock(&self.listed);
        let Some((description, tools)) = &*listed else { return };
        let (settings, permissions) = (self.settings(), self.board.permissions());
        let entries = listing::entries(&settings, description.version.lifecycle(), tools);
        let permitted = entries.into_iter().filter(|listed| {
            settings.permission != crate::permissions::Mode::Deny || permissions.could_allow(&listed.entry.name)
        });
        let tools: Vec<Arc<dyn Tool>> =
            permitted.map(|listed| Arc::new(ServerTool::new(self.clone(), listed)) as Arc<dyn Tool>).collect();
        let info = ServerInfo {
            name: self.name.to_string(),
            capabilities: description.capabilities.clone(),
            instructions: description.instructions.clone(),
            protocol: Some(description.version.to_string()),
            info: Some(description.info.clone()),
        };
        let info = bounded(info);
        let _showing = lock(&self.board.showing);
        if !self.stop.is_cancelled() {
            self.board.show(&self.name, info, tools);
        }
    }

    /// The connection for a call; opened if it is not there. `not` is one that turned out to be of no use.
    ///
    /// # Errors
    /// [`NoConnection`]: nothing was asked of the server.
    pub(super) async fn attach(
        &self,
        caller: &Caller,
        not: Option<&Arc<Attached>>,
    ) -> Result<Arc<Attached>, NoConnection> {
        let settings = self.settings();
        let attached = match Key::of(settings.session, caller) {
            None => self.shared(&settings, not).await?,
            Some(key) => self.own(&settings, &key, caller, not).await?,
        };
        attached.router.used();
        Ok(attached)
    }

    /// The one that everybody shares.
    async fn shared(
        &self,
        settings: &ServerSettings,
        not: Option<&Arc<Attached>>,
    ) -> Result<Arc<Attached>, NoConnection> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| match state {
            State::Connecting => false,
            State::Ready(attached) => !attached.is_over() && not.is_none_or(|not| !Arc::ptr_eq(not, attached)),
            State::Failed(_) => true,
        });
        match tokio::time::timeout(settings.init_timeout, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Ready(attached) => Ok(attached.clone()),
                State::Connecting | State::Failed(_) => Err(NoConnection::Unreached),
            },
            _ => Err(NoConnection::Unreached),
        }
    }

    /// The one of a key.
    async fn own(
        &self,
        settings: &ServerSettings,
        key: &Key,
        caller: &Caller,
        not: Option<&Arc<Attached>>,
    ) -> Result<Arc<Attached>, NoConnection> {
        let (slot, dropped) = self.pool.slot(key).map_err(|_| NoConnection::Full)?;
        if let Some(dropped) = dropped {
            self.opener.tasks.run(close(dropped));
        }
        let mut held = slot.lock().await;
        if let Some(attached) = held.as_ref()
            && !attached.is_over()
            && not.is_none_or(|not| !Arc::ptr_eq(not, attached))
        {
            return Ok(attached.clone());
        }
        // One that cannot be reached is not started over and over by those who call it.
        if matches!(*self.state.borrow(), State::Failed(_)) {
            return Err(NoConnection::Unreached);
        }
        let preferred = self.preferred(caller);
        let opened = tokio::select! {
            opened = self.open(key.whom(), preferred, key.capabilities(caller)) => opened,
            () = self.stop.cancelled() => return Err(NoConnection::Unreached),
        };
        let opened = opened.map_err(|why| {
            let mode = settings.session;
            tracing::warn!(server = %self.name, ?mode, why, "a local MCP server cannot be reached for a caller");
            NoConnection::Unreached
        })?;
        // Over HTTP a server without sessions cannot tell one connection from another, and one listens already.
        if matches!(settings.target, Target::Program { .. }) {
            self.opener.tasks.run(opened.listen());
        }
        if let Some(before) = held.replace(opened.clone()) {
            opened.follow_again(before.follows.take(), &self.opener.tasks);
        }
        Ok(opened)
    }

    /// What the caller speaks; a server that is known to know nothing of that is not asked for it.
    fn preferred(&self, caller: &Caller) -> Preferred {
        let known = lock(&self.listed).as_ref().map(|(description, _)| description.version.lifecycle());
        match (lifecycle(caller), known) {
            (_, Some(Lifecycle::Session)) => Preferred::Lifecycle(Lifecycle::Session),
            (Some(wanted), _) => Preferred::Lifecycle(wanted),
            (None, _) => Preferred::Newest,
        }
    }

    /// # Errors
    /// Why there is none, for the owner.
    async fn open(&self, whom: For, preferred: Preferred, capabilities: Raw) -> Result<Arc<Attached>, String> {
        let settings = self.settings();
        let Board { line, clock, .. } = &*self.board;
        let router = Router::new(self.name.clone(), whom, line.clone(), self.stale.clone(), clock.clone());
        let open = Open {
            preferred,
            client_info: raw(&json!({
                "name": "footbridge-foot", "title": "Footbridge", "version": env!("CARGO_PKG_VERSION"),
            })),
            capabilities,
            timeout: settings.init_timeout,
            events: router.clone(),
            spawn: Arc::new(self.opener.tasks.clone()),
        };
        let connection = self.opener.open(self.name.as_str(), &settings.target, open).await;
        let connection = connection.map_err(|unreached| unreached.with_advice(&settings.target))?;
        Ok(Attached::new(connection, router))
    }

    /// Who owns its tasks.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.opener.tasks
    }
}

/// What a server says of itself, without what is more than a hub takes.
fn bounded(mut info: ServerInfo) -> ServerInfo {
    let fits = |info: &ServerInfo| raw(info).get().len() <= MAX_SERVER_BYTES;
    if !fits(&info) {
        tracing::warn!(server = info.name, limit = MAX_SERVER_BYTES, "a server says too much of itself");
        info.instructions = None;
    }
    if !fits(&info) {
        info.info = None;
    }
    info
}

async fn close(attached: Arc<Attached>) {
    attached.connection.close(CLOSE_WITHIN).await;
}

fn json_object() -> Raw {
    raw(&json!({}))
}

/// Nothing panics while it holds one of these; what is there would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
