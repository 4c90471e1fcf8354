//! One open connection to a server, and whose it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use footbridge_mcp::{Connection, Fields, Lifecycle, Raw, Version};
use footbridge_shared::id::Subject;
use footbridge_shared::message::{Audience, Caller};
use serde_json::json;

use super::router::{For, Router};
use super::settings::SessionMode;
use crate::clock::millis;
use crate::tools::raw;

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
            (Self::Process(..) | Self::Subject(..), Some(_)) => raw(&json!({
                "elicitation": {"form": {}, "url": {}},
                "sampling": {"tools": {}, "context": {}},
                "roots": {"listChanged": true},
            })),
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
    used_ms: AtomicU64,
}

impl Attached {
    pub(super) fn new(connection: Connection, router: Arc<Router>, now: Duration) -> Arc<Self> {
        Arc::new(Self { connection, router, used_ms: AtomicU64::new(millis(now)) })
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.connection.closed().is_cancelled()
    }

    /// It is used now.
    pub(super) fn used(&self, now: Duration) {
        self.used_ms.store(millis(now), Ordering::Relaxed);
    }

    /// Since when nothing runs on it; `None` as long as something does.
    pub(super) fn idle_since(&self) -> Option<Duration> {
        self.router.is_idle().then(|| Duration::from_millis(self.used_ms.load(Ordering::Relaxed)))
    }

    /// How its sessions go.
    pub(super) fn lifecycle(&self) -> Lifecycle {
        self.connection.server().version.lifecycle()
    }
}
