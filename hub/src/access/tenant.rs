//! Tenants and their projects: what scopes there are.
//!
//! A scope exists because a record names it, or because it is a folder of the documents folder. Taking a tenant or a
//! project away takes away the scope, not what lies in it: documents stay in the store, tokens stay as they are, but
//! nothing of the scope resolves any more, so neither reaches anything until the scope is made again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use footbridge_shared::id::{ProjectName, TenantName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::follow::{Follower, follow};
use super::mirror::{Mirror, Recorded};
use super::{AccessError, require_admin};
use crate::clock::SharedClock;
use crate::domain::principal::{Principal, Reach};
use crate::domain::scope::Scope;
use crate::lifecycle::Lifecycle;
use crate::store::{Precondition, Record, Store, StoreError, StoreResult};

#[cfg(test)]
mod tests;

/// Most projects of one tenant.
pub const MAX_PROJECTS: usize = 1000;

/// What can be told of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantInfo {
    /// Its name.
    #[schema(value_type = String)]
    pub name: TenantName,
    /// Its projects, sorted: those of its record and those of the documents folder. `_tenant` goes without saying.
    #[schema(value_type = Vec<String>)]
    pub projects: Vec<ProjectName>,
    /// When its record was made; left out where it is a folder alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_at: Option<Timestamp>,
    /// The version of its record, for preconditions.
    #[serde(skip)]
    pub version: Option<u64>,
}

/// The value of a tenant's record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredTenant {
    name: TenantName,
    projects: BTreeSet<ProjectName>,
    created_at: Timestamp,
    #[serde(skip)]
    version: u64,
}

impl Recorded for StoredTenant {
    const KIND: &'static str = "tenant";

    fn parse(record: &Record) -> serde_json::Result<Self> {
        let tenant: Self = serde_json::from_str(&record.value)?;
        if tenant.name.as_str() != record.key {
            return Err(serde::de::Error::custom("the name is not the key of the record"));
        }
        Ok(Self { version: record.version, ..tenant })
    }
}

/// The projects of the documents folder, by tenant.
type FolderScopes = BTreeMap<TenantName, BTreeSet<ProjectName>>;

/// Knows which scopes there are, and changes them.
pub struct Tenants {
    store: Arc<dyn Store>,
    clock: SharedClock,
    stored: ArcSwap<Mirror<StoredTenant>>,
    folder: ArcSwap<FolderScopes>,
    /// As for tokens: whoever holds it reads or writes the store and installs what came of it.
    turn: Mutex<()>,
}

impl Tenants {
    /// Reads all tenants. They stay as they were read until [`Self::follow`] is called.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load(store: Arc<dyn Store>, clock: SharedClock) -> Result<Arc<Self>, AccessError> {
        let (stored, folder) = (ArcSwap::default(), ArcSwap::default());
        let tenants = Self { store, clock, stored, folder, turn: Mutex::new(()) };
        tenants.refresh().await?;
        Ok(Arc::new(tenants))
    }

    /// From now on keeps up with the store.
    pub fn follow(self: &Arc<Self>, lifecycle: &Lifecycle) {
        lifecycle.spawn("tenants", follow(self.clone(), StoredTenant::KIND, lifecycle.soft().clone()));
    }

    /// Says which scopes exist as folders of the documents folder; replaces what was said before.
    pub fn set_folder_scopes(&self, scopes: Vec<Scope>) {
        let mut folder = FolderScopes::new();
        for scope in scopes {
            let projects = folder.entry(scope.tenant).or_default();
            if !scope.project.is_tenant_layer() {
                projects.insert(scope.project);
            }
        }
        self.folder.store(Arc::new(folder));
    }

    /// Whether there is such a scope; `_tenant` is there for every tenant. Looks into memory alone.
    pub fn exists(&self, scope: &Scope) -> bool {
        let among = |projects: &BTreeSet<_>| scope.project.is_tenant_layer() || projects.contains(&scope.project);
        self.stored.load().get(scope.tenant.as_str()).is_some_and(|tenant| among(&tenant.projects))
            || self.folder.load().get(&scope.tenant).is_some_and(among)
    }

    /// Whether there is such a scope and it lies within a reach. The same answer for one that is not there and one that
    /// is not theirs. Looks into memory alone.
    ///
    /// # Errors
    /// [`AccessError::UnknownScope`].
    pub fn admit(&self, scope: &Scope, reach: &Reach) -> Result<(), AccessError> {
        if reach.covers(scope) && self.exists(scope) { Ok(()) } else { Err(AccessError::UnknownScope) }
    }

    /// The tenants within a reach, by name, each with the projects within it.
    pub fn list(&self, reach: &Reach) -> Vec<TenantInfo> {
        let (stored, folder) = (self.stored.load(), self.folder.load());
        let names: BTreeSet<_> = stored.values().map(|tenant| &tenant.name).chain(folder.keys()).collect();
        names.into_iter().filter_map(|name| info(&stored, &folder, name, reach)).collect()
    }

    /// A tenant, with the projects within a reach.
    ///
    /// # Errors
    /// [`AccessError::UnknownScope`] when it is not there or lies beyond the reach.
    pub fn get(&self, name: &TenantName, reach: &Reach) -> Result<TenantInfo, AccessError> {
        info(&self.stored.load(), &self.folder.load(), name, reach).ok_or(AccessError::UnknownScope)
    }

    /// Gives a tenant these projects and no others, and makes it if it is not there. In force on return.
    ///
    /// An admin of the whole hub may do that; an admin of the whole tenant may, once it is there. The precondition is
    /// on [`TenantInfo::version`].
    ///
    /// # Errors
    /// As said, and when a project is `_tenant`, when there are too many, and those of the store.
    pub async fn put(
        &self,
        name: &TenantName,
        projects: Vec<ProjectName>,
        precondition: Precondition,
        by: &Principal,
    ) -> Result<TenantInfo, AccessError> {
        let invalid = |reason| Err(AccessError::Invalid { field: "projects", reason });
        if projects.iter().any(ProjectName::is_tenant_layer) {
            return invalid("`_tenant` is there for every tenant and cannot be given");
        }
        let projects: BTreeSet<_> = projects.into_iter().collect();
        if projects.len() > MAX_PROJECTS {
            return invalid("a tenant has at most 1000 projects");
        }
        let _turn = self.turn.lock().await;
        // Read anew: whether it may be done depends on whether the tenant is there, wherever it was made.
        let current = self.read(name).await?;
        may_change(by, name, current.is_some() || self.folder.load().contains_key(name))?;
        let created_at = current.map_or_else(|| self.clock.now(), |tenant| tenant.created_at);
        self.write(name, projects, created_at, precondition).await?;
        self.get(name, &Reach::HUB)
    }

    /// Takes a tenant away; only an admin of the whole hub may. Its documents and tokens stay where they are, and
    /// reach nothing. In force on return.
    ///
    /// # Errors
    /// As said; [`AccessError::UnknownScope`] when it is not there, [`AccessError::InFolder`] when it is a folder
    /// alone, and those of the store.
    pub async fn delete(
        &self,
        name: &TenantName,
        precondition: Precondition,
        by: &Principal,
    ) -> Result<(), AccessError> {
        let _turn = self.turn.lock().await;
        may_delete(by, name)?;
        let deleted = self.store.delete_record(StoredTenant::KIND, name.as_str(), precondition).await;
        if matches!(deleted, Ok(()) | Err(StoreError::NotFound)) {
            self.stored.store(Arc::new(self.stored.load().without(name.as_str())));
        }
        match deleted {
            Err(StoreError::NotFound) if self.folder.load().contains_key(name) => Err(AccessError::InFolder),
            Err(StoreError::NotFound) => Err(AccessError::UnknownScope),
            other => Ok(other?),
        }
    }

    /// Makes sure that there is a scope, for a hub that serves one from its first start. In force on return.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn ensure(&self, scope: &Scope) -> Result<(), AccessError> {
        let _turn = self.turn.lock().await;
        loop {
            let current = self.read(&scope.tenant).await?;
            if self.exists(scope) {
                return Ok(());
            }
            let precondition =
                current.as_ref().map_or(Precondition::Absent, |tenant| Precondition::Version(tenant.version));
            let created_at = current.as_ref().map_or_else(|| self.clock.now(), |tenant| tenant.created_at);
            let mut projects = current.map_or_else(BTreeSet::new, |tenant| tenant.projects.clone());
            if !scope.project.is_tenant_layer() {
                projects.insert(scope.project.clone());
            }
            match self.write(&scope.tenant, projects, created_at, precondition).await {
                // Another hub was faster: look at what it wrote.
                Err(AccessError::Store(StoreError::VersionMismatch { .. })) => {}
                other => return other,
            }
        }
    }

    /// Reads one tenant from the store and puts what it says in force. The caller has the turn.
    async fn read(&self, name: &TenantName) -> Result<Option<Arc<StoredTenant>>, AccessError> {
        let record = self.store.record(StoredTenant::KIND, name.as_str()).await?;
        let known = self.stored.load();
        let known = record.map_or_else(|| known.without(name.as_str()), |record| known.with(record));
        let tenant = known.get(name.as_str()).cloned();
        self.stored.store(Arc::new(known));
        Ok(tenant)
    }

    /// Writes one tenant to the store and puts it in force. The caller has the turn.
    async fn write(
        &self,
        name: &TenantName,
        projects: BTreeSet<ProjectName>,
        created_at: Timestamp,
        precondition: Precondition,
    ) -> Result<(), AccessError> {
        let tenant = StoredTenant { name: name.clone(), projects, created_at, version: 0 };
        let value = serde_json::to_string(&tenant).map_err(|error| StoreError::Unavailable(error.into()))?;
        let record = self.store.put_record(StoredTenant::KIND, name.as_str(), &value, precondition).await?;
        self.stored.store(Arc::new(self.stored.load().with(record)));
        Ok(())
    }
}

#[async_trait]
impl Follower for Tenants {
    fn store(&self) -> &dyn Store {
        &*self.store
    }

    async fn refresh(&self) -> StoreResult<()> {
        let _turn = self.turn.lock().await;
        let records = self.store.records(StoredTenant::KIND, "").await?;
        self.stored.store(Arc::new(self.stored.load().of(records)));
        Ok(())
    }
}

/// What a reach sees of a tenant; `None` where there is nothing to see.
fn info(stored: &Mirror<StoredTenant>, folder: &FolderScopes, name: &TenantName, reach: &Reach) -> Option<TenantInfo> {
    let (tenant, in_folder) = (stored.get(name.as_str()), folder.get(name));
    if !reach.covers_tenant(name) || (tenant.is_none() && in_folder.is_none()) {
        return None;
    }
    let projects = tenant.iter().flat_map(|tenant| &tenant.projects).chain(in_folder.into_iter().flatten());
    let within: BTreeSet<_> =
        projects.filter(|project| reach.projects.as_ref().is_none_or(|own| own.contains(project))).cloned().collect();
    Some(TenantInfo {
        name: name.clone(),
        projects: within.into_iter().collect(),
        created_at: tenant.map(|tenant| tenant.created_at),
        version: tenant.map(|tenant| tenant.version),
    })
}

/// Who may say what projects a tenant has.
fn may_change(by: &Principal, name: &TenantName, exists: bool) -> Result<(), AccessError> {
    require_admin(by)?;
    if by.reach.is_hub() {
        Ok(())
    } else if !by.reach.covers_tenant(name) || !exists {
        Err(AccessError::UnknownScope)
    } else if by.reach.projects.is_some() {
        Err(AccessError::BeyondReach("this needs a token that reaches the whole tenant"))
    } else {
        Ok(())
    }
}

/// Who may take a tenant away.
fn may_delete(by: &Principal, name: &TenantName) -> Result<(), AccessError> {
    require_admin(by)?;
    if by.reach.is_hub() {
        Ok(())
    } else if by.reach.covers_tenant(name) {
        Err(AccessError::BeyondReach("this needs a token that reaches the whole hub"))
    } else {
        Err(AccessError::UnknownScope)
    }
}
