//! What servers say by themselves: to whom it goes.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use footbridge_mcp::{Events, Fields, Raw, RpcError, Tag, changes, codes};
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::server::Server;
use crate::domain::call::CallContext;
use crate::domain::mcp::{McpAudience, McpNote, declined};

/// The calls that run on one connection.
#[derive(Default)]
pub(super) struct RunningCalls {
    calls: Mutex<BTreeMap<Tag, Meant>>,
    next: AtomicU64,
}

/// A call that runs; dropped, it does not any more.
pub(super) struct Running<'a> {
    calls: &'a RunningCalls,
    pub(super) tag: Tag,
    _over: DropGuard,
}

/// The call that a server speaks of.
#[derive(Clone)]
struct Meant {
    ctx: CallContext,
    /// Fires when it runs no more: what was asked because of it is then withdrawn.
    over: CancellationToken,
}

impl RunningCalls {
    /// Begins a call.
    pub(super) fn begin(&self, ctx: &CallContext) -> Running<'_> {
        let (tag, over) = (self.next.fetch_add(1, Ordering::Relaxed), CancellationToken::new());
        self.calls.lock().insert(tag, Meant { ctx: ctx.clone(), over: over.clone() });
        Running { calls: self, tag, _over: over.drop_guard() }
    }

    /// Whether none runs.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.lock().is_empty()
    }

    /// The call of that tag; without a tag the one that was begun last.
    fn meant(&self, tag: Option<Tag>) -> Option<Meant> {
        let calls = self.calls.lock();
        match tag {
            Some(tag) => calls.get(&tag).cloned(),
            None => calls.last_key_value().map(|(_, call)| call.clone()),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.calls.calls.lock().remove(&self.tag);
    }
}

/// Hears one connection.
pub(super) struct Hearing {
    pub(super) server: Weak<Server>,
    /// For whom the connection is; `None`: for everybody, so that nobody in particular is meant.
    pub(super) audience: Option<McpAudience>,
    pub(super) calls: std::sync::Arc<RunningCalls>,
}

#[async_trait]
impl Events for Hearing {
    async fn request(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) -> Result<Raw, RpcError> {
        // A connection that everybody shares says in its capabilities that nobody can be asked.
        let call = if self.audience.is_some() { self.calls.meant(tag) } else { None };
        let Some(Meant { ctx, over }) = call else { return declined(method) };
        let Some(client) = &ctx.client else { return declined(method) };
        let params = params.unwrap_or_else(|| Fields::new().to_raw());
        tokio::select! {
            // Nobody is asked for a call that is over.
            biased;
            () = ctx.cancel.cancelled() => Err(RpcError::new(codes::INTERNAL_ERROR, "the call was cancelled")),
            () = over.cancelled() => Err(RpcError::new(codes::INTERNAL_ERROR, "the call that this was asked for is over")),
            answer = ctx.clock.awake_during(client.request(method, params)) => answer,
        }
    }

    fn notification(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) {
        let Some(server) = self.server.upgrade() else { return };
        let params = params.unwrap_or_else(|| Fields::new().to_raw());
        if method == changes::ACKNOWLEDGED {
            // Of resources alone it says nothing new of lists.
            let accepted = Fields::of(&params).and_then(|params| Fields::of(params.get("notifications")?));
            let of_resources = |accepted: &Fields| accepted.iter().all(|(name, _)| name == "resourceSubscriptions");
            if !accepted.as_ref().is_some_and(|accepted| !accepted.is_empty() && of_resources(accepted)) {
                server.list_changed();
            }
            return;
        }
        if changes::is_of_a_list(method) {
            server.list_changed();
            // What changed may be what this connection alone is shown.
            if let Some(audience) = self.audience.clone() {
                server.tell(McpNote::Told { audience, method: method.to_owned(), params });
            }
            return;
        }
        if method == changes::RESOURCE {
            // Told to those who follow it, whatever call it came along with. Which resources changed is nobody's secret, and
            // whoever did not ask is not told.
            let audience = self.audience.clone().unwrap_or(McpAudience::Everybody);
            return server.tell(McpNote::Told { audience, method: method.to_owned(), params });
        }
        // A message for the log is of the call that runs, also where the transport does not say so. Of calls of different
        // people only the transport tells them apart.
        let belongs = tag.is_some() || (method == "notifications/message" && self.audience.is_some());
        let call = if belongs { self.calls.meant(tag) } else { None };
        match (call.and_then(|call| call.ctx.client), &self.audience) {
            (Some(client), _) => client.notify(method, params),
            (None, Some(audience)) => {
                server.tell(McpNote::Told { audience: audience.clone(), method: method.to_owned(), params })
            }
            (None, None) => server.log(method, &params),
        }
    }
}
