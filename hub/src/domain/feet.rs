//! Feet, as other parts of the hub see them.

use std::sync::Arc;

use footbridge_shared::id::{EntryName, FootName, Subject};
use serde::Serialize;
use utoipa::ToSchema;

use super::scope::Scope;
use super::tool::Tool;

/// State of a foot's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FootState {
    /// Its socket is open and its tools are listed.
    Connected,
    /// Its socket is gone; its calls wait for it to resume. Its tools are not listed.
    Away,
    /// Its name is bound, it is not here.
    Offline,
}

/// What a listing says of a foot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FootSummary {
    /// Its name, as the asking subject addresses it.
    #[schema(value_type = String)]
    pub name: FootName,
    /// Its name as its owner knows it: another one where two owners' feet share a name.
    #[serde(skip)]
    pub bound_name: FootName,
    /// Its owner.
    #[schema(value_type = String)]
    pub owner: Subject,
    /// Whether it is here.
    pub state: FootState,
    /// Whether the asking subject owns it.
    pub own: bool,
    /// Details that only those see for whom it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<FootDetails>,
}

/// What those may know of a foot for whom it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FootDetails {
    /// `owner`, `project` or `subjects`.
    pub share: String,
    /// The foot's version.
    pub version: String,
    /// Its operating system.
    pub os: String,
    /// Its processor.
    pub arch: String,
    /// Its machine.
    pub hostname: String,
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its tools, by the names on the foot, sorted.
    pub tools: Vec<String>,
    /// Its local MCP servers, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<FootServerSummary>,
    /// When it connected (RFC 3339).
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected_at: Option<jiff::Timestamp>,
}

/// What a list of feet says of a local MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FootServerSummary {
    /// Its name on the foot: the pack of its tools.
    #[schema(value_type = String)]
    pub name: EntryName,
    /// The version of MCP that it speaks.
    pub protocol: String,
}

/// What the rest of the hub asks of the foot registry.
pub trait FootDirectory: Send + Sync {
    /// The feet that a subject may use, sorted: its own first, then by name.
    fn feet(&self, scope: &Scope, subject: &Subject) -> Vec<FootSummary>;

    /// The tools of one of them, under their names on the foot. `None`: there is no such foot for this subject, now.
    fn tools_of(&self, scope: &Scope, subject: &Subject, foot: &FootName) -> Option<Arc<[Arc<Tool>]>>;
}
