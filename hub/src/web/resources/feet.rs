//! Feet: those that work for the token's subject; for an admin also that there are others.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{FootName, Subject};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::feet::{FootList, FootServerView, FootView};
use crate::api::problem::Problem;
use crate::domain::feet::{FootDirectory as _, FootServerSummary, FootState, FootSummary};
use crate::domain::principal::{Principal, Role};
use crate::domain::scope::Scope;
use crate::web::body::{Named, Params};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Lists feet: the subject's own first, then by name. An admin also sees name, owner and state of everybody else's.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/feet", tag = "feet",
    params(("tenant" = String, Path), ("project" = String, Path)),
    responses((status = 200, body = FootList), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
) -> Json<FootList> {
    Json(FootList { feet: visible(&state, &scope, &principal).into_iter().map(view).collect() })
}

/// One foot, by the name that the asking subject sees.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/feet/{name}", tag = "feet",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = FootView), (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
) -> ApiResult<Json<FootView>> {
    let foot = visible(&state, &scope, &principal).into_iter().find(|foot| foot.name.as_str() == name);
    foot.map(view).map(Json).ok_or_else(|| ApiError::not_found("foot"))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Whose {
    /// The owner, for an admin; else the asking subject.
    owner: Option<String>,
}

/// Releases a name: a foot that is connected under it is dropped, and another one may take the name.
#[utoipa::path(delete, path = "/v1/{tenant}/{project}/feet/{name}", tag = "feet",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path), Whose),
    responses((status = 204, description = "Released"), (status = "4XX", body = Problem)))]
pub(super) async fn release(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    Params(Whose { owner }): Params<Whose>,
) -> ApiResult<StatusCode> {
    let owner = match owner {
        None => principal.subject.clone(),
        Some(owner) => Subject::parse(&owner)?,
    };
    if owner != principal.subject && !principal.has(Role::Admin) {
        return Err(ApiError::new(ErrorCode::Forbidden, "this is another subject's foot")
            .hint("its owner or an admin can release it"));
    }
    // What is no name is bound to no foot.
    let name = FootName::parse(&name).map_err(|_| ApiError::not_found("foot"))?;
    state.feet.release(&scope, &owner, &name).await.map_err(|failure| {
        let mut error = ApiError::from(failure);
        // Releasing a name is no call.
        error.0.outcome = None;
        error
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a principal may see: the feet that work for its subject whole, and as an admin the rest by name.
fn visible(state: &AppState, scope: &Scope, principal: &Principal) -> Vec<FootSummary> {
    let mut feet = state.feet.feet(scope, &principal.subject);
    if principal.has(Role::Admin) {
        for foreign in state.feet.list_all(scope) {
            let known = feet.iter().any(|foot| foot.owner == foreign.owner && foot.bound_name == foreign.bound_name);
            if foreign.owner != principal.subject && !known {
                feet.push(foreign);
            }
        }
    }
    feet
}

fn view(foot: FootSummary) -> FootView {
    let state = match foot.state {
        FootState::Connected => "connected",
        FootState::Away => "away",
        FootState::Offline => "offline",
    };
    let own = foot.own;
    let (name, owner, details) = (foot.name.to_string(), foot.owner.to_string(), foot.details);
    let mut view = FootView {
        name,
        owner,
        state: state.to_owned(),
        own,
        share: None,
        hostname: None,
        platform: None,
        version: None,
        cwd: None,
        tools: None,
        servers: Vec::new(),
        connected_at: None,
    };
    if let Some(details) = details {
        view.share = Some(details.share);
        view.hostname = Some(details.hostname);
        view.platform = Some(format!("{}/{}", details.os, details.arch));
        view.version = Some(details.version);
        view.cwd = details.cwd;
        view.tools = Some(details.tools);
        let server =
            |server: FootServerSummary| FootServerView { name: server.name.to_string(), protocol: server.protocol };
        view.servers = details.servers.into_iter().map(server).collect();
        view.connected_at = details.connected_at;
    }
    view
}
