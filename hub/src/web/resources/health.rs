//! Whether the hub lives, and whether it can serve.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::api::tenants::Health;
use crate::web::state::AppState;

fn health(status: &str) -> Json<Health> {
    Json(Health { status: status.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// The process lives.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Health)))]
pub(super) async fn live() -> Json<Health> {
    health("ok")
}

/// The hub can serve: it is not going down and its store answers.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(super) async fn ready(State(state): State<Arc<AppState>>) -> (StatusCode, Json<Health>) {
    if state.lifecycle.soft().is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, health("draining"));
    }
    match state.store.records("health", "").await {
        Ok(_) => (StatusCode::OK, health("ok")),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, health("unavailable")),
    }
}
