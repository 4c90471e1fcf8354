//! The tool types of this hub.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use crate::api::problem::Problem;
use crate::api::tools::{ToolTypeList, ToolTypeView};
use crate::sources::configured::ToolTypeInfo;
use crate::web::body::Named;
use crate::web::error::{ApiError, ApiResult};
use crate::web::state::AppState;

/// Lists the tool types with the JSON Schema of their parameters.
#[utoipa::path(get, path = "/v1/tool-types", tag = "tools",
    responses((status = 200, body = ToolTypeList), (status = "4XX", body = Problem)))]
pub(super) async fn list(State(state): State<Arc<AppState>>) -> Json<ToolTypeList> {
    Json(ToolTypeList { tool_types: state.configured.tool_types().into_iter().map(view).collect() })
}

/// One tool type.
#[utoipa::path(get, path = "/v1/tool-types/{id}", tag = "tools", params(("id" = String, Path)),
    responses((status = 200, body = ToolTypeView), (status = "4XX", body = Problem)))]
pub(super) async fn get(State(state): State<Arc<AppState>>, Named(id): Named) -> ApiResult<Json<ToolTypeView>> {
    let found = state.configured.tool_types().into_iter().find(|info| info.id == id);
    found.map(view).map(Json).ok_or_else(|| ApiError::not_found("tool type").hint("`GET /v1/tool-types` lists them"))
}

fn view(info: ToolTypeInfo) -> ToolTypeView {
    ToolTypeView {
        id: info.id.to_owned(),
        description: info.description.to_owned(),
        pack: info.pack,
        parameters: info.parameters,
    }
}
