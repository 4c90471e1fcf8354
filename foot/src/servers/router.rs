//! What a server says by itself on one connection: whom it is for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use footbridge_mcp::{Events, Fields, Raw, RpcError, Tag, declined};
use footbridge_shared::id::EntryName;
use footbridge_shared::message::{Audience, Notify};

use crate::line::Line;
use crate::tools::CallContext;

const MESSAGE: &str = "notifications/message";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const LISTS_CHANGED: [&str; 2] = ["notifications/resources/list_changed", "notifications/prompts/list_changed"];

/// For whom a connection is.
#[derive(Debug, Clone)]
pub(super) enum For {
    /// For everybody: nobody is asked, and what belongs to no call is for the log alone.
    Everybody,
    /// For a subject, or for one MCP session of theirs.
    Somebody(Audience),
}

/// Knows the calls that run on one connection.
#[derive(Debug)]
pub(super) struct Router {
    server: EntryName,
    whom: For,
    line: Line,
    /// Fired when the server's tools have changed.
    stale: Arc<tokio::sync::Notify>,
    running: Mutex<Vec<(Tag, CallContext)>>,
    next: AtomicU64,
}

impl Router {
    pub(super) fn new(server: EntryName, whom: For, line: Line, stale: Arc<tokio::sync::Notify>) -> Arc<Self> {
        Arc::new(Self { server, whom, line, stale, running: Mutex::default(), next: AtomicU64::new(1) })
    }

    /// A call begins. It ends when what this gives is dropped.
    pub(super) fn enter(self: &Arc<Self>, ctx: &CallContext) -> Entered {
        let tag = self.next.fetch_add(1, Ordering::Relaxed);
        self.running().push((tag, ctx.clone()));
        Entered { router: self.clone(), tag }
    }

    /// Whether no call runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running().is_empty()
    }

    /// Whether everybody shares the connection.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.whom, For::Everybody)
    }

    fn tagged(&self, tag: Option<Tag>) -> Option<CallContext> {
        let running = self.running();
        running.iter().find(|(running, _)| Some(*running) == tag).map(|(_, ctx)| ctx.clone())
    }

    fn running(&self) -> MutexGuard<'_, Vec<(Tag, CallContext)>> {
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
        // Without a word on which call it is because of, it is the one that was started last.
        let ctx = self.tagged(tag).or_else(|| self.running().last().map(|(_, ctx)| ctx.clone()));
        let Some(ctx) = ctx else { return declined(method) };
        let params = params.unwrap_or_else(|| Fields::new().to_raw());
        ctx.ask_client(method, params).await.unwrap_or_else(|| declined(method))
    }

    fn notification(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) {
        let params = params.unwrap_or_else(|| Fields::new().to_raw());
        if method == TOOLS_CHANGED {
            return self.stale.notify_one();
        }
        if LISTS_CHANGED.contains(&method) {
            return self.tell(None, None, method, params);
        }
        let ctx = self.tagged(tag).or_else(|| match self.running().as_slice() {
            // On a stream that names no call, what is said during the only one belongs to it.
            [(_, only)] if method == MESSAGE && !self.is_shared() => Some(only.clone()),
            _ => None,
        });
        if let Some(ctx) = ctx {
            return self.tell(Some(&ctx), None, method, params);
        }
        match &self.whom {
            For::Somebody(audience) => self.tell(None, Some(audience.clone()), method, params),
            For::Everybody => {
                tracing::debug!(server = %self.server, method, params = params.get(), "a server tells everybody");
            }
        }
    }
}

/// A call that runs.
#[derive(Debug)]
pub(super) struct Entered {
    router: Arc<Router>,
    pub(super) tag: Tag,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.router.running().retain(|(tag, _)| *tag != self.tag);
    }
}
