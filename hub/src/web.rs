//! The HTTP surface: one file a resource, one table of who may do what, one map from codes to statuses.

pub mod access;
pub mod bodies;
mod body;
mod condition;
pub mod error;
pub mod host;
mod in_flight;
pub mod mcp;
mod page;
mod pages;
mod resources;
pub mod server;
pub mod state;
mod writes;
pub mod ws;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::from_fn_with_state;
use tower_http::set_header::SetResponseHeaderLayer;

pub use self::state::AppState;

/// Largest request body, in bytes. Documents may have 1 MiB.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Largest body of a call, in bytes: what a foot can be sent.
pub const MAX_CALL_BODY_BYTES: usize = footbridge_shared::limits::MAX_MESSAGE_BYTES;

/// The whole surface over a state.
pub fn router(state: Arc<AppState>) -> Router {
    let (routes, api) = resources::routes().split_for_parts();
    let document = resources::openapi::render(api);
    routes
        .merge(resources::openapi::route(document))
        .route("/ws/foot", axum::routing::get(resources::socket::foot))
        .merge(mcp::routes())
        // Authentication runs where the matched path is known: the table is by route, not by text.
        .route_layer(from_fn_with_state(state.clone(), access::guard))
        .method_not_allowed_fallback(error::method_not_allowed)
        .fallback(error::no_route)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // Before the token is looked at, and before what is no route: a browser asks first whether it may ask.
        .layer(from_fn_with_state(state.clone(), pages::guard))
        // Answers hold what one subject may see: no cache on the way keeps them, no browser guesses their type.
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(SetResponseHeaderLayer::overriding(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .with_state(state)
}

/// All routes as (method, path), as the generated API description has them.
pub fn described_routes() -> Vec<(String, String)> {
    resources::openapi::operations(&resources::routes().split_for_parts().1)
}
