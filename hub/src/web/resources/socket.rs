//! `/ws/foot`: where feet come in.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::http::header::ORIGIN;
use axum::response::Response;
use footbridge_shared::ErrorCode;

use crate::domain::principal::Principal;
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;
use crate::web::ws;

/// Upgrades an authenticated foot. A browser always sends `Origin`, and no page has any business here.
pub(in crate::web) async fn foot(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    if headers.contains_key(ORIGIN) {
        return Err(ApiError::new(ErrorCode::Forbidden, "web pages may not open this socket"));
    }
    let upgrade = upgrade.map_err(|error| {
        ApiError::new(ErrorCode::BadRequest, error.body_text()).hint("this path speaks WebSocket alone")
    })?;
    Ok(ws::upgrade(upgrade, state.feet.clone(), principal))
}
