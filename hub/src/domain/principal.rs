//! Who a request speaks for, and what it may do.

use std::sync::Arc;

use footbridge_shared::id::{ProjectName, Subject, TenantName};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::scope::Scope;

/// What a token allows. `admin` includes every other role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read tools, documents, processes, insights and its own feet.
    Viewer,
    /// Call tools and create processes for its own subject.
    Engine,
    /// Write documents.
    Configure,
    /// Connect a foot that belongs to the token's subject.
    Foot,
    /// The rest.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Engine, Self::Configure, Self::Foot, Self::Admin];

    /// The text used in tokens and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Engine => "engine",
            Self::Configure => "configure",
            Self::Foot => "foot",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no role; use viewer, engine, configure, foot or admin"))
    }
}

/// How far a token reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The tenant; `None` is every tenant: the whole hub.
    pub tenant: Option<TenantName>,
    /// The projects; `None` is every project of the tenant and its `_tenant` layer.
    pub projects: Option<Vec<ProjectName>>,
}

impl Reach {
    /// The whole hub.
    pub const HUB: Self = Self { tenant: None, projects: None };

    /// Whether a scope lies within.
    pub fn covers(&self, scope: &Scope) -> bool {
        self.covers_tenant(&scope.tenant)
            && self.projects.as_ref().is_none_or(|projects| projects.contains(&scope.project))
    }

    /// Whether anything of a tenant lies within.
    pub fn covers_tenant(&self, tenant: &TenantName) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }

    /// Whether this is the whole hub.
    pub fn is_hub(&self) -> bool {
        self.tenant.is_none() && self.projects.is_none()
    }

    /// Whether all of `other` lies within.
    pub fn contains(&self, other: &Self) -> bool {
        let tenant = match (&self.tenant, &other.tenant) {
            (None, _) => true,
            (Some(own), Some(theirs)) => own == theirs,
            (Some(_), None) => false,
        };
        let projects = match (&self.projects, &other.projects) {
            (None, _) => true,
            (Some(own), Some(theirs)) => theirs.iter().all(|project| own.contains(project)),
            (Some(_), None) => false,
        };
        tenant && projects
    }
}

/// An authenticated token.
#[derive(Debug, Clone)]
pub struct Principal {
    /// Id of the token, for audit.
    pub token: Arc<str>,
    /// Who it speaks for.
    pub subject: Subject,
    /// What it allows.
    pub roles: Vec<Role>,
    /// How far it reaches.
    pub reach: Reach,
    /// Other subjects it may create processes for; `*` is everybody.
    pub act_as: Vec<String>,
    /// Fires when the token is revoked or expires: whatever lives on it ends.
    pub ended: CancellationToken,
}

impl Principal {
    /// Whether it has a role.
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&Role::Admin) || self.roles.contains(&role)
    }
}
