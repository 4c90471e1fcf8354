//! Protected-resource metadata (RFC 9728): what a client that has no token can learn.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::get;
use axum::{Json, Router};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{ProjectName, TenantName};
use serde_json::{Value, json};

use crate::web::error::{ApiError, ApiResult};
use crate::web::host::base_url;
use crate::web::state::AppState;

/// Where it lies for the hub.
pub(in crate::web) const OF_HUB: &str = "/.well-known/oauth-protected-resource";
/// Where it lies for one MCP endpoint.
pub(in crate::web) const OF_ENDPOINT: &str = "/.well-known/oauth-protected-resource/mcp/{tenant}/{project}";

pub(super) fn routes() -> Router<Arc<AppState>> {
    Router::new().route(OF_HUB, get(of_hub)).route(OF_ENDPOINT, get(of_endpoint))
}

async fn of_hub(State(state): State<Arc<AppState>>, headers: HeaderMap) -> Json<Value> {
    Json(described(&base_url(&state.hosts, &headers)))
}

/// The same for every tenant and project, whether or not it is there: who asks has no token. What can be no name has none.
async fn of_endpoint(
    State(state): State<Arc<AppState>>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
) -> ApiResult<Json<Value>> {
    let Path((tenant, project)) =
        path.map_err(|_| ApiError::new(ErrorCode::BadRequest, "the path is not UTF-8 text"))?;
    let (tenant, project) = named(&tenant, &project)?;
    let base = base_url(&state.hosts, &headers);
    Ok(Json(described(&format!("{base}/mcp/{tenant}/{project}"))))
}

fn named(tenant: &str, project: &str) -> ApiResult<(TenantName, ProjectName)> {
    Ok((TenantName::parse(tenant)?, ProjectName::parse(project)?))
}

fn described(resource: &str) -> Value {
    json!({"resource": resource, "resource_name": "Footbridge", "bearer_methods_supported": ["header"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_no_name_is_in_no_document() {
        assert!(named("acme", "web").is_ok());
        for hostile in
            ["", "..", "a/../b", "a\"b", "a\r\nb", "<script>", "a?b", "a#b", "é", "\u{202e}a", &"x".repeat(1_000)]
        {
            assert!(named(hostile, "web").is_err() && named("acme", hostile).is_err(), "{hostile}");
        }
    }
}
