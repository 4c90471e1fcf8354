//! How packs are, for people.

use footbridge_shared::ErrorCode;
use footbridge_shared::id::EntryName;

use crate::domain::document::Layer;

/// Whether a pack offers what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackState {
    /// It has not been listed yet. What it offered before its document changed is still shown.
    Connecting,
    /// What it offers is what it last said.
    Ready,
    /// It cannot be reached; what it offered before is still shown.
    Stale,
    /// It cannot be reached, and never was.
    Failed,
}

impl PackState {
    /// The text used in listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Stale => "stale",
            Self::Failed => "failed",
        }
    }
}

/// What the last attempt to reach a pack failed of. Safe to show.
#[derive(Debug, Clone)]
pub struct PackError {
    /// Stable code.
    pub code: ErrorCode,
    /// What is wrong.
    pub message: String,
    /// Since when this is known.
    pub at: jiff::Timestamp,
}

/// How a pack is. Safe to show.
#[derive(Debug, Clone)]
pub struct PackStatus {
    /// Whether it offers what it should.
    pub state: PackState,
    /// Where its tools are: a program, a host, a foot.
    pub place: Option<String>,
    /// What an MCP server calls itself.
    pub server: Option<String>,
    /// The MCP version in force.
    pub protocol: Option<String>,
    /// Entries of its listing that cannot be used.
    pub left_out: usize,
    /// The first of them, and why.
    pub odd: Vec<String>,
    /// Tools that are not what they were, by their names where they come from.
    pub changed: Vec<String>,
    /// Resources that it offers.
    pub resources: usize,
    /// Templates of resources that it offers.
    pub resource_templates: usize,
    /// Prompts that it offers.
    pub prompts: usize,
    /// What the last attempt failed of.
    pub error: Option<PackError>,
    /// What else to know.
    pub note: Option<String>,
    /// When it was last listed.
    pub listed_at: Option<jiff::Timestamp>,
    /// When it is tried again.
    pub next_try_at: Option<jiff::Timestamp>,
}

impl PackStatus {
    /// A pack that is no server, and is there or not.
    pub fn plain(state: PackState, place: String) -> Self {
        Self {
            state,
            place: Some(place),
            server: None,
            protocol: None,
            left_out: 0,
            odd: Vec::new(),
            changed: Vec::new(),
            resources: 0,
            resource_templates: 0,
            prompts: 0,
            error: None,
            note: None,
            listed_at: None,
            next_try_at: None,
        }
    }
}

/// A pack of a scope, as one subject sees it.
#[derive(Debug, Clone)]
pub struct PackView {
    /// Its name.
    pub name: EntryName,
    /// Its type.
    pub type_id: &'static str,
    /// The layer whose document won.
    pub layer: Layer,
    /// Tools that it offers.
    pub tools: usize,
    /// How it is.
    pub status: PackStatus,
}
