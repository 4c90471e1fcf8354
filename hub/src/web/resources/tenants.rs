//! Tenants and their projects.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json as JsonReply};
use footbridge_shared::id::{ProjectName, TenantName};

use crate::access::TenantInfo;
use crate::api::problem::Problem;
use crate::api::tenants::{PutTenant, TenantList, TenantView};
use crate::documents::WriteCondition;
use crate::domain::principal::Principal;
use crate::store::Precondition;
use crate::web::body::{Json, Named};
use crate::web::condition;
use crate::web::error::ApiResult;
use crate::web::state::AppState;

/// How the ETag of a tenant starts; its version follows.
const ETAG_PREFIX: &str = "tenant-record-";

/// Lists the tenants within the token's reach.
#[utoipa::path(get, path = "/v1/tenants", tag = "administration",
    responses((status = 200, body = TenantList), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
) -> JsonReply<TenantList> {
    JsonReply(TenantList { tenants: state.tenants.list(&principal.reach).into_iter().map(view).collect() })
}

/// One tenant.
#[utoipa::path(get, path = "/v1/tenants/{name}", tag = "administration", params(("name" = String, Path)),
    responses((status = 200, body = TenantView), (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
) -> ApiResult<Response> {
    let name = TenantName::parse(&name)?;
    Ok(stamped(state.tenants.get(&name, &principal.reach)?))
}

/// Gives a tenant these projects and no others, and makes it if it is not there.
#[utoipa::path(put, path = "/v1/tenants/{name}", tag = "administration", params(("name" = String, Path)),
    request_body = PutTenant,
    responses((status = 200, body = TenantView), (status = "4XX", body = Problem)))]
pub(super) async fn put(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    headers: HeaderMap,
    Json(body): Json<PutTenant>,
) -> ApiResult<Response> {
    let name = TenantName::parse(&name)?;
    let projects = body.projects.iter().map(|project| ProjectName::parse(project)).collect::<Result<_, _>>()?;
    let tenant = state.tenants.put(&name, projects, precondition(&headers)?, &principal).await?;
    Ok(stamped(tenant))
}

/// Takes a tenant away. Its documents and tokens stay, and reach nothing.
#[utoipa::path(delete, path = "/v1/tenants/{name}", tag = "administration", params(("name" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = "4XX", body = Problem)))]
pub(super) async fn delete(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    state.tenants.delete(&TenantName::parse(&name)?, precondition(&headers)?, &principal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The condition of a write, on the version of the tenant's record.
fn precondition(headers: &HeaderMap) -> ApiResult<Precondition> {
    match condition::of_write(headers)? {
        WriteCondition::Any | WriteCondition::Present => Ok(Precondition::Any),
        WriteCondition::Absent => Ok(Precondition::Absent),
        WriteCondition::Matches(etags) => {
            let version = etags.iter().find_map(|etag| etag.strip_prefix(ETAG_PREFIX)?.parse().ok());
            // What is none of our ETags fits no version.
            Ok(Precondition::Version(version.unwrap_or(0)))
        }
    }
}

fn stamped(info: TenantInfo) -> Response {
    let etag = info.version.and_then(|version| condition::etag_header(&format!("{ETAG_PREFIX}{version}")));
    let mut response = JsonReply(view(info)).into_response();
    if let Some(etag) = etag {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

fn view(info: TenantInfo) -> TenantView {
    TenantView { name: info.name.to_string(), projects: info.projects.iter().map(ToString::to_string).collect() }
}
