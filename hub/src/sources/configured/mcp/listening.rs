//! Word of changes from servers without sessions: one request that stays open.

use std::sync::Arc;

use footbridge_mcp::{Fields, Lifecycle, RequestError, RequestOptions, ServerDescription};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::server::{Server, until};
use super::session::Live;

/// The request.
const LISTEN: &str = "subscriptions/listen";
/// A capability with lists that may change → what to ask for.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

impl Server {
    /// Hears of changes on a connection as long as it is open, once.
    pub(super) fn listen(self: &Arc<Self>, live: &Arc<Live>) {
        let server = live.connection.server();
        if server.version.lifecycle() != Lifecycle::Stateless || !live.begin_listening() {
            return;
        }
        let Some(params) = wanted(&server) else { return };
        let (me, connection) = (self.clone(), live.connection.clone());
        self.spawner().spawn("changes of an MCP server", async move {
            let closed = connection.closed().clone();
            let listening = async {
                let mut backoff = Backoff::default();
                loop {
                    let begun = Instant::now();
                    let heard = connection.request(LISTEN, Some(params.to_raw()), RequestOptions::default()).await;
                    // It will not be heard of: `footbridge packs --refresh` is left.
                    if matches!(heard, Err(RequestError::Rpc(_) | RequestError::Unauthorized(_))) {
                        return;
                    }
                    backoff.ended_after(begun.elapsed());
                    until(Some(backoff.not_before().unwrap_or_else(Instant::now))).await;
                    // What changed in between was told to nobody.
                    me.list_changed();
                }
            };
            tokio::select! {
                () = closed.cancelled() => {}
                () = me.ended() => {}
                () = listening => {}
            }
        });
    }
}

/// What to ask for; `None`: nothing of this server changes.
fn wanted(server: &ServerDescription) -> Option<Fields> {
    let capabilities = Fields::of(&server.capabilities)?;
    let mut lists = Fields::new();
    for (capability, list) in LISTS {
        let changes = capabilities.read::<Fields>(capability).and_then(|offered| offered.read("listChanged"));
        if changes == Some(true) {
            lists.set_value(list, &true);
        }
    }
    let mut params = Fields::new();
    params.set("notifications", lists.into_raw_unless_empty()?);
    Some(params)
}
