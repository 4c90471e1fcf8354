//! Which layer decides what a name means, and what it hides.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use footbridge_shared::id::{EntryName, PACK_SEPARATOR};

use super::server_tools::state_of;
use crate::api::problem::Problem;
use crate::api::tools::{ToolState, Why, WhyLayer};
use crate::dispatch::catalog::{Catalog, Resolution};
use crate::domain::call::Caller;
use crate::domain::principal::{Principal, Role};
use crate::domain::scope::Scope;
use crate::domain::tool::{Origin, Tool};
use crate::web::body::Named;
use crate::web::error::ApiResult;
use crate::web::state::AppState;

/// Explains a name: every layer that knows it, innermost first, and which of them wins.
#[utoipa::path(get, path = "/v1/{tenant}/{project}/tools/{name}/why", tag = "tools",
    params(("tenant" = String, Path), ("project" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = Why), (status = "4XX", body = Problem)))]
pub(super) async fn why(
    State(state): State<Arc<AppState>>,
    Extension(scope): Extension<Arc<Scope>>,
    Extension(principal): Extension<Arc<Principal>>,
    Named(name): Named,
) -> ApiResult<Json<Why>> {
    let catalog = state.dispatcher.catalog(&scope, &principal.subject).await?;
    let caller = Caller::of(&principal);
    // Whoever may read the documents sees them here too; for anybody else a tool behind a gate does not exist.
    let reads_documents = principal.has(Role::Viewer) || principal.has(Role::Configure);
    let gated = matches!(catalog.resolve(&name), Resolution::Tool(tool) if !tool.spec.admits(&caller));
    if gated && !reads_documents {
        let summary = nothing(&name);
        return Ok(Json(Why { name, callable: false, summary, layers: Vec::new() }));
    }
    let mut layers = Vec::new();
    if let Some(entry) = claimed_entry(&catalog, &name) {
        for layer in state.configured.explain(&scope, &entry).await? {
            let (state, reason) = state_of(layer.state);
            layers.push(WhyLayer {
                layer: layer.layer.to_string(),
                state,
                winner: false,
                type_id: layer.type_id,
                etag: Some(layer.etag),
                reason,
            });
        }
    }
    let documents = layers.len();
    let lower = catalog.built_in.tools.get(name.as_str()).into_iter().chain(feet_tools(&catalog, &name));
    layers.extend(lower.map(|tool| code_layer(tool)));
    let (callable, summary) = verdict(&catalog, &name, &caller, documents, &layers);
    // A document that claims the name decides, whatever it says; a reserved one claims nothing.
    let reserved = documents > 0 && !claims(&catalog, &name);
    let winner = if reserved { documents } else { 0 };
    if let Some(layer) = layers.get_mut(winner) {
        layer.winner = true;
    }
    Ok(Json(Why { name, callable, summary, layers }))
}

/// The document that a name belongs to: its own, or the one of its pack.
fn claimed_entry(catalog: &Catalog, name: &str) -> Option<EntryName> {
    let entries = &catalog.configured.entries;
    let of_foot = catalog.client.tools.get(name).and_then(|tool| catalog.hidden_by(tool));
    let pack = name.split_once(PACK_SEPARATOR).map(|(pack, _)| pack);
    let own = entries.get(name).or_else(|| pack.and_then(|pack| entries.get(pack)));
    let blind = || {
        catalog.configured.blind.as_ref()?;
        EntryName::parse(name).ok().or_else(|| EntryName::parse(pack?).ok())
    };
    own.or(of_foot).map(|entry| entry.name.clone()).or_else(blind)
}

fn claims(catalog: &Catalog, name: &str) -> bool {
    if matches!(catalog.resolve(name), Resolution::Blind(_)) {
        return true;
    }
    claimed_entry(catalog, name).and_then(|entry| catalog.configured.entries.get(&entry)).is_some_and(|e| e.shadows)
}

/// The tools of feet under a name: the one that the name means, then those of the same bare name on further feet.
fn feet_tools<'a>(catalog: &'a Catalog, name: &'a str) -> impl Iterator<Item = &'a Arc<Tool>> {
    let first = catalog.client.tools.get(name);
    let origin = first.map(|tool| &tool.spec.origin);
    let further = catalog.client.tools.values().filter(move |tool| {
        let Origin::Foot { local, .. } = &tool.spec.origin else { return false };
        local.as_str() == name && tool.spec.name.as_str() != name && Some(&tool.spec.origin) != origin
    });
    first.into_iter().chain(further)
}

fn code_layer(tool: &Tool) -> WhyLayer {
    let (layer, reason) = match &tool.spec.origin {
        Origin::Foot { foot, owner, local } => {
            let bare = tool.spec.name == *local;
            let reason = if bare {
                format!("a foot of {owner}")
            } else {
                format!("a foot of {owner}; call it as `{}`", tool.spec.name)
            };
            (format!("foot:{foot}"), Some(reason))
        }
        Origin::BuiltIn | Origin::Configured { .. } => ("built-in".to_owned(), None),
    };
    WhyLayer { layer, state: ToolState::Active, winner: false, type_id: None, etag: None, reason }
}

fn nothing(name: &str) -> String {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    format!("Nothing here is called `{shown}`.")
}

fn verdict(catalog: &Catalog, name: &str, caller: &Caller, documents: usize, layers: &[WhyLayer]) -> (bool, String) {
    let first = layers.first().map(|layer| layer.layer.clone()).unwrap_or_default();
    let hidden = match layers.len().saturating_sub(1) {
        0 => String::new(),
        1 => " It hides one other.".to_owned(),
        n => format!(" It hides {n} others."),
    };
    match catalog.resolve(name) {
        Resolution::Tool(tool) if !tool.spec.admits(caller) => (
            false,
            format!("`{name}` comes from {first}, and needs a role or profile that a direct call does not have."),
        ),
        Resolution::Tool(tool) => {
            let from = match &tool.spec.origin {
                Origin::Configured { layer, type_id, .. } => {
                    format!("the document in the layer `{layer}` (type `{type_id}`)")
                }
                Origin::BuiltIn => "the hub's own code".to_owned(),
                Origin::Foot { foot, .. } => format!("the foot `{foot}`"),
            };
            (true, format!("`{name}` comes from {from}.{hidden}"))
        }
        Resolution::Broken { entry, .. } => (
            false,
            format!(
                "The document of `{}` in the layer `{}` is broken, and stops the search.{hidden}",
                entry.name, entry.layer
            ),
        ),
        Resolution::Blind(blind) => (
            false,
            format!("The layer `{}` cannot be read, so nobody knows what it says of `{name}`.{hidden}", blind.layer),
        ),
        Resolution::Unknown if documents > 0 => {
            let disabled = layers.first().is_some_and(|layer| layer.state == ToolState::Disabled);
            let says = if disabled { "says `enabled: false`" } else { "offers no tool of this name now" };
            (false, format!("The document in the layer `{first}` {says}, and stops the search.{hidden}"))
        }
        Resolution::Unknown => (false, nothing(name)),
    }
}
