//! One open connection to a server, and whose it is.

use std::sync::Arc;

use footbridge_mcp::{Connection, Fields, Lifecycle, Raw, Subscriptions, Version, everything_carried};
use footbridge_shared::id::Subject;
use footbridge_shared::message::{Audience, Caller};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::follows::Follows;
use super::router::{For, Router};
use super::settings::SessionMode;

/// Who shares a connection. Callers of different lifecycles never do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// One MCP session of a subject.
    Session(Subject, String),
    /// One process of a subject.
    Process(Subject, String, Option<Lifecycle>),
    /// All that a subject does.
    Subject(Subject, Option<Lifecycle>),
}

impl Key {
    /// Of a call, as the owner wants connections to be shared. `None`: by everybody.
    pub(super) fn of(mode: SessionMode, caller: &Caller) -> Option<Self> {
        let subject = caller.subject.clone();
        let session = caller.client.as_deref().and_then(|client| client.session.clone());
        Some(match (mode, session, &caller.process) {
            (SessionMode::Shared, ..) => return None,
            (SessionMode::Process, Some(session), _) => Self::Session(subject, session),
            (SessionMode::Process, None, Some(process)) => Self::Process(subject, process.clone(), lifecycle(caller)),
            (SessionMode::Process, None, None) | (SessionMode::Subject, ..) => {
                Self::Subject(subject, lifecycle(caller))
            }
        })
    }

    /// For whom the server works.
    pub(super) fn whom(&self) -> For {
        let (subject, session) = match self {
            Self::Session(subject, session) => (subject.clone(), Some(session.clone())),
            Self::Process(subject, ..) | Self::Subject(subject, _) => (subject.clone(), None),
        };
        For::Somebody(Audience { subject, session })
    }

    /// What the server may ask for: what the one client of a session can answer; where clients come and go, all that can be
    /// carried to them.
    pub(super) fn capabilities(&self, caller: &Caller) -> Raw {
        match (self, caller.client.as_deref()) {
            (_, None) => Fields::new().to_raw(),
            (Self::Session(..), Some(client)) => client.capabilities.clone(),
            (Self::Process(..) | Self::Subject(..), Some(_)) => everything_carried(),
        }
    }
}

/// What the client of a call speaks; `None` without one.
pub(super) fn lifecycle(caller: &Caller) -> Option<Lifecycle> {
    let client = caller.client.as_deref()?;
    // One that is newer than any that is known here follows the newest.
    Some(Version::parse(&client.protocol).unwrap_or(Version::LATEST).lifecycle())
}

/// An open connection.
pub(super) struct Attached {
    pub(super) connection: Connection,
    pub(super) router: Arc<Router>,
    /// Fires when nobody is to begin anything on it any more: it has ended, it was given up, or nobody holds it.
    over: CancellationToken,
    _over: DropGuard,
    /// Resources that are followed.
    pub(super) follows: Follows,
}

impl Attached {
    pub(super) fn new(connection: Connection, router: Arc<Router>) -> Arc<Self> {
        let over = connection.closed().child_token();
        let _over = over.clone().drop_guard();
        Arc::new(Self { connection, router, over, _over, follows: Follows::default() })
    }

    /// Fires when nothing is to begin on it any more.
    pub(super) const fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Whether nothing is to begin on it any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// It turned out to be of no use: another one takes its place. What runs on it runs to its end, and the last who holds it
    /// ends it.
    pub(super) fn give_up(&self) {
        self.over.cancel();
    }

    /// Hears of changes until it is over, where a server without sessions tells of them to whoever asked.
    pub(super) fn listen(&self) -> impl Future<Output = ()> + Send + use<> {
        // Not this, but its connection: whoever holds this may begin something.
        let (connection, over) = (self.connection.clone(), self.over.clone());
        async move {
            let server = connection.server();
            let wanted = Subscriptions::offered(&server.capabilities);
            if server.version.lifecycle() != Lifecycle::Stateless || wanted.is_empty() {
                return;
            }
            if let Err(error) = connection.listen(&wanted, over.child_token()).await
                && !over.is_cancelled()
            {
                tracing::debug!(%error, "changes of a local MCP server are not told");
            }
        }
    }

    /// How its sessions go.
    pub(super) fn lifecycle(&self) -> Lifecycle {
        self.connection.server().version.lifecycle()
    }
}
