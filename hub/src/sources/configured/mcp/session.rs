//! Connections to one server: who shares which, opened when they are needed, renewed when they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use footbridge_mcp::{Connection, Lifecycle as McpLifecycle, Raw};
use footbridge_shared::id::Subject;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) use self::sessions::Sessions;
use super::backoff::Backoff;
use super::child::Child;
use super::config::SessionMode;
use super::dial::Unavailable;
use super::events::RunningCalls;
use super::followed::Followed;
use super::server::Server;
use crate::domain::call::CallContext;
use crate::domain::mcp::McpAudience;
use crate::lifecycle::Lifecycle;

mod sessions;

/// A connection that nobody used for so long is closed, unless it is the one that lists.
pub(super) const IDLE: Duration = Duration::from_secs(15 * 60);
/// What a caller waits for at most, before it is told to come again.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// A session that is forgotten so soon was none.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long a connection has to end in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Who has a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Everybody.
    Shared,
    /// Nobody: the hub lists with it.
    Listing,
    /// A subject, with clients of one lifecycle.
    Subject(Subject, McpLifecycle),
    /// A process, or an MCP session, of a subject.
    Session(Subject, String, McpLifecycle),
}

impl Key {
    /// Whose connection serves a call.
    pub(super) fn of(mode: SessionMode, ctx: &CallContext) -> Self {
        let subject = ctx.caller.subject.clone();
        let client = ctx.client.as_ref();
        // Those that are no MCP clients have nothing to prefer.
        let lifecycle = client.map_or(McpLifecycle::Session, |client| client.lifecycle());
        let session = ctx
            .caller
            .process
            .as_ref()
            .map(|process| format!("process {process}"))
            .or_else(|| Some(format!("session {}", client?.session()?)));
        match (mode, session) {
            (SessionMode::Shared, _) => Self::Shared,
            (SessionMode::Process, Some(session)) => Self::Session(subject, session, lifecycle),
            (SessionMode::Process, None) | (SessionMode::Subject, _) => Self::Subject(subject, lifecycle),
        }
    }

    /// For whom such a connection works; `None`: for nobody in particular.
    pub(super) fn audience(&self) -> Option<McpAudience> {
        match self {
            Self::Shared | Self::Listing => None,
            Self::Subject(subject, _) => Some(McpAudience::Subject(subject.clone())),
            Self::Session(subject, session, _) => match session.strip_prefix("session ") {
                Some(session) => Some(McpAudience::Session(subject.clone(), session.to_owned())),
                None => Some(McpAudience::Subject(subject.clone())),
            },
        }
    }

    /// Which lifecycle is tried first.
    pub(super) fn lifecycle(&self) -> Option<McpLifecycle> {
        match self {
            Self::Shared | Self::Listing => None,
            Self::Subject(_, lifecycle) | Self::Session(_, _, lifecycle) => Some(*lifecycle),
        }
    }

    /// Whose it is, where it is one subject's.
    fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Shared | Self::Listing => None,
            Self::Subject(subject, _) | Self::Session(subject, ..) => Some(subject),
        }
    }

    /// Whether it is this MCP session's, and of no use after it.
    fn is_of(&self, mcp_session: &str) -> bool {
        matches!(self, Self::Session(_, session, _) if session.strip_prefix("session ") == Some(mcp_session))
    }

    /// Whether it is open whether or not it is used.
    fn stays(&self) -> bool {
        matches!(self, Self::Shared | Self::Listing)
    }
}

/// An open connection. Dropped by the last one who holds it, it ends in order.
pub(super) struct Live {
    pub(super) connection: Connection,
    pub(super) calls: Arc<RunningCalls>,
    /// Whether a program of the hub's is behind it.
    pub(super) is_program: bool,
    opened: Instant,
    listened_to: AtomicBool,
    let_go: CancellationToken,
    process: Mutex<Option<Child>>,
    spawner: Lifecycle,
}

impl Live {
    pub(super) fn new(
        connection: Connection,
        calls: Arc<RunningCalls>,
        process: Option<Child>,
        spawner: Lifecycle,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection,
            calls,
            is_program: process.is_some(),
            opened: Instant::now(),
            listened_to: AtomicBool::new(false),
            let_go: CancellationToken::new(),
            process: Mutex::new(process),
            spawner,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.connection.closed().is_cancelled()
    }

    /// Whether whoever asks is the first one who wants to listen for its changes.
    pub(super) fn begin_listening(&self) -> bool {
        !self.listened_to.swap(true, Ordering::AcqRel)
    }

    /// What it is watched by, by those who do not hold it.
    pub(super) fn signs(&self) -> Signs {
        Signs { closed: self.connection.closed().clone(), let_go: self.let_go.clone() }
    }

    /// Ends it: in order, then the program behind it, whoever still holds on to this.
    pub(super) async fn close(&self) {
        end(&self.connection).await;
        self.process.lock().take();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Where there is no runtime any more, the process ends and takes everything with it.
        if self.is_open() && tokio::runtime::Handle::try_current().is_ok() {
            let (connection, process) = (self.connection.clone(), self.process.lock().take());
            self.spawner.spawn("end of an MCP connection", async move {
                end(&connection).await;
                drop(process);
            });
        }
    }
}

async fn end(connection: &Connection) {
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.close(CLOSE_TIMEOUT)).await;
}

/// Says when a connection is of no use any more.
#[derive(Clone)]
pub(super) struct Signs {
    /// It has ended.
    pub(super) closed: CancellationToken,
    /// Another one takes its place.
    pub(super) let_go: CancellationToken,
}

/// A place for a connection that is open, or is opened when it is needed.
pub(super) struct Session {
    pub(super) key: Key,
    live: Mutex<Option<Arc<Live>>>,
    /// Resources that are followed over it.
    pub(super) followed: Followed,
    /// Held by whoever opens, so that many callers wait for one opening.
    opening: tokio::sync::Mutex<Backoff>,
    users: watch::Sender<usize>,
    last_use: Mutex<Instant>,
    /// Somebody waits for the end of the MCP session that it belongs to.
    waited_for: AtomicBool,
    /// Fires when nobody gets it any more.
    pub(super) over: CancellationToken,
}

/// A session that a call uses: it is not idle until this is dropped.
pub(super) struct Using(Arc<Session>);

impl std::ops::Deref for Using {
    type Target = Arc<Session>;
    fn deref(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        *self.0.last_use.lock() = Instant::now();
        self.0.users.send_modify(|users| *users = users.saturating_sub(1));
    }
}

impl Session {
    fn new(key: Key) -> Arc<Self> {
        Arc::new(Self {
            key,
            live: Mutex::default(),
            followed: Followed::default(),
            opening: tokio::sync::Mutex::default(),
            users: watch::Sender::new(0),
            last_use: Mutex::new(Instant::now()),
            waited_for: AtomicBool::new(false),
            over: CancellationToken::new(),
        })
    }

    /// The connection, if it is open.
    pub(super) fn open_now(&self) -> Option<Arc<Live>> {
        self.live.lock().clone().filter(|live| live.is_open())
    }

    /// Whether this is the connection that new requests take.
    pub(super) fn is_at(&self, live: &Arc<Live>) -> bool {
        self.live.lock().as_ref().is_some_and(|now| Arc::ptr_eq(now, live))
    }

    /// The connection; opened if it is not. The opening goes on if this is given up on: the next one finds it open.
    ///
    /// # Errors
    /// There is none, or it is not yet time to try again.
    pub(super) async fn live(
        self: &Arc<Self>,
        server: &Arc<Server>,
        capabilities: Raw,
    ) -> Result<Arc<Live>, Unavailable> {
        if let Some(live) = self.open_now() {
            return Ok(live);
        }
        let (tell, told) = oneshot::channel();
        let (session, server) = (self.clone(), server.clone());
        let spawner = server.spawner().clone();
        spawner.spawn("opening of an MCP server", async move {
            let opened = tokio::select! {
                opened = session.open(&server, capabilities) => opened,
                () = server.ended() => Err(Unavailable::now("the server is not used any more")),
            };
            // Over HTTP a server without sessions cannot tell one connection from another: one that listens is enough.
            if let Ok(live) = &opened
                && (live.is_program || session.key.stays())
            {
                server.listen(live);
            }
            let _ = tell.send(opened);
        });
        told.await.unwrap_or_else(|_| Err(Unavailable::now("the hub is going down")))
    }

    async fn open(&self, server: &Server, capabilities: Raw) -> Result<Arc<Live>, Unavailable> {
        let mut backoff = self.opening.lock().await;
        if let Some(live) = self.open_now() {
            return Ok(live);
        }
        let old = self.live.lock().take();
        if let Some(old) = old {
            // It ended by itself. Over HTTP that is how a server forgets a session, and no reason to wait, unless it did so
            // at once.
            let lived = old.opened.elapsed();
            if old.is_program || lived < AT_ONCE {
                backoff.ended_after(lived);
            }
            old.close().await;
        }
        if let Some(at) = backoff.not_before() {
            if at.duration_since(Instant::now()) > MAX_WAIT {
                let why = server.last_error().unwrap_or_else(|| "it ended a short while ago".to_owned());
                return Err(Unavailable { next_try: Some(at), ..Unavailable::now(why) });
            }
            tokio::time::sleep_until(at).await;
        }
        match server.dial(&self.key, capabilities).await {
            Ok(live) => {
                *self.live.lock() = Some(live.clone());
                Ok(live)
            }
            Err(mut unavailable) => {
                if !unavailable.lasting {
                    backoff.failed();
                    unavailable.next_try = backoff.not_before();
                }
                Err(unavailable)
            }
        }
    }

    /// Lets go of a connection that new requests are not to take: the next one to ask opens another. Requests that run on it
    /// go on to their end, and the last one ends it. Of many that say so, the first one counts.
    pub(super) fn discard(&self, useless: &Arc<Live>) {
        let mut live = self.live.lock();
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(live, useless)) {
            *live = None;
            useless.let_go.cancel();
        }
    }

    /// Whoever asks may try at once.
    pub(super) fn forgive(&self) {
        // Locked, it is being tried just now.
        if let Ok(mut backoff) = self.opening.try_lock() {
            backoff.reset();
        }
    }

    /// What ends with the MCP session behind a call and nobody waits for yet: whoever asks does from now on.
    pub(super) fn begin_waiting(&self, ctx: &CallContext) -> Option<CancellationToken> {
        let client = ctx.client.as_ref()?;
        let ended = client.session().filter(|session| self.key.is_of(session)).and_then(|_| client.ended())?;
        (!self.waited_for.swap(true, Ordering::AcqRel)).then_some(ended)
    }

    /// Nobody uses it.
    pub(super) async fn unused(&self) {
        // The sender is this one's own.
        let _ = self.users.subscribe().wait_for(|users| *users == 0).await;
    }

    /// Ends it, with its connection, if there is one.
    pub(super) async fn close(&self) {
        self.over.cancel();
        let live = self.live.lock().take();
        if let Some(live) = live {
            live.close().await;
        }
    }

    /// For how long nobody used it; `None`: somebody does or follows a resource over it, or it stays open anyway.
    fn idle(&self) -> Option<Duration> {
        let used = self.key.stays() || *self.users.borrow() > 0 || !self.followed.is_empty();
        (!used).then(|| self.last_use.lock().elapsed())
    }
}
