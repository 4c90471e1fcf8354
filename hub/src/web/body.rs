//! Reading bodies and queries, with errors of our own shape.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use footbridge_shared::ErrorCode;
use serde::de::DeserializeOwned;

use super::bodies::Place;
use super::error::ApiError;
use super::state::AppState;
use crate::domain::principal::Principal;

/// The whole body, within the limits of its path and of the hub.
async fn read(request: Request, state: &AppState) -> Result<Bytes, ApiError> {
    let place = request.extensions().get::<Place>().cloned().unwrap_or_default();
    let principal = request.extensions().get::<Arc<Principal>>().cloned();
    let subject = principal.as_ref().map(|principal| &principal.subject);
    let body = request.with_limited_body().into_body();
    let (bytes, held) = state.bodies.read(body, subject, state.lifecycle.soft()).await?;
    place.keep(held);
    Ok(bytes)
}

/// A JSON body. The content type is not asked for: what is no JSON says so itself.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        let bytes = read(request, state).await?;
        // An empty body is an empty object: all fields of such a body are optional, or their absence is named.
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        // The reader of a struct would take a list for its fields in order.
        if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(ApiError::new(ErrorCode::BadRequest, "the body is no JSON object")
                .hint("`/openapi.json` describes the body"));
        }
        serde_json::from_slice(text).map(Self).map_err(|error| {
            ApiError::new(ErrorCode::BadRequest, format!("the body does not fit: {error}"))
                .hint("`/openapi.json` describes the body")
        })
    }
}

/// A text body: UTF-8.
pub(super) struct Text(pub(super) String);

impl FromRequest<Arc<AppState>> for Text {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        let bytes = read(request, state).await?;
        String::from_utf8(bytes.into())
            .map(Self)
            .map_err(|_| ApiError::new(ErrorCode::BadRequest, "the body is not UTF-8 text"))
    }
}

/// A body as it came.
pub(super) struct Whole(pub(super) Bytes);

impl FromRequest<Arc<AppState>> for Whole {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        read(request, state).await.map(Self)
    }
}

/// Query parameters.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Query::from_request_parts(parts, state).await.map(|Query(params)| Self(params)).map_err(|error| {
            ApiError::new(ErrorCode::BadRequest, format!("the query does not fit: {}", error.body_text()))
        })
    }
}

/// The last parameter of the path: the name of what the route is about. Tenant and project before it are the guard's business.
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let unreadable = || ApiError::new(ErrorCode::BadRequest, "the path is not UTF-8 text");
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| unreadable())?;
        params.iter().last().map(|(_, value)| Self(value.to_owned())).ok_or_else(unreadable)
    }
}
