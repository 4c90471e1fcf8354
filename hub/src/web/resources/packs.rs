//! Packs: how they are, and listing them again.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};

use crate::api::packs::{PackError, PackList, PackView};
use crate::api::problem::Problem;
use crate::domain::principal::{Principal, Role};
use crate::domain::scope::Scope;
use crate::sources::configured;
use crate::web::body::Named;
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Lists the packs of a scope: whether they are there, what they offer, and what is wrong. Waits for none of them.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/packs", tag = "packs",
    params(("tenant" = String, Path), ("project" = String, Path)),
    responses((status = 200, body = PackList), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
) -> ApiResult<Json<PackList>> {
    Ok(Json(PackList { packs: visible(&state, &scope, &principal).await?.into_iter().map(view).collect() }))
}

/// One pack.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/packs/{name}", tag = "packs",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = PackView), (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
) -> ApiResult<Json<PackView>> {
    let pack = visible(&state, &scope, &principal).await?.into_iter().find(|pack| pack.name.as_str() == name);
    pack.map(view).map(Json).ok_or_else(|| ApiError::not_found("pack"))
}

/// Lists a pack again now, and takes its tools for looked at: none counts as changed any more. Answers when that is done, or
/// after a few seconds.
#[utoipa::path(post, path = "/v1/{tenant}/{project}/packs/{name}/refresh", tag = "packs",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = PackView), (status = "4XX", body = Problem)))]
pub(super) async fn refresh(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
) -> ApiResult<Json<PackView>> {
    let pack = state.configured.refresh_pack(&scope, &principal.subject, &name).await.map_err(no_call)?;
    pack.map(view).map(Json).ok_or_else(|| ApiError::not_found("pack"))
}

/// Whoever may read documents sees every pack, others those that they may use.
async fn visible(state: &AppState, scope: &Scope, principal: &Principal) -> ApiResult<Vec<configured::PackView>> {
    let all = principal.has(Role::Viewer) || principal.has(Role::Configure);
    state.configured.packs(scope, &principal.subject, all).await.map_err(no_call)
}

fn no_call(failure: crate::domain::failure::Failure) -> ApiError {
    let mut error = ApiError::from(failure);
    // Looking at a pack is no call.
    error.0.outcome = None;
    error
}

fn view(pack: configured::PackView) -> PackView {
    let status = pack.status;
    PackView {
        name: pack.name.to_string(),
        type_id: pack.type_id.to_owned(),
        layer: pack.layer.to_string(),
        state: status.state.as_str().to_owned(),
        place: status.place,
        server: status.server,
        protocol: status.protocol,
        tools: pack.tools,
        left_out: status.left_out,
        odd: status.odd,
        changed: status.changed,
        resources: status.resources,
        resource_templates: status.resource_templates,
        prompts: status.prompts,
        last_error: status.error.map(|error| PackError { code: error.code, message: error.message, at: error.at }),
        note: status.note,
        listed_at: status.listed_at,
        next_try_at: status.next_try_at,
    }
}
