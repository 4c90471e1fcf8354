//! Protected-resource metadata (RFC 9728): what a client that has no token can learn.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

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

/// The same for every tenant and project, whether or not it is there: who asks has no token.
async fn of_endpoint(
    State(state): State<Arc<AppState>>,
    Path((tenant, project)): Path<(String, String)>,
    headers: HeaderMap,
) -> Json<Value> {
    let plain =
        |name: &str| name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect::<String>();
    let base = base_url(&state.hosts, &headers);
    Json(described(&format!("{base}/mcp/{}/{}", plain(&tenant), plain(&project))))
}

fn described(resource: &str) -> Value {
    json!({"resource": resource, "resource_name": "Footbridge", "bearer_methods_supported": ["header"]})
}
