//! One attached server: what it offers, how it is, and the task that keeps both up to date.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use footbridge_mcp::{Fields, Open, Preferred, Raw, ServerDescription};
use footbridge_shared::id::EntryName;
use footbridge_shared::text::clean_and_cut;
use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, broadcast, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Hub;
use super::backoff::Backoff;
use super::config::{ServerConfig, SessionMode, Target};
use super::dial::{Dial, Unavailable};
use super::events::{Hearing, RunningCalls};
use super::listing::{self, Accepted, Blame, Entries, Listed, Making, Unread};
use super::session::{Key, Live, Session, Sessions, Signs, Using};
use crate::domain::call::CallContext;
use crate::domain::mcp::{McpDescription, McpNote};
use crate::domain::mcp_notes::McpNotes;
use crate::lifecycle::Lifecycle;
use crate::sources::configured::status::PackError;

mod status;

/// Changes of a listing that come within this time are one.
const BURST: Duration = Duration::from_millis(200);
/// How long somebody waits for a refresh that was asked for.
const REFRESH_WAIT: Duration = Duration::from_secs(10);
/// How long running calls of a server that is not used any more may take to end.
const CLOSE_GRACE: Duration = Duration::from_secs(2);
/// How much longer than the handshake the start of a program may take.
const START_MARGIN: Duration = Duration::from_secs(10);
/// Programs of one server at a time.
const MAX_CHILDREN_OF_A_SERVER: usize = 64;
/// Connections to one server over HTTP at a time.
const MAX_CONNECTIONS: usize = 1_024;
/// Longest log message of a server that is logged here, in characters.
const MAX_LOGGED_CHARS: usize = 500;

/// A server that a document names.
pub(in crate::sources::configured) struct Server {
    me: Weak<Self>,
    pub(in crate::sources::configured) name: EntryName,
    pub(in crate::sources::configured) config: ServerConfig,
    hub: Arc<Hub>,
    pub(super) dialer: Box<dyn Dial>,
    sessions: Sessions,
    pub(super) permits: Option<Semaphore>,
    state: Mutex<State>,
    accepted: Mutex<Accepted>,
    listed: ArcSwap<Listed>,
    /// Somebody wants it listed again.
    wake: Notify,
    /// Those who wait for the next attempt to list it, and look at what comes of it.
    looking: Mutex<Vec<oneshot::Sender<()>>>,
    attempts: watch::Sender<u64>,
    notes: McpNotes,
    pub(super) calls: TaskTracker,
    stop: CancellationToken,
}

/// A listing over a connection.
struct Reading {
    signs: Signs,
    is_program: bool,
    /// Lists beside the tools that failed, and why.
    note: Option<String>,
}

/// How the last attempt to list it went.
#[derive(Default)]
struct State {
    error: Option<PackError>,
    note: Option<String>,
    listed_at: Option<jiff::Timestamp>,
    next_try: Option<Instant>,
}

impl Server {
    /// `before` is the same server as it was configured before: what that offered is shown until this one was listed.
    pub(super) fn new(
        name: EntryName,
        config: ServerConfig,
        hub: Arc<Hub>,
        dialer: Box<dyn Dial>,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let permits = config.concurrency.map(Semaphore::new);
        Arc::new_cyclic(|me| {
            let listed = before.map(|before| before.listed().carried(me, config.call_timeout));
            let accepted = before.map(|before| before.accepted.lock().clone());
            Self {
                me: me.clone(),
                name,
                config,
                hub,
                dialer,
                sessions: Sessions::default(),
                permits,
                state: Mutex::default(),
                accepted: Mutex::new(accepted.unwrap_or_default()),
                listed: ArcSwap::from_pointee(listed.unwrap_or_default()),
                wake: Notify::new(),
                looking: Mutex::default(),
                attempts: watch::Sender::new(0),
                notes: McpNotes::default(),
                calls: TaskTracker::new(),
                stop: CancellationToken::new(),
            }
        })
    }

    /// What it offered when it was last listed.
    pub(in crate::sources::configured) fn listed(&self) -> Arc<Listed> {
        self.listed.load_full()
    }

    /// What it tells by itself from now on.
    pub(in crate::sources::configured) fn notes(&self) -> broadcast::Receiver<McpNote> {
        self.notes.subscribe()
    }

    pub(super) fn tell(&self, note: McpNote) {
        self.notes.tell(note);
    }

    pub(super) fn spawner(&self) -> &Lifecycle {
        &self.hub.lifecycle
    }

    /// Nobody uses it any more.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Fires when it must not open anything any more.
    pub(super) async fn ended(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.hub.lifecycle.hard().cancelled() => {}
        }
    }

    /// Keeps its listing up to date until it ends, then ends all that belongs to it.
    pub(super) async fn keep(self: Arc<Self>) {
        tokio::select! {
            () = self.ended() => {}
            () = self.keep_listed() => {}
        }
        self.calls.close();
        if !self.hub.lifecycle.hard().is_cancelled() {
            let hard = self.hub.lifecycle.hard();
            tokio::select! {
                _ = tokio::time::timeout(CLOSE_GRACE, self.calls.wait()) => {}
                () = hard.cancelled() => {}
            }
        }
        futures::future::join_all(self.sessions.all().iter().map(|session| session.close())).await;
    }

    async fn keep_listed(self: &Arc<Self>) {
        let mut backoff = Backoff::default();
        loop {
            let mut looking = std::mem::take(&mut *self.looking.lock());
            // Who has gone away does not see what is there now.
            looking.retain(|looks| !looks.is_closed());
            let listed = self.list(!looking.is_empty()).await;
            let retry = match &listed {
                Ok(Reading { note: None, .. }) => {
                    backoff.reset();
                    None
                }
                Ok(Reading { note: Some(_), .. }) => {
                    backoff.failed();
                    Some(backoff.not_before().unwrap_or_else(Instant::now))
                }
                Err(unavailable) => {
                    backoff.failed();
                    let next_try = unavailable.next_try.max(backoff.not_before()).unwrap_or_else(Instant::now);
                    (!unavailable.lasting).then_some(next_try)
                }
            };
            self.note_attempt(listed.as_ref().map(|reading| reading.note.clone()), retry);
            for looks in looking {
                let _ = looks.send(());
            }
            let woken = match &listed {
                Ok(Reading { signs, is_program, .. }) => tokio::select! {
                    () = self.wake.notified() => true,
                    () = signs.let_go.cancelled() => true,
                    () = signs.closed.cancelled() => {
                        if *is_program {
                            self.note_attempt(Err(&Unavailable::now("the program ended")), Some(Instant::now()));
                        }
                        false
                    }
                    () = until(retry) => false,
                },
                Err(_) => tokio::select! {
                    () = self.wake.notified() => true,
                    () = until(retry) => false,
                },
            };
            if woken {
                tokio::time::sleep(BURST).await;
                // What was said meanwhile is seen by the listing that comes now.
                let _ = self.wake.notified().now_or_never();
            }
        }
    }

    /// Lists it, over a connection that is opened if there is none. With `accept` what it offers counts as looked at.
    async fn list(self: &Arc<Self>, accept: bool) -> Result<Reading, Unavailable> {
        let key = if self.config.session == SessionMode::Shared { Key::Shared } else { Key::Listing };
        let session = self.session(key).await?;
        let mut live = session.live(self, self.listed_as()).await?;
        let mut read = listing::read(&live.connection, self.config.init_timeout).await;
        if self.may_renew(&read).await {
            session.discard(&live);
            live = session.live(self, self.listed_as()).await?;
            read = listing::read(&live.connection, self.config.init_timeout).await;
        }
        match read {
            Ok(entries) => {
                let shown = |unread: &Unread| format!("{}; what it said before stays", self.shown(unread));
                let note: Vec<String> = entries.unread().map(shown).collect();
                self.install(entries, &live.connection.server(), accept);
                let note = (!note.is_empty()).then(|| note.join("; "));
                Ok(Reading { signs: live.signs(), is_program: live.is_program, note })
            }
            Err(unread) => {
                let is_of_no_use = match unread.blame {
                    Blame::Session | Blame::Credentials | Blame::Connection => true,
                    // Where something else runs, it is alive.
                    Blame::Silence => live.calls.is_empty(),
                    Blame::Answer => false,
                };
                if is_of_no_use {
                    session.discard(&live);
                }
                Err(Unavailable::now(self.shown(&unread)))
            }
        }
    }

    /// Whether a list that was not read may be with another connection.
    async fn may_renew(&self, read: &Result<Entries, Unread>) -> bool {
        let blames: Vec<Blame> = match read {
            Ok(entries) => entries.unread().map(|unread| unread.blame).collect(),
            Err(unread) => vec![unread.blame],
        };
        blames.contains(&Blame::Session)
            || (blames.contains(&Blame::Credentials) && self.dialer.forget_credentials().await)
    }

    fn shown(&self, unread: &Unread) -> String {
        clean_and_cut(&self.config.redactor.text(&unread.to_string()), super::dial::MAX_SHOWN_CHARS)
    }

    fn install(&self, entries: Entries, said: &ServerDescription, accept: bool) {
        let description = McpDescription {
            version: said.version,
            info: said.info.clone(),
            capabilities: said.capabilities.clone(),
            instructions: said.instructions.clone(),
        };
        let before = self.listed.load_full();
        let mut accepted = self.accepted.lock();
        let making = Making { server: &self.me, pack: &self.name, timeout: self.config.call_timeout };
        let listed = listing::assemble(&making, description, entries, &before, &mut accepted, accept);
        drop(accepted);
        let changed = !listing::unchanged(&before, &listed);
        if listed.left_out > 0 && changed {
            tracing::warn!(pack = %self.name, left_out = listed.left_out, odd = ?listed.odd, "an MCP server lists what cannot be used");
        }
        self.listed.store(Arc::new(listed));
        if changed {
            self.hub.changes.tell();
            self.tell(McpNote::ListChanged);
        }
    }

    /// Takes down how an attempt went: what is worth knowing of one that went well, or why it failed.
    fn note_attempt(&self, went: Result<Option<String>, &Unavailable>, next_try: Option<Instant>) {
        let mut state = self.state.lock();
        match went {
            Ok(note) => {
                if let Some(note) = note.as_ref().filter(|note| state.note.as_ref() != Some(*note)) {
                    tracing::warn!(pack = %self.name, note, "an MCP server could not be listed whole");
                }
                (state.error, state.note) = (None, note);
                state.listed_at = Some(self.hub.clock.now());
            }
            Err(why) => {
                let known = state.error.as_ref().is_some_and(|error| error.message == why.message);
                if !known {
                    tracing::warn!(pack = %self.name, code = %why.code, reason = why.message, "an MCP server is not available");
                }
                state.error =
                    Some(PackError { code: why.code, message: why.message.clone(), at: self.hub.clock.now() });
            }
        }
        state.next_try = next_try;
        drop(state);
        self.attempts.send_modify(|attempts| *attempts = attempts.wrapping_add(1));
    }

    /// Its listing may be another one.
    pub(super) fn list_changed(&self) {
        self.wake.notify_one();
    }

    /// Lists it again now, and takes what it offers then for looked at. Waits a while for that.
    pub(in crate::sources::configured) async fn refresh(&self) {
        let (looks, listed) = oneshot::channel();
        {
            let mut looking = self.looking.lock();
            looking.retain(|looks| !looks.is_closed());
            looking.push(looks);
        }
        for session in self.sessions.all() {
            session.forgive();
        }
        self.wake.notify_one();
        let _ = tokio::time::timeout(REFRESH_WAIT, listed).await;
    }

    /// Counts attempts to list it.
    #[cfg(test)]
    pub(super) fn attempts(&self) -> watch::Receiver<u64> {
        self.attempts.subscribe()
    }

    /// What the last attempt failed of.
    pub(super) fn last_error(&self) -> Option<String> {
        self.state.lock().error.as_ref().map(|error| error.message.clone())
    }

    /// The session that serves a call.
    pub(super) async fn session_of(self: &Arc<Self>, ctx: &CallContext) -> Result<Using, Unavailable> {
        let session = self.session(Key::of(self.config.session, ctx)).await?;
        if let Some(ended) = session.begin_waiting(ctx) {
            let (me, session) = (self.clone(), Arc::clone(&session));
            self.spawner().spawn("end of an MCP session at an MCP server", me.end_with(session, ended));
        }
        Ok(session)
    }

    /// Ends a connection with the MCP session that it was for, when the last call on it has ended.
    async fn end_with(self: Arc<Self>, session: Arc<Session>, ended: CancellationToken) {
        let end = async {
            ended.cancelled().await;
            while !self.sessions.take_unused(&session) {
                session.unused().await;
            }
        };
        tokio::select! {
            () = end => session.close().await,
            // Others ended it.
            () = session.over.cancelled() => {}
            () = self.ended() => {}
        }
    }

    async fn session(&self, key: Key) -> Result<Using, Unavailable> {
        let most = match self.config.target {
            Target::Stdio(_) => MAX_CHILDREN_OF_A_SERVER,
            Target::Http(_) => MAX_CONNECTIONS,
        };
        let (session, evicted) = self.sessions.of(key, most)?;
        if let Some(evicted) = evicted {
            evicted.close().await;
        }
        Ok(session)
    }

    /// Opens a connection for that key.
    pub(super) async fn dial(&self, key: &Key, capabilities: Raw) -> Result<Arc<Live>, Unavailable> {
        if matches!(self.config.target, Target::Stdio(_)) {
            self.hub.make_room_for_a_child().await;
        }
        let calls = Arc::new(RunningCalls::default());
        let hearing = Hearing { server: self.me.clone(), audience: key.audience(), calls: calls.clone() };
        let open = Open {
            preferred: key.lifecycle().map_or(Preferred::Newest, Preferred::Lifecycle),
            client_info: client_info(),
            capabilities,
            timeout: self.config.init_timeout,
            events: Arc::new(hearing),
            spawn: self.hub.spawn.clone(),
        };
        let limit = self.config.init_timeout + START_MARGIN;
        let dialed = tokio::time::timeout(limit, self.dialer.dial(open)).await;
        let dialed = dialed.unwrap_or_else(|_| Err(Unavailable::now(format!("it did not start within {limit:?}"))))?;
        tracing::debug!(pack = %self.name, version = %dialed.connection.server().version, "an MCP server is connected");
        Ok(Live::new(dialed.connection, calls, dialed.process, self.hub.lifecycle.clone()))
    }

    /// A message of a server for a log, where it is for nobody in particular.
    pub(super) fn log(&self, method: &str, params: &Raw) {
        let text = clean_and_cut(&self.config.redactor.text(params.get()), MAX_LOGGED_CHARS);
        tracing::debug!(pack = %self.name, method, text, "an MCP server tells");
    }

    /// Sessions that nobody used for so long, taken out.
    pub(super) fn take_idle(&self, for_so_long: Duration) -> Vec<Arc<Session>> {
        self.sessions.take_idle(for_so_long)
    }

    /// For how long the session was not used that was not used for longest.
    pub(super) fn longest_idle(&self) -> Option<Duration> {
        self.sessions.longest_idle()
    }
}

pub(super) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// An empty JSON object.
pub(super) fn nothing() -> Raw {
    Fields::new().to_raw()
}

fn client_info() -> Raw {
    let mut info = Fields::new();
    info.set_value("name", "footbridge");
    info.set_value("title", "Footbridge");
    info.set_value("version", env!("CARGO_PKG_VERSION"));
    info.to_raw()
}
