//! `/mcp/{tenant}/{project}`: an MCP server over streamable HTTP. It offers the tools of the scope, and all that attached
//! MCP servers offer beside tools.
//!
//! Messages are relayed as they came: a request is taken apart where it is routed, its answer is put together around the
//! text of its result. Versions with sessions are also served without one: then every request stands alone, and its client
//! cannot be asked anything.

mod batch;
mod client;
mod completion;
mod documents;
mod headers;
mod hello;
mod level;
mod listen;
mod message;
pub(super) mod metadata;
mod methods;
mod mode;
mod pack;
mod page;
mod peer;
mod post;
mod prompts;
mod resources;
mod result;
mod serve;
mod session;
mod session_routes;
mod sessions;
mod sse;
mod stateless;
mod stream;
mod subscribe;
mod tickets;
mod tools;
mod work;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderValue;
use axum::response::Response;
use axum::routing::get;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::Subject;
use serde::Deserialize;

use self::peer::View;
use self::session::Session;
use self::sessions::Sessions;
use self::tickets::Tickets;
use super::MAX_CALL_BODY_BYTES;
use super::error::{ApiError, ApiResult};
use super::state::AppState;
use crate::domain::changes::SurfaceChanges;
use crate::domain::failure::Failure;
use crate::domain::mcp::{McpServer, McpServers};
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::lifecycle::Lifecycle;
use crate::yaml::did_you_mean;

/// What its paths begin with.
pub(super) const ROOT: &str = "/mcp/";
/// Where it is mounted.
pub(super) const PATH: &str = "/mcp/{tenant}/{project}";
/// How often sessions and waiting requests are looked at.
const SWEEP: Duration = Duration::from_secs(30);

/// Servers that are named to a client which asks for one that is not there.
const MAX_NAMED_PACKS: usize = 20;

/// What the hub keeps for MCP clients. Cheap to clone.
#[derive(Clone)]
pub struct Mcp(Arc<Inner>);

struct Inner {
    sessions: Sessions,
    tickets: Tickets,
    servers: Vec<Arc<dyn McpServers>>,
    changes: SurfaceChanges,
}

impl Mcp {
    /// Over those who know attached servers, and with word of what changes.
    pub fn new(servers: Vec<Arc<dyn McpServers>>, changes: SurfaceChanges, lifecycle: &Lifecycle) -> Self {
        let inner = Inner { sessions: Sessions::default(), tickets: Tickets::default(), servers, changes };
        let mcp = Self(Arc::new(inner));
        lifecycle.spawn("mcp sessions", mcp.clone().sweep(lifecycle.clone()));
        mcp
    }

    async fn sweep(self, lifecycle: Lifecycle) {
        let mut closed = false;
        loop {
            tokio::select! {
                () = lifecycle.hard().cancelled() => break,
                // What waits for its client waits in vain from here on.
                () = lifecycle.soft().cancelled(), if !closed => {
                    closed = true;
                    self.tickets().close();
                }
                () = tokio::time::sleep(SWEEP) => {
                    self.sessions().sweep();
                    self.tickets().sweep();
                }
            }
        }
        // Sessions end with the process: what runs in them still says that it was cut off.
        self.tickets().close();
    }

    fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    fn tickets(&self) -> &Tickets {
        &self.0.tickets
    }

    fn changes(&self) -> &SurfaceChanges {
        &self.0.changes
    }

    /// The attached servers that a subject may use, by name. Of two with one name the first counts.
    async fn servers(&self, scope: &Scope, subject: &Subject) -> Result<Vec<Arc<dyn McpServer>>, Failure> {
        let mut all: Vec<Arc<dyn McpServer>> = Vec::new();
        for servers in &self.0.servers {
            all.extend(servers.servers(scope, subject).await?);
        }
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all.dedup_by(|later, earlier| later.name() == earlier.name());
        Ok(all)
    }
}

/// The routes.
pub(super) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .route(PATH, get(session_routes::get).post(post::post).delete(session_routes::delete))
        .layer(DefaultBodyLimit::max(MAX_CALL_BODY_BYTES))
        .merge(metadata::routes())
}

/// What of the scope the client wants to see.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    pack: Option<String>,
    recipe: Option<String>,
    process: Option<String>,
}

impl Query {
    /// What is seen, and the server that is seen alone.
    async fn view(
        &self,
        state: &AppState,
        scope: &Scope,
        principal: &Principal,
    ) -> ApiResult<(View, Option<Arc<dyn McpServer>>)> {
        if self.recipe.is_some() || self.process.is_some() {
            return Err(ApiError::new(ErrorCode::NotSupported, "`recipe` and `process` are not supported yet")
                .hint("without them the client sees all tools of the project; `pack` shows one MCP server alone"));
        }
        let Some(pack) = &self.pack else { return Ok((View::All, None)) };
        let servers = state.mcp.servers(scope, &principal.subject).await?;
        match servers.iter().find(|server| server.name().as_str() == pack) {
            Some(server) => Ok((View::Pack(server.name().clone()), Some(server.clone()))),
            None => Err(unknown_pack(pack, servers.iter().map(|server| server.name().as_str()))),
        }
    }
}

/// There is no such server, and these are there.
fn unknown_pack<'a>(wanted: &str, there: impl Iterator<Item = &'a str>) -> ApiError {
    let names: Vec<&str> = there.collect();
    let shown: Vec<String> = names.iter().take(MAX_NAMED_PACKS).map(|name| format!("`{name}`")).collect();
    let there = match names.len() {
        0 => "; there is none at all".to_owned(),
        count if count > MAX_NAMED_PACKS => {
            format!("; there are {}, and {} more", shown.join(", "), count - shown.len())
        }
        _ => format!("; there are: {}", shown.join(", ")),
    };
    let wanted = footbridge_shared::text::clean_and_cut(wanted, 80);
    let hint = match did_you_mean(&wanted, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            "`pack` is the name of a pack of the type `mcp_server` in this project, or of a foot's server".to_owned()
        }
    };
    ApiError::new(ErrorCode::NotFound, format!("there is no MCP server `{wanted}` here{there}")).hint(hint)
}

/// The session that a header names. One of somebody else is answered like one that is not there.
fn session_of(
    state: &AppState,
    scope: &Scope,
    principal: &Principal,
    view: &View,
    id: &HeaderValue,
) -> ApiResult<Arc<Session>> {
    let found = id.to_str().ok().and_then(|id| state.mcp.sessions().get(id, scope, &principal.subject));
    found.filter(|session| session.view == *view).ok_or_else(|| {
        ApiError::not_found("MCP session").hint("it has ended, or was never here; open another one with `initialize`")
    })
}

/// The client reads nothing that could be answered.
fn not_acceptable(wanted: &str) -> Response {
    let mut error = ApiError::new(ErrorCode::BadRequest, format!("the answer is of the type {wanted}"))
        .hint(format!("send `Accept: {wanted}`"));
    error.0.status = 406;
    axum::response::IntoResponse::into_response(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_a_server_that_is_not_there_is_told_which_are() {
        let problem = unknown_pack("evry", ["crm", "every"].into_iter()).0;
        assert_eq!(problem.detail, "there is no MCP server `evry` here; there are: `crm`, `every`");
        assert_eq!(problem.hint.as_deref(), Some("did you mean `every`?"));
        let many: Vec<String> = (0..1_000).map(|n| format!("server-{n}")).collect();
        let problem = unknown_pack(&"x".repeat(10_000), many.iter().map(String::as_str)).0;
        assert!(problem.detail.ends_with(", and 980 more") && problem.detail.len() < 1_000, "{}", problem.detail);
        assert!(unknown_pack("x", std::iter::empty()).0.detail.ends_with("none at all"));
    }
}
