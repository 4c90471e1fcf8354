//! Tools: listings, one tool, why it is there, tool types and server-tool documents.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Whether a listed tool can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolState {
    /// It can.
    Active,
    /// Its document says `enabled: false`. Only in `server-tools` and `why`.
    Disabled,
    /// Its document cannot be used.
    Broken,
}

/// A tool in a listing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSummary {
    /// Public name.
    pub name: String,
    /// `configured`, `built-in` or `client`.
    pub source: String,
    /// The layer whose document won.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The foot that offers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foot: Option<String>,
    /// Whether it can be called.
    pub state: ToolState,
    /// Why it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it does.
    pub description: String,
    /// Labels for selectors.
    pub labels: Vec<String>,
    /// In the manifest from the start.
    pub primary: bool,
}

/// A page of tools, by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPage {
    /// The tools.
    pub tools: Vec<ToolSummary>,
    /// For the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One tool, whole.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolDetail {
    /// As in a listing.
    #[serde(flatten)]
    pub summary: ToolSummary,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its name where it comes from, when that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_name: Option<String>,
    /// A short line for discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_hint: Option<String>,
    /// How to use its pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_hint: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// MCP annotations, as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Process roles that a caller needs.
    pub requires_roles: Vec<String>,
    /// Profiles that may see it; empty: all.
    pub profiles: Vec<String>,
    /// Idle time of a call, milliseconds.
    pub timeout_ms: u64,
    /// Hard time of a call, milliseconds.
    pub max_timeout_ms: u64,
}

/// What one layer says of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyLayer {
    /// `project-folder`, `project`, `tenant-folder`, `tenant`, `bundled`, `built-in`, or `foot:<name>`.
    pub layer: String,
    /// What lies there.
    pub state: ToolState,
    /// Whether this one decides what the name means.
    pub winner: bool,
    /// The tool type of a document.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_id: Option<String>,
    /// The document's ETag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Why it is broken, or what else to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which layer decides what a name means, and what it hides.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The name that was asked for.
    pub name: String,
    /// Whether a call would reach a tool.
    pub callable: bool,
    /// One sentence: what the name means and why.
    pub summary: String,
    /// Every layer that knows the name, innermost first. After the winner: what it hides.
    pub layers: Vec<WhyLayer>,
}

/// A tool type.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTypeView {
    /// The value of `type` in a document.
    pub id: String,
    /// What it makes of a document.
    pub description: String,
    /// Whether one document makes many tools.
    pub pack: bool,
    /// JSON Schema of `parameters`.
    pub parameters: Value,
}

/// All tool types.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTypeList {
    /// By id.
    pub tool_types: Vec<ToolTypeView>,
}

/// A server-tool document in a listing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerToolSummary {
    /// Its name.
    pub name: String,
    /// The layer that won.
    pub layer: String,
    /// Its ETag.
    pub etag: String,
    /// Whether it offers its tools.
    pub state: ToolState,
    /// Why it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_id: Option<String>,
}

/// The server-tool documents of a scope, by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerToolList {
    /// One entry a name: the layer that won.
    pub server_tools: Vec<ServerToolSummary>,
    /// What lies where tool documents lie and is none, and what cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<DocumentProblem>,
}

/// Something in the way of a document.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentProblem {
    /// Its path; `/` is the whole layer.
    pub document: String,
    /// The layer it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One server-tool document.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerToolView {
    /// As in a listing.
    #[serde(flatten)]
    pub summary: ServerToolSummary,
    /// The document, as it was written.
    pub text: String,
}

/// The answer to a check without writing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// Always true: an invalid document is a problem with `errors`.
    pub valid: bool,
}
