//! Documents. Their texts travel as bodies; these are the listings and receipts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A document in a listing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentSummary {
    /// Its path.
    pub path: String,
    /// The layer that won.
    pub layer: String,
    /// Its ETag, without quotes.
    pub etag: String,
    /// Length of its text, bytes.
    pub bytes: u64,
    /// When it was last written (RFC 3339), for stored ones.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A page of documents, by path.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentPage {
    /// One entry a path: the layer that won.
    pub documents: Vec<DocumentSummary>,
    /// For the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The receipt of a write.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentWritten {
    /// Its path.
    pub path: String,
    /// The layer it was written to.
    pub layer: String,
    /// Its ETag, without quotes.
    pub etag: String,
    /// Its version in that layer.
    pub version: u64,
    /// When it was written (RFC 3339).
    #[schema(value_type = String)]
    pub updated_at: Timestamp,
}

/// One kept version of a stored document.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionSummary {
    /// The version.
    pub version: u64,
    /// Length of its text, bytes.
    pub bytes: u64,
    /// When it was written (RFC 3339).
    #[schema(value_type = String)]
    pub updated_at: Timestamp,
    /// Who wrote it.
    pub created_by: String,
}

/// The kept versions of a stored document, newest first. Read one with `?version=N`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionList {
    /// The versions.
    pub versions: Vec<VersionSummary>,
}
