//! Tokens.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::principal::Role;

/// A token to be made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateToken {
    /// Who it speaks for.
    pub subject: String,
    /// What it allows.
    pub roles: Vec<Role>,
    /// Its tenant; absent: the whole hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its projects; absent: all of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Other subjects it may create processes for; `*` is everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub act_as: Vec<String>,
    /// When it ends, seconds from now; absent: never.
    #[schema(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A token, without its secret.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    /// Its id, for revoking.
    pub id: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who it speaks for.
    pub subject: String,
    /// What it allows.
    pub roles: Vec<Role>,
    /// Its tenant; absent: the whole hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its projects; absent: all of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    /// Other subjects it may create processes for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub act_as: Vec<String>,
    /// When it was made (RFC 3339).
    #[schema(value_type = String)]
    pub created_at: Timestamp,
    /// When it ends (RFC 3339).
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A new token. The only time its text is shown.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCreated {
    /// As in a listing.
    #[serde(flatten)]
    pub view: TokenView,
    /// The bearer token.
    pub token: String,
}

/// Tokens, by id.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenList {
    /// The tokens within the asking token's reach.
    pub tokens: Vec<TokenView>,
}
