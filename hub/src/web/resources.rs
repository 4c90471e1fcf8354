//! The resources, a file each.

mod calls;
mod documents;
mod events;
mod feet;
mod health;
mod invoke;
pub(super) mod openapi;
mod packs;
mod server_tools;
pub(super) mod socket;
mod tenants;
mod tokens;
mod tool_types;
mod tools;
mod why;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::MAX_CALL_BODY_BYTES;
use super::state::AppState;

/// All described routes.
pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::with_openapi(openapi::Description::openapi())
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(tool_types::list))
        .routes(routes!(tool_types::get))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tenants::list))
        .routes(routes!(tenants::get, tenants::put, tenants::delete))
        .routes(routes!(server_tools::list))
        .routes(routes!(server_tools::get, server_tools::put, server_tools::delete))
        .routes(routes!(documents::list))
        .routes(routes!(documents::get, documents::put, documents::delete))
        .routes(routes!(tools::list))
        .routes(routes!(tools::get))
        .routes(routes!(why::why))
        .merge(calling())
        .routes(routes!(calls::list))
        .routes(routes!(calls::get, calls::cancel))
        .routes(routes!(packs::list))
        .routes(routes!(packs::get))
        .routes(routes!(packs::refresh))
        .routes(routes!(feet::list))
        .routes(routes!(feet::get, feet::release))
}

/// Calls, whose arguments may be larger than other bodies.
fn calling() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(invoke::invoke)).layer(DefaultBodyLimit::max(MAX_CALL_BODY_BYTES))
}
