//! Packs: documents that offer many tools.

use footbridge_shared::ErrorCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a pack is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackView {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_id: String,
    /// The layer whose document won.
    pub layer: String,
    /// `connecting` (not listed yet), `ready`, `stale` (away; what it offered before is still shown), or `failed`.
    pub state: String,
    /// Where its tools are: a program, a host, a foot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What an MCP server calls itself, with its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The MCP version in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Tools that it offers.
    pub tools: usize,
    /// Tools that it lists and that cannot be used.
    pub left_out: usize,
    /// The first of them, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<String>,
    /// Tools that are not what they were when the hub first saw them, or somebody last refreshed the pack: by their names
    /// where they come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Resources that it offers.
    pub resources: usize,
    /// Templates of resources that it offers.
    pub resource_templates: usize,
    /// Prompts that it offers.
    pub prompts: usize,
    /// What the last attempt to reach it failed of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<PackError>,
    /// What else to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it was last listed (RFC 3339).
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<jiff::Timestamp>,
    /// When it is tried again (RFC 3339); absent also where trying again would change nothing.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<jiff::Timestamp>,
}

/// What an attempt to reach a pack failed of.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackError {
    /// Stable code.
    #[schema(value_type = String)]
    pub code: ErrorCode,
    /// What is wrong.
    pub message: String,
    /// When it failed so (RFC 3339).
    #[schema(value_type = String, format = DateTime)]
    pub at: jiff::Timestamp,
}

/// The packs of a scope, by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackList {
    /// The packs.
    pub packs: Vec<PackView>,
}
