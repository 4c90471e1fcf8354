//! Feet.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A foot, as the asking subject may see it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FootView {
    /// Its name, as the asking subject addresses it.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// `connected`, `away` or `offline`.
    pub state: String,
    /// Whether the asking subject owns it.
    pub own: bool,
    /// `owner`, `project` or `subjects`; absent where the foot does not work for the asking subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// Its machine, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// `os/arch`, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The foot's version, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its folder, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its tools, by the names on the foot, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Its local MCP servers, likewise; absent also where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<FootServerView>,
    /// When it connected (RFC 3339), likewise.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_at: Option<jiff::Timestamp>,
}

/// A local MCP server of a foot.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FootServerView {
    /// Its name on the foot: the pack of its tools.
    pub name: String,
    /// The version of MCP that it speaks.
    pub protocol: String,
}

/// Feet: the subject's own first, then by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FootList {
    /// The feet.
    pub feet: Vec<FootView>,
}
