//! The merged listing of tools, and one tool.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::IntoParams;

use crate::api::problem::Problem;
use crate::api::tools::{ToolDetail, ToolPage, ToolState, ToolSummary};
use crate::dispatch::catalog::Resolution;
use crate::domain::call::Caller;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;
use crate::domain::tool::{Entry, Origin, SourceKind, Tool};
use crate::web::body::{Named, Params};
use crate::web::error::{ApiError, ApiResult};
use crate::web::page;
use crate::web::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Only names that start with this.
    prefix: Option<String>,
    /// Only tools with this label.
    label: Option<String>,
    /// Only tools of this source: `configured`, `built-in` or `client`.
    source: Option<String>,
    /// Tools a page: 1 to 1000, default 200.
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Lists the tools of a scope that the token's subject may call, and the documents that are broken.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/tools", tag = "tools",
    params(("tenant" = String, Path), ("project" = String, Path), Filter),
    responses((status = 200, body = ToolPage), (status = "4XX", body = Problem)))]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Params(filter): Params<Filter>,
) -> ApiResult<Json<ToolPage>> {
    let limit = page::size(filter.limit)?;
    let after = page::after(filter.cursor.as_deref())?;
    if let Some(source) = &filter.source
        && ![SourceKind::Configured, SourceKind::BuiltIn, SourceKind::Client].iter().any(|s| s.as_str() == source)
    {
        return Err(ApiError::new(footbridge_shared::ErrorCode::BadRequest, "`source` is no source")
            .hint("use `configured`, `built-in` or `client`"));
    }
    let caller = Caller::of(&principal);
    let catalog = state.dispatcher.catalog(&scope, &principal.subject).await?;
    let active = catalog.tools().into_iter().filter(|tool| tool.spec.admits(&caller)).map(|tool| summary(&tool));
    // A document with a reserved name hides nothing, and is no second tool of that name.
    let broken = catalog.broken().filter(|(entry, _)| entry.shadows);
    let broken = broken.map(|(entry, reason)| broken_summary(entry, reason));
    let mut tools: Vec<ToolSummary> = active
        .chain(broken)
        .filter(|tool| filter.prefix.as_deref().is_none_or(|prefix| tool.name.starts_with(prefix)))
        .filter(|tool| filter.label.as_ref().is_none_or(|label| tool.labels.contains(label)))
        .filter(|tool| filter.source.as_ref().is_none_or(|source| tool.source == *source))
        .filter(|tool| after.as_ref().is_none_or(|after| tool.name > *after))
        .collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let more = tools.len() > limit;
    tools.truncate(limit);
    let next_cursor = tools.last().filter(|_| more).map(|last| page::cursor(&last.name));
    Ok(Json(ToolPage { tools, next_cursor }))
}

/// One tool, whole.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/tools/{name}", tag = "tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ToolDetail), (status = "4XX", body = Problem)))]
pub(super) async fn get(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
) -> ApiResult<Json<ToolDetail>> {
    let caller = Caller::of(&principal);
    let catalog = state.dispatcher.catalog(&scope, &principal.subject).await?;
    match catalog.resolve(&name) {
        Resolution::Tool(tool) if tool.spec.admits(&caller) => Ok(Json(detail(tool))),
        Resolution::Broken { entry, reason } => Ok(Json(broken_detail(entry, reason))),
        Resolution::Blind(blind) => Err(crate::dispatch::blind_to(&name, blind).into()),
        Resolution::Tool(_) | Resolution::Unknown => Err(state.dispatcher.missing(&scope, &caller, &name).await.into()),
    }
}

fn summary(tool: &Tool) -> ToolSummary {
    let spec = &tool.spec;
    let (layer, foot) = match &spec.origin {
        Origin::Configured { layer, .. } => (Some(layer.to_string()), None),
        Origin::BuiltIn => (None, None),
        Origin::Foot { foot, .. } => (None, Some(foot.to_string())),
    };
    ToolSummary {
        name: spec.name.to_string(),
        source: spec.origin.kind().as_str().to_owned(),
        layer,
        foot,
        state: ToolState::Active,
        reason: None,
        description: spec.description.clone(),
        labels: spec.labels.clone(),
        primary: spec.primary,
    }
}

fn broken_summary(entry: &Entry, reason: &str) -> ToolSummary {
    ToolSummary {
        name: entry.name.to_string(),
        source: SourceKind::Configured.as_str().to_owned(),
        layer: Some(entry.layer.to_string()),
        foot: None,
        state: ToolState::Broken,
        reason: Some(reason.to_owned()),
        description: String::new(),
        labels: Vec::new(),
        primary: false,
    }
}

fn detail(tool: &Tool) -> ToolDetail {
    let spec = &tool.spec;
    let json = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    let (idle, hard) = tool.limits();
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ToolDetail {
        summary: summary(tool),
        title: spec.title.clone(),
        original_name: spec.original_name.clone(),
        search_hint: spec.search_hint.clone(),
        prompt_hint: spec.prompt_hint.clone(),
        input_schema: json(&spec.input_schema),
        output_schema: spec.output_schema.as_deref().map(json),
        annotations: spec.annotations.as_deref().map(json),
        requires_roles: spec.requires_roles.clone(),
        profiles: spec.profiles.clone(),
        timeout_ms: millis(idle),
        max_timeout_ms: millis(hard),
    }
}

fn broken_detail(entry: &Entry, reason: &str) -> ToolDetail {
    ToolDetail {
        summary: broken_summary(entry, reason),
        title: None,
        original_name: None,
        search_hint: None,
        prompt_hint: None,
        input_schema: Value::Null,
        output_schema: None,
        annotations: None,
        requires_roles: Vec::new(),
        profiles: Vec::new(),
        timeout_ms: 0,
        max_timeout_ms: 0,
    }
}
