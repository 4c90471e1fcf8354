//! The tokens as they are kept, and as they are looked up.

use std::collections::HashMap;
use std::sync::Arc;

use footbridge_shared::id::{ProjectName, Subject, TenantName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::text::TokenHash;
use crate::access::mirror::{Mirror, Recorded};
use crate::api::tokens::TokenView;
use crate::domain::principal::{Principal, Reach, Role};
use crate::store::Record;

/// What can be told of a token. Its text cannot: nobody has it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// Its public id, which stands in the audit log.
    pub id: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who it speaks for.
    #[schema(value_type = String)]
    pub subject: Subject,
    /// What it allows, sorted.
    pub roles: Vec<Role>,
    /// The tenant it reaches; null: the whole hub.
    #[schema(value_type = Option<String>)]
    pub tenant: Option<TenantName>,
    /// The projects it reaches, sorted; null: all of the tenant and its own layer.
    #[schema(value_type = Option<Vec<String>>)]
    pub projects: Option<Vec<ProjectName>>,
    /// Other subjects it may create processes for; `*`: everybody.
    pub act_as: Vec<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it ends or ended by itself; left out: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

impl TokenInfo {
    /// As the API tells it.
    pub fn view(self) -> TokenView {
        TokenView {
            id: self.id,
            name: self.name,
            subject: self.subject.to_string(),
            roles: self.roles,
            tenant: self.tenant.map(|tenant| tenant.to_string()),
            projects: self.projects.map(|projects| projects.iter().map(ToString::to_string).collect()),
            act_as: self.act_as,
            created_at: self.created_at,
            expires_at: self.expires_at,
        }
    }
}

/// The value of a token's record.
///
/// A field that this build does not know might narrow what the token allows, so such a token allows nothing here.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredToken {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) subject: Subject,
    pub(super) roles: Vec<Role>,
    pub(super) tenant: Option<TenantName>,
    pub(super) projects: Option<Vec<ProjectName>>,
    pub(super) act_as: Vec<String>,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    pub(super) hash: TokenHash,
}

impl StoredToken {
    /// All of it but the hash.
    pub(super) fn info(&self) -> TokenInfo {
        TokenInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            subject: self.subject.clone(),
            roles: self.roles.clone(),
            tenant: self.tenant.clone(),
            projects: self.projects.clone(),
            act_as: self.act_as.clone(),
            created_at: self.created_at,
            expires_at: self.expires_at,
        }
    }
}

/// A token in use.
pub(super) struct Held {
    pub(super) info: TokenInfo,
    pub(super) principal: Arc<Principal>,
    hash: TokenHash,
}

impl Recorded for Held {
    const KIND: &'static str = "token";

    fn parse(record: &Record) -> serde_json::Result<Self> {
        let stored: StoredToken = serde_json::from_str(&record.value)?;
        if stored.id != record.key {
            return Err(serde::de::Error::custom("the id is not the key of the record"));
        }
        if stored.tenant.is_none() && stored.projects.is_some() {
            return Err(serde::de::Error::custom("there are projects without a tenant"));
        }
        let (info, hash) = (stored.info(), stored.hash);
        let principal = Principal {
            token: stored.id.into(),
            subject: stored.subject,
            roles: stored.roles,
            reach: Reach { tenant: stored.tenant, projects: stored.projects },
            act_as: stored.act_as,
            ended: CancellationToken::new(),
        };
        Ok(Self { info, principal: Arc::new(principal), hash })
    }
}

impl Held {
    fn expired(&self, now: Timestamp) -> bool {
        self.info.expires_at.is_some_and(|at| at <= now)
    }
}

/// All tokens, by id and by hash.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) tokens: Mirror<Held>,
    by_hash: HashMap<TokenHash, Arc<Held>>,
}

impl Ledger {
    pub(super) fn new(tokens: Mirror<Held>) -> Self {
        let by_hash = tokens.values().map(|held| (held.hash, held.clone())).collect();
        Self { tokens, by_hash }
    }

    /// Who a text speaks for, if it is a token that has neither been revoked nor expired.
    pub(super) fn authenticate(&self, text: &str, now: Timestamp) -> Option<Arc<Principal>> {
        let held = self.by_hash.get(&TokenHash::of(text)?)?;
        // One that has ended stays ended, also when the clock is set back.
        let over = held.expired(now) || held.principal.ended.is_cancelled();
        (!over).then(|| held.principal.clone())
    }

    /// Ends what is over by `now`, and tells when the next one will be.
    pub(super) fn end_expired(&self, now: Timestamp) -> Option<Timestamp> {
        let (expired, running): (Vec<_>, Vec<_>) =
            self.tokens.values().filter(|held| held.info.expires_at.is_some()).partition(|held| held.expired(now));
        for held in expired {
            held.principal.ended.cancel();
        }
        running.into_iter().filter_map(|held| held.info.expires_at).min()
    }
}
