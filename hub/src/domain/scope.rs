//! Where things live and whom they serve.

use std::fmt;

use footbridge_shared::id::{ProjectName, TenantName};
use serde::{Deserialize, Serialize};

/// A project of a tenant. The project `_tenant` is the tenant's own layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    /// The tenant.
    pub tenant: TenantName,
    /// The project.
    pub project: ProjectName,
}

impl Scope {
    /// A project of a tenant.
    pub fn new(tenant: TenantName, project: ProjectName) -> Self {
        Self { tenant, project }
    }

    /// The layer that all projects of this tenant share.
    pub fn tenant_layer(&self) -> Self {
        Self { tenant: self.tenant.clone(), project: ProjectName::tenant_layer() }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.project)
    }
}
