//! `/openapi.json`: made from the code, so that it cannot lie.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use bytes::Bytes;
use utoipa::Modify;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::web::state::AppState;

/// The frame of the description.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Footbridge hub", description = "One surface over server-side tools and developers' machines."),
    components(schemas(crate::api::problem::Problem)),
    modifiers(&Bearer),
    security(("bearer" = [])),
)]
pub(in crate::web) struct Description;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, api: &mut OpenApi) {
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// Operations as (method, path), the path as OpenAPI writes it.
pub(in crate::web) fn operations(api: &OpenApi) -> Vec<(String, String)> {
    let value = serde_json::to_value(api).unwrap_or_default();
    let Some(paths) = value.get("paths").and_then(serde_json::Value::as_object) else { return Vec::new() };
    paths
        .iter()
        .flat_map(|(path, item)| {
            let verbs = item.as_object().into_iter().flatten().map(|(verb, _)| verb.to_uppercase());
            verbs.map(|verb| (verb, plain_path(path))).collect::<Vec<_>>()
        })
        .collect()
}

/// The router's wildcard `{*path}` is the plain parameter `{path}` in OpenAPI.
fn plain_path(path: &str) -> String {
    path.replace("{*", "{")
}

/// The description as JSON.
pub(in crate::web) fn render(mut api: OpenApi) -> Bytes {
    let paths = std::mem::take(&mut api.paths.paths);
    api.paths.paths = paths.into_iter().map(|(path, item)| (plain_path(&path), item)).collect();
    serde_json::to_vec_pretty(&api).unwrap_or_default().into()
}

/// The route that shows it.
pub(in crate::web) fn route(document: Bytes) -> Router<Arc<AppState>> {
    Router::new().route(
        "/openapi.json",
        get(move || {
            let document = document.clone();
            async move { ([(CONTENT_TYPE, "application/json")], document) }
        }),
    )
}
