//! Calls: what to run, and what came of it.

use std::borrow::Cow;
use std::num::NonZeroU64;

use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A direct call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvokeRequest {
    /// The tool's arguments: a JSON object. Absent or `null`: none.
    #[schema(value_type = Option<Object>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Raw>,
    /// A shorter idle time than the tool's, milliseconds.
    #[schema(value_type = Option<u64>, minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<NonZeroU64>,
    /// A shorter hard time than the tool's, milliseconds.
    #[schema(value_type = Option<u64>, minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_timeout_ms: Option<NonZeroU64>,
}

// Its writer borrows the payload, which may have megabytes; its reader owns it.
/// What a call came to. Also the data of the SSE event `result`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvokeReply<'a> {
    /// MCP content blocks.
    #[schema(value_type = Vec<Object>)]
    pub content: Cow<'a, RawValue>,
    /// The structured result.
    #[schema(value_type = Option<Object>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Cow<'a, RawValue>>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// MCP `_meta`.
    #[schema(value_type = Option<Object>)]
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Cow<'a, RawValue>>,
    /// With `isError`: a stable code.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// With `isError`: what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Cow<'a, str>>,
    /// With `isError`: whether the tool ran.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
}

/// The data of the SSE event `progress`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressEvent {
    /// How far it is.
    pub progress: f64,
    /// What it counts up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The data of the SSE event `output`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputEvent {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The text.
    pub data: String,
    /// Bytes dropped before it.
    #[serde(default)]
    pub skipped_bytes: u64,
}

/// The data of the SSE event `skipped`: a gap.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkippedEvent {
    /// How many events are missing here.
    pub events: u64,
}

/// Whether a call still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallState {
    /// It does.
    Running,
    /// It ended.
    Ended,
}

/// A call in a listing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallSummary {
    /// Its id.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The tool's kind of source.
    pub source: String,
    /// For whom it runs.
    pub subject: String,
    /// The process it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// When it started (RFC 3339).
    #[schema(value_type = String)]
    pub started_at: jiff::Timestamp,
    /// Whether it still runs.
    pub state: CallState,
    /// How long it has run, or took, milliseconds.
    pub elapsed_ms: u64,
    /// For one that ended: whether the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// For one that failed: a stable code.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

/// Calls, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallList {
    /// Those that run, and those that ended in the last minutes.
    pub calls: Vec<CallSummary>,
}

/// One call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallView<'a> {
    /// As in a listing.
    #[serde(flatten)]
    pub summary: CallSummary,
    /// For one that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<InvokeReply<'a>>,
}
