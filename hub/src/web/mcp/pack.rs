//! One attached server, as if it were connected directly: what it is asked goes to it as it came.

use std::sync::Arc;

use footbridge_mcp::{Fields, Raw, RpcError, codes};
use footbridge_shared::id::EntryName;

use super::client::Client;
use super::methods::ask;
use super::peer::{Peer, rpc_error, too_much};

/// Passes a request on.
pub(super) async fn relayed(
    peer: &Arc<Peer>,
    client: &Arc<Client>,
    name: &EntryName,
    method: &str,
    params: Fields,
) -> Result<Raw, RpcError> {
    let server = peer.server(name).await?;
    let uri = match method {
        "resources/subscribe" | "resources/unsubscribe" => params.read::<String>("uri"),
        _ => None,
    };
    let Some(uri) = uri else { return ask(peer, client, &server, method, params).await };
    let Some(session) = &peer.session else {
        return Err(RpcError::new(codes::INVALID_REQUEST, "without a session nothing can be followed"));
    };
    if method == "resources/unsubscribe" {
        session.unsubscribe(name.as_str(), &uri);
        return ask(peer, client, &server, method, params).await;
    }
    if !session.subscribe(name.as_str(), &uri, &uri) {
        return Err(rpc_error(&too_much(
            "the session follows too many resources",
            "end others with `resources/unsubscribe`",
        )));
    }
    let answer = ask(peer, client, &server, method, params).await;
    if answer.is_err() {
        session.unsubscribe(name.as_str(), &uri);
    }
    answer
}
