//! What a server says by itself on one connection: whom it is for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use footbridge_mcp::{Events, Fields, Raw, RpcError, Tag, changes, codes, declined};
use footbridge_shared::id::EntryName;
use footbridge_shared::message::{Audience, Notify};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::clock::{SharedClock, millis};
use crate::line::Line;
use crate::tools::CallContext;

const MESSAGE: &str = "notifications/message";

/// For whom a connection is.
#[derive(Debug, Clone)]
pub(super) enum For {
    /// For everybody: nobody is asked, and what belongs to no call is for the log alone, but for changes.
    Everybody,
    /// For a subject, or for one MCP session of theirs.
    Somebody(Audience),
}

/// A call that runs.
#[derive(Debug, Clone)]
struct Running {
    tag: Tag,
    ctx: CallContext,
    /// Fires when it is over: what was asked because of it is then withdrawn.
    over: CancellationToken,
}

/// Knows the calls that run on one connection.
#[derive(Debug)]
pub(super) struct Router {
    server: EntryName,
    whom: For,
    line: Line,
    /// Fired when the server's tools have changed.
    stale: Arc<tokio::sync::Notify>,
    clock: SharedClock,
    running: Mutex<Vec<Running>>,
    /// When something last began or ended.
    used_ms: AtomicU64,
    next: AtomicU64,
}

impl Router {
    pub(super) fn new(
        server: EntryName,
        whom: For,
        line: Line,
        stale: Arc<tokio::sync::Notify>,
        clock: SharedClock,
    ) -> Arc<Self> {
        let (used_ms, next) = (AtomicU64::new(millis(clock.boot())), AtomicU64::new(1));
        Arc::new(Self { server, whom, line, stale, clock, running: Mutex::default(), used_ms, next })
    }

    /// A call begins. It ends when what this gives is dropped.
    pub(super) fn enter(self: &Arc<Self>, ctx: &CallContext) -> Entered {
        let tag = self.next.fetch_add(1, Ordering::Relaxed);
        let over = CancellationToken::new();
        self.running().push(Running { tag, ctx: ctx.clone(), over: over.clone() });
        Entered { router: self.clone(), tag, _over: over.drop_guard() }
    }

    /// It is used now.
    pub(super) fn used(&self) {
        self.used_ms.store(millis(self.clock.boot()), Ordering::Relaxed);
    }

    /// Since when no call runs; `None` as long as one does.
    pub(super) fn idle_since(&self) -> Option<Duration> {
        self.running().is_empty().then(|| Duration::from_millis(self.used_ms.load(Ordering::Relaxed)))
    }

    /// Whether everybody shares the connection.
    pub(super) fn is_shared(&self) -> bool {
        self.audience().is_none()
    }

    fn audience(&self) -> Option<&Audience> {
        match &self.whom {
            For::Everybody => None,
            For::Somebody(audience) => Some(audience),
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        // Nothing panics while it holds the lock.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, call: Option<&CallContext>, audience: Option<Audience>, method: &str, params: Raw) {
        let call = call.map(|ctx| ctx.call.clone());
        self.line.tell(Notify { call, audience, server: self.server.to_string(), method: method.to_owned(), params });
    }
}

#[async_trait]
impl Events for Router {
    async fn request(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) -> Result<Raw, RpcError> {
        if self.is_shared() {
            return declined(method);
        }
        let running = match tag {
            // A call that is over asks nobody: whoever made another one does not know of it.
            Some(tag) => self.running().iter().find(|running| running.tag == tag).cloned(),
            // Without a word on which call it is because of, it is the one that was started last.
            None => self.running().last().cloned(),
        };
        let Some(Running { ctx, over, .. }) = running else { return declined(method) };
        let params = params.unwrap_or_else(|| Fields::new().to_raw());
        tokio::select! {
            answer = ctx.ask_client(method, params) => answer.unwrap_or_else(|| declined(method)),
            () = over.cancelled() => Err(RpcError::new(codes::INTERNAL_ERROR, "the call that this was asked for is over")),
        }
    }

    fn notification(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) {
        let params = params.unwrap_or_else(|| Fields::new().to_raw());
        if [changes::TOOLS, changes::ACKNOWLEDGED].contains(&method) {
            self.stale.notify_one();
        }
        if method == changes::ACKNOWLEDGED {
            // A matter between the server and the foot.
            return;
        }
        if changes::is_of_a_list(method) || method == changes::RESOURCE {
            // What changed may be what this connection alone is shown, and no matter of the call during which it did.
            return self.tell(None, self.audience().cloned(), method, params);
        }
        let running = match (tag, self.running().as_slice()) {
            (Some(tag), running) => running.iter().find(|running| running.tag == tag).cloned(),
            // On a stream that names no call, what is said during the only one belongs to it.
            (None, [only]) if method == MESSAGE && !self.is_shared() => Some(only.clone()),
            (None, _) => None,
        };
        if let Some(Running { ctx, .. }) = running {
            return self.tell(Some(&ctx), None, method, params);
        }
        match self.audience() {
            Some(audience) => self.tell(None, Some(audience.clone()), method, params),
            None => {
                tracing::debug!(server = %self.server, method, params = params.get(), "a server says");
            }
        }
    }
}

/// A call that runs.
#[derive(Debug)]
pub(super) struct Entered {
    router: Arc<Router>,
    pub(super) tag: Tag,
    _over: DropGuard,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // First: whoever finds that it does not run has to find when it ended.
        self.router.used();
        self.router.running().retain(|running| running.tag != self.tag);
    }
}
