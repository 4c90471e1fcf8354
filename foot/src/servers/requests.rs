//! Requests of the hub to local servers: anything of MCP but calls of tools, which go through permissions and journal as all
//! calls do.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use footbridge_mcp::{Raw, RequestError, RpcError, codes};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::CallId;
use footbridge_shared::message::{Request, Response};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Servers;
use super::exchange::{Exchange, Trouble};
use super::server::{NoConnection, Server};
use crate::failure::shown;
use crate::permissions::{Action, Mode, ServerAction};
use crate::tools::CallContext;
use crate::tools::context::Activity;
use crate::tools::raw;

/// Requests that run at once.
const MAX_REQUESTS: usize = 256;
/// What only looks at lists, or at what could be said: nobody is asked about each of them.
const LOOKS: [&str; 9] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "completion/complete",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "ping",
];
/// What the foot does itself, and calls of tools.
const OWN: [&str; 4] = ["tools/call", "initialize", "server/discover", "subscriptions/listen"];

/// The requests that run.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<HashMap<CallId, CancellationToken>>);

impl Requests {
    /// `None`: it runs already.
    fn begin(&self, call: &CallId) -> Option<Result<CancellationToken, ()>> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.contains_key(call) {
            return None;
        }
        if running.len() >= MAX_REQUESTS {
            return Some(Err(()));
        }
        let cancel = CancellationToken::new();
        running.insert(call.clone(), cancel.clone());
        Some(Ok(cancel))
    }

    fn end(&self, call: &CallId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(call);
    }

    /// Stops one, if it runs.
    pub(super) fn cancel(&self, call: &CallId) {
        if let Some(cancel) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(call) {
            cancel.cancel();
        }
    }

    /// Stops all.
    pub(super) fn cancel_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(CancellationToken::cancel);
    }
}

impl Servers {
    /// Serves a request that may take `left`, without waiting for it. It is answered over the line. `by_owner`: the owner of
    /// the foot asks.
    pub(crate) fn request(&self, request: Request, left: Duration, by_owner: bool) {
        let Some(server) = self.server(&request.server) else {
            return self.answer(request.call, Err(unknown_server(&request.server)));
        };
        if left.is_zero() {
            let late = error(ErrorCode::DeadlineExceeded, "the request arrived after its deadline");
            return self.answer(request.call, Err(late));
        }
        let cancel = match self.requests.begin(&request.call) {
            // It was sent again, and will be answered once.
            None => return,
            Some(Err(())) => {
                let busy = error(ErrorCode::FootBusy, "this foot serves as many requests as it may");
                return self.answer(request.call, Err(busy));
            }
            Some(Ok(cancel)) => cancel,
        };
        let (requests, board) = (self.requests.clone(), self.board.clone());
        self.tasks.run(async move {
            let Request { call, method, params, caller, .. } = request;
            // How far it is, is not told of a request.
            let (signs, _) = mpsc::channel(1);
            let deadline = board.clock.boot().saturating_add(left);
            let activity = Activity::new(board.clock.clone());
            let ctx = CallContext::new(call.clone(), caller, deadline, cancel.clone(), activity, signs);
            let ctx = ctx.over(board.line.clone(), None, by_owner);
            let permissions = board.permissions();
            let served = async {
                admit(&server, &permissions, &ctx, &method, &params).await?;
                let exchange =
                    Exchange { server: &server, ctx: &ctx, method: &method, param_headers: None, progress: false };
                exchange.run(params).await.map_err(|trouble| rpc_error(&server, trouble))
            };
            let outcome = tokio::select! {
                outcome = served => outcome,
                () = tokio::time::sleep(left) => {
                    Err(error(ErrorCode::DeadlineExceeded, "the request reached its deadline"))
                }
            };
            requests.end(&call);
            board.line.respond(response(call, outcome));
        });
    }

    /// The connection broke: no request outlives it.
    pub(crate) fn disconnected(&self) {
        self.board.line.disconnected();
        self.requests.cancel_all();
    }

    /// Stops a request, if it runs: it answers so.
    pub(crate) fn cancel(&self, call: &CallId) {
        self.requests.cancel(call);
    }

    /// Refuses a request of somebody for whom this foot does not work: for them there is no server.
    pub(crate) fn refuse(&self, request: Request) {
        self.answer(request.call, Err(unknown_server(&request.server)));
    }

    fn answer(&self, call: CallId, outcome: Result<Raw, RpcError>) {
        self.board.line.respond(response(call, outcome));
    }
}

fn response(call: CallId, outcome: Result<Raw, RpcError>) -> Response {
    match outcome {
        Ok(result) => Response { call, result: Some(result), error: None },
        Err(error) => Response { call, result: None, error: Some(raw(&error)) },
    }
}

/// Lets a request go on, or says why not.
async fn admit(
    server: &Server,
    permissions: &crate::permissions::Permissions,
    ctx: &CallContext,
    method: &str,
    params: &Raw,
) -> Result<(), RpcError> {
    if OWN.contains(&method) {
        return Err(error(ErrorCode::NotSupported, format!("`{method}` is nothing that is passed on")));
    }
    let looks = LOOKS.contains(&method);
    let permission = match server.settings().permission {
        Mode::Ask if looks => Mode::Allow,
        permission => permission,
    };
    let action = Action::Server(ServerAction {
        server: server.name.to_string(),
        what: method.to_owned(),
        arguments: params.get().to_owned(),
        permission,
    });
    let tool = format!("{}__{method}", server.name);
    let admitted = if looks && !permissions.forbids(&tool, &action) {
        Ok(())
    } else {
        permissions.admit(&tool, &action, ctx).await
    };
    admitted.map_err(|failure| error(failure.code, failure.message))
}

/// An error of the foot's own, with its stable code.
fn error(code: ErrorCode, message: impl Into<String>) -> RpcError {
    RpcError { data: Some(raw(&json!({ "code": code }))), ..RpcError::new(codes::INTERNAL_ERROR, message) }
}

fn unknown_server(name: &str) -> RpcError {
    error(ErrorCode::NotFound, format!("this foot has no MCP server `{}`", shown(name)))
}

fn rpc_error(server: &Server, trouble: Trouble) -> RpcError {
    match trouble {
        Trouble::Request(RequestError::Rpc(error)) => error,
        Trouble::Request(RequestError::Cancelled) => error(ErrorCode::Cancelled, "the request was stopped"),
        Trouble::Request(RequestError::BadAnswer(why)) => error(ErrorCode::BadAnswer, why),
        Trouble::NoConnection(NoConnection::Unreached | NoConnection::Full) | Trouble::Request(_) => {
            let failure = super::tool::failure(&server.name, trouble);
            error(failure.code, failure.message)
        }
    }
}
