//! Errors: RFC 9457 problem details with a stable code.

use footbridge_shared::{ErrorCode, Outcome};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// One error. Everything in it is safe to show.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:footbridge:error:<code>`.
    pub r#type: String,
    /// What the code says.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    #[schema(value_type = String)]
    pub code: ErrorCode,
    /// What happened this time.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// For calls: whether the tool ran.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When to try again, milliseconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The places of an invalid document or of invalid arguments.
    #[schema(value_type = Option<Vec<Object>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<serde_json::Value>,
}

impl Problem {
    /// The `type` of a code.
    pub fn type_of(code: ErrorCode) -> String {
        format!("urn:footbridge:error:{code}")
    }
}
