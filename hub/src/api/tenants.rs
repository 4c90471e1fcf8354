//! Tenants and their projects.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a tenant shall be.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutTenant {
    /// Its projects.
    pub projects: Vec<String>,
}

/// A tenant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// Its projects, sorted; those of the documents folder included.
    pub projects: Vec<String>,
}

/// Tenants, by name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantList {
    /// The tenants within the token's reach.
    pub tenants: Vec<TenantView>,
}

/// Whether the hub works.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`, `draining` or `unavailable`.
    pub status: String,
    /// The hub's version.
    pub version: String,
}
