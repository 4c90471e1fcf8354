//! Tokens: made, listed, revoked. Within the asking token's own reach.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as JsonReply};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::{ProjectName, Subject, TenantName};
use jiff::SignedDuration;

use crate::access::{NewToken, TokenInfo};
use crate::api::problem::Problem;
use crate::api::tokens::{CreateToken, TokenCreated, TokenList};
use crate::domain::principal::{Principal, Reach};
use crate::web::body::{Json, Named};
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Lists tokens, without their secrets.
#[utoipa::path(get, path = "/v1/tokens", tag = "administration",
    responses((status = 200, body = TokenList), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
) -> ApiResult<JsonReply<TokenList>> {
    let tokens = state.tokens.list(&principal)?.into_iter().map(TokenInfo::view).collect();
    Ok(JsonReply(TokenList { tokens }))
}

/// Makes a token. Its text is in this answer and never again.
#[utoipa::path(post, path = "/v1/tokens", tag = "administration", request_body = CreateToken,
    responses((status = 201, body = TokenCreated), (status = "4XX", body = Problem)))]
pub(super) async fn create(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
    Json(body): Json<CreateToken>,
) -> ApiResult<(StatusCode, JsonReply<TokenCreated>)> {
    let request = request_of(&state, body)?;
    let created = state.tokens.create(request, &principal).await?;
    let reply = TokenCreated { view: created.info.view(), token: created.text.expose().to_owned() };
    Ok((StatusCode::CREATED, JsonReply(reply)))
}

/// Revokes a token: it is dead at once, and so is what lives on it.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "administration", params(("id" = String, Path)),
    responses((status = 204, description = "Revoked"), (status = "4XX", body = Problem)))]
pub(super) async fn revoke(
    State(state): State<Arc<AppState>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(id): Named,
) -> ApiResult<StatusCode> {
    state.tokens.revoke(&id, &principal).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn request_of(state: &AppState, body: CreateToken) -> ApiResult<NewToken> {
    let projects = body.projects.map(|names| names.iter().map(|name| ProjectName::parse(name)).collect());
    let expires_at = body.expires_in_seconds.map(|seconds| {
        let after = i64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(SignedDuration::from_secs);
        after
            .and_then(|after| state.clock.now().checked_add(after).ok())
            .ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "`expiresInSeconds` is no time that can be waited for"))
    });
    Ok(NewToken {
        name: body.name,
        subject: Subject::parse(&body.subject)?,
        roles: body.roles,
        reach: Reach {
            tenant: body.tenant.as_deref().map(TenantName::parse).transpose()?,
            projects: projects.transpose()?,
        },
        act_as: body.act_as,
        expires_at: expires_at.transpose()?,
    })
}
