//! Documents through the cascade: the text is the body.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::LAYER_HEADER;
use crate::api::documents::{DocumentPage, DocumentSummary, DocumentWritten, VersionList, VersionSummary};
use crate::api::problem::Problem;
use crate::documents::Written;
use crate::domain::document::{DocumentPath, Layer};
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::web::body::{Named, Params, Text};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;
use crate::web::{condition, page};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Only paths that start with this.
    prefix: Option<String>,
    /// Documents a page: 1 to 1000, default 200.
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Lists documents, each path once: the layer that wins.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/documents", tag = "documents",
    params(("tenant" = String, Path), ("project" = String, Path), Filter),
    responses((status = 200, body = DocumentPage), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Params(filter): Params<Filter>,
) -> ApiResult<Json<DocumentPage>> {
    let limit = page::size(filter.limit)?;
    let after = page::after(filter.cursor.as_deref())?;
    let prefix = filter.prefix.unwrap_or_default();
    let found = state.documents.list(&scope, &prefix, after.as_deref(), limit).await?;
    let documents = found.documents.into_iter().map(|entry| DocumentSummary {
        path: entry.path.to_string(),
        layer: entry.layer.to_string(),
        etag: entry.etag,
        bytes: entry.bytes,
        updated_at: entry.updated_at,
        error: entry.error,
    });
    let documents = documents.collect();
    Ok(Json(DocumentPage { documents, next_cursor: found.next_cursor.map(|last| page::cursor(&last)) }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// List the kept versions of this scope's own document instead of reading it.
    versions: Option<String>,
    /// Read this kept version of the scope's own document.
    version: Option<u64>,
}

/// Reads a document: its text, with `ETag` and `Footbridge-Layer`.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/documents/{*path}", tag = "documents",
    params(("tenant" = String, Path), ("project" = String, Path), ("path" = String, Path), Which),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 304, description = "Not modified"),
        (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Named(path): Named,
    Params(which): Params<Which>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let path = DocumentPath::parse(&path)?;
    if which.versions.is_some_and(|value| value != "false") {
        return Ok(Json(versions(&state, &scope, &path).await?).into_response());
    }
    if let Some(version) = which.version {
        let kept = state.documents.versions(&scope, &path).await?;
        let document = kept.into_iter().find(|document| document.version == version);
        let document = document
            .ok_or_else(|| ApiError::not_found("version").hint("`?versions=true` lists those that are kept"))?;
        return Ok(([(CONTENT_TYPE, content_type(&path))], document.text).into_response());
    }
    let document = state.documents.resolve(&scope, &path).await?.ok_or_else(|| ApiError::not_found("document"))?;
    let mut response = if condition::not_modified(&headers, &document.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, content_type(&path))], document.text).into_response()
    };
    stamp(response.headers_mut(), &document.etag, document.layer);
    Ok(response)
}

async fn versions(state: &AppState, scope: &Scope, path: &DocumentPath) -> ApiResult<VersionList> {
    let kept = state.documents.versions(scope, path).await?;
    if kept.is_empty() {
        return Err(ApiError::not_found("document in this scope's own layer"));
    }
    let versions = kept.into_iter().map(|document| VersionSummary {
        version: document.version,
        bytes: document.text.len() as u64,
        updated_at: document.updated_at,
        created_by: document.created_by,
    });
    Ok(VersionList { versions: versions.collect() })
}

/// Writes a document to this scope's own layer. With `If-Match` only over what the ETag names, with `If-None-Match: *` only
/// where this layer has none. A configuration document is checked first.
#[utoipa::path(put, path = "/v1/{tenant}/{project}/documents/{*path}", tag = "documents",
    params(("tenant" = String, Path), ("project" = String, Path), ("path" = String, Path)),
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = DocumentWritten), (status = 201, body = DocumentWritten),
        (status = "4XX", body = Problem), (status = 507, body = Problem)))]
pub(super) async fn put(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(path): Named,
    headers: HeaderMap,
    Text(text): Text,
) -> ApiResult<Response> {
    let path = DocumentPath::parse(&path)?;
    let condition = condition::of_write(&headers)?;
    let written = state.documents.put(&scope, &path, &text, principal.subject.as_str(), &condition).await?;
    Ok(receipt(&written))
}

/// The answer to a write.
pub(super) fn receipt(written: &Written) -> Response {
    let document = &written.document;
    let created = document.created_at == document.updated_at;
    let body = DocumentWritten {
        path: document.path.to_string(),
        layer: written.layer.to_string(),
        etag: written.etag.clone(),
        version: document.version,
        updated_at: document.updated_at,
    };
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = (status, Json(body)).into_response();
    stamp(response.headers_mut(), &written.etag, written.layer);
    response
}

/// Deletes a document from this scope's own layer.
#[utoipa::path(delete, path = "/v1/{tenant}/{project}/documents/{*path}", tag = "documents",
    params(("tenant" = String, Path), ("project" = String, Path), ("path" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = "4XX", body = Problem)))]
pub(super) async fn delete(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(path): Named,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let path = DocumentPath::parse(&path)?;
    let condition = condition::of_delete(&headers)?;
    state.documents.delete(&scope, &path, principal.subject.as_str(), &condition).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Adds `ETag` and `Footbridge-Layer`.
pub(super) fn stamp(headers: &mut HeaderMap, etag: &str, layer: Layer) {
    if let Some(etag) = condition::etag_header(etag) {
        headers.insert(ETAG, etag);
    }
    headers.insert(HeaderName::from_static(LAYER_HEADER), HeaderValue::from_static(layer.as_str()));
}

fn content_type(path: &DocumentPath) -> &'static str {
    match path.as_str().rsplit_once('.') {
        Some((_, "yaml" | "yml")) => "application/yaml",
        Some((_, "json")) => "application/json",
        Some((_, "md")) => "text/markdown; charset=utf-8",
        // Never a type that a browser would run.
        _ => "text/plain; charset=utf-8",
    }
}
