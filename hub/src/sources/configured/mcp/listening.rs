//! Word of changes from servers without sessions: one request that stays open.

use std::sync::Arc;

use footbridge_mcp::{Lifecycle, Subscriptions};
use tokio_util::sync::CancellationToken;

use super::server::Server;
use super::session::Live;

impl Server {
    /// Hears of changes on a connection as long as it is open, once.
    pub(super) fn listen(self: &Arc<Self>, live: &Arc<Live>) {
        let server = live.connection.server();
        let wanted = Subscriptions::offered(&server.capabilities);
        if server.version.lifecycle() != Lifecycle::Stateless || wanted.is_empty() || !live.begin_listening() {
            return;
        }
        let (me, connection) = (self.clone(), live.connection.clone());
        self.spawner().spawn("changes of an MCP server", async move {
            let until = CancellationToken::new();
            let _until = until.clone().drop_guard();
            let closed = connection.closed().clone();
            tokio::select! {
                () = closed.cancelled() => {}
                () = me.ended() => {}
                heard = connection.listen(&wanted, until) => if let Err(error) = heard {
                    // `footbridge packs --refresh` is left.
                    tracing::debug!(pack = %me.name, %error, "an MCP server does not tell of changes");
                },
            }
        });
    }
}
