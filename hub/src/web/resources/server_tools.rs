//! Tool documents by name: `server-tools/<name>.yaml` of a scope, checked before they are written.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;
use serde::Deserialize;
use utoipa::IntoParams;

use super::documents::{receipt, stamp};
use crate::api::documents::DocumentWritten;
use crate::api::problem::Problem;
use crate::api::tools::{DocumentProblem, ServerToolList, ServerToolSummary, ServerToolView, ToolState, Validation};
use crate::domain::document::{DocumentPath, SERVER_TOOLS};
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::domain::tool::EntryState;
use crate::sources::configured::LayerState;
use crate::web::body::{Named, Params, Text};
use crate::web::condition;
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Lists the tool documents of a scope, each name once: the layer that wins, disabled and broken ones included.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/server-tools", tag = "server tools",
    params(("tenant" = String, Path), ("project" = String, Path)),
    responses((status = 200, body = ServerToolList), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
) -> ApiResult<Json<ServerToolList>> {
    let found = state.configured.server_tools(&scope).await?;
    let server_tools = found.into_iter().map(|(name, layer)| summary(&name, layer)).collect();
    let problems = state.configured.problems(&scope).await?.into_iter().map(|problem| DocumentProblem {
        document: problem.document,
        layer: problem.layer.map(|layer| layer.to_string()),
        message: problem.message,
        hint: problem.hint,
    });
    Ok(Json(ServerToolList { server_tools, problems: problems.collect() }))
}

/// One tool document, with the layer it comes from. With `Accept: application/yaml`, its text alone.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/server-tools/{name}", tag = "server tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ServerToolView), (status = 304, description = "Not modified"),
        (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Named(name): Named,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let (name, path) = place(&name)?;
    let document = state.documents.resolve(&scope, &path).await?.ok_or_else(|| ApiError::not_found("server tool"))?;
    let wants_text = headers.get_all(ACCEPT).iter().any(|value| value.as_bytes().starts_with(b"application/yaml"));
    let mut response = if condition::not_modified(&headers, &document.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if wants_text {
        ([(CONTENT_TYPE, "application/yaml")], document.text).into_response()
    } else {
        let layers = state.configured.explain(&scope, &name).await?;
        let winner = layers.into_iter().next().ok_or_else(|| ApiError::not_found("server tool"))?;
        Json(ServerToolView { summary: summary(&name, winner), text: document.text }).into_response()
    };
    stamp(response.headers_mut(), &document.etag, document.layer);
    Ok(response)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Check {
    /// Check the document without writing it.
    #[serde(default)]
    validate: bool,
}

/// Writes a tool document (YAML or JSON) to this scope's own layer; the first write over an inherited one makes the override. It is in
/// force when this answers.
#[utoipa::path(put, path = "/v1/{tenant}/{project}/server-tools/{name}", tag = "server tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path), Check),
    request_body(content = String, content_type = "application/yaml"),
    responses((status = 200, body = DocumentWritten), (status = 201, body = DocumentWritten),
        (status = "4XX", body = Problem), (status = 507, body = Problem)))]
pub(super) async fn put(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    Params(Check { validate }): Params<Check>,
    headers: HeaderMap,
    Text(text): Text,
) -> ApiResult<Response> {
    let (_, path) = place(&name)?;
    if validate {
        state.documents.check(&scope, &path, &text).await?;
        return Ok(Json(Validation { valid: true }).into_response());
    }
    let condition = condition::of_write(&headers)?;
    let written = state.documents.put(&scope, &path, &text, principal.subject.as_str(), &condition).await?;
    Ok(receipt(&written))
}

/// Deletes a tool document from this scope's own layer; what lies below is seen again.
#[utoipa::path(delete, path = "/v1/{tenant}/{project}/server-tools/{name}", tag = "server tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = "4XX", body = Problem)))]
pub(super) async fn delete(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let (_, path) = place(&name)?;
    state.documents.delete(&scope, &path, principal.subject.as_str(), &condition::of_delete(&headers)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The document behind a name.
fn place(name: &str) -> ApiResult<(EntryName, DocumentPath)> {
    let name = EntryName::parse(name).map_err(|error| ApiError::new(ErrorCode::InvalidName, error.to_string()))?;
    let path = DocumentPath::parse(&format!("{SERVER_TOOLS}{name}.yaml"))?;
    Ok((name, path))
}

fn summary(name: &EntryName, layer: LayerState) -> ServerToolSummary {
    let (state, reason) = state_of(layer.state);
    ServerToolSummary {
        name: name.to_string(),
        layer: layer.layer.to_string(),
        etag: layer.etag,
        state,
        reason,
        type_id: layer.type_id,
    }
}

/// The state and reason of an entry, as listings show them.
pub(super) fn state_of(state: EntryState) -> (ToolState, Option<String>) {
    match state {
        EntryState::Active => (ToolState::Active, None),
        EntryState::Disabled => (ToolState::Disabled, None),
        EntryState::Broken { reason } => (ToolState::Broken, Some(reason)),
    }
}
