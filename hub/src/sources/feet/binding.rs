//! Names of feet, bound to a foot id on first use, in the store until they are released.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use footbridge_shared::id::{FootKey, FootName, ProjectName, Subject, TenantName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, MutexGuard};

use super::roster::Address;
use crate::domain::scope::Scope;
use crate::store::{Precondition, Store, StoreError, StoreResult};

/// Kind of the records: key `<tenant>/<project>/<subject>/<name>`, value `{"foot", "boundAt"}`.
pub(super) const RECORD_KIND: &str = "foot";
/// Locks that names share: one name is claimed or released at a time, many names side by side.
const LOCKS: usize = 64;

/// What a binding record says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    foot: FootKey,
    bound_at: Timestamp,
}

/// Why a name cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    /// Another id holds it.
    #[error("another foot holds this name; its owner or an admin can release it")]
    Taken,
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// See the module.
pub(super) struct Bindings {
    store: Arc<dyn Store>,
    locks: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl std::fmt::Debug for Bindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bindings")
    }
}

impl Bindings {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let locks = std::iter::repeat_with(Mutex::default).take(LOCKS).collect();
        Self { store, locks, hasher: RandomState::new() }
    }

    /// Holds a name still: while the guard lives nobody else claims or releases it on this hub.
    pub(super) async fn hold(&self, scope: &Scope, address: &Address) -> Held<'_> {
        let key = record_key(scope, address);
        let index = self.hasher.hash_one(&key) as usize % LOCKS;
        Held { bindings: self, key, _guard: self.locks[index].lock().await }
    }

    /// All bindings; records that cannot be read are logged and left out.
    pub(super) async fn all(&self) -> StoreResult<Vec<(Scope, Address, FootKey)>> {
        let records = self.store.records(RECORD_KIND, "").await?;
        let read = |record: crate::store::Record| {
            let binding = parse_key(&record.key).zip(serde_json::from_str::<Binding>(&record.value).ok());
            if binding.is_none() {
                tracing::warn!(key = record.key, "a binding of a foot's name cannot be read");
            }
            binding.map(|((scope, address), binding)| (scope, address, binding.foot))
        };
        Ok(records.into_iter().filter_map(read).collect())
    }
}

/// A name that is held still.
pub(super) struct Held<'a> {
    bindings: &'a Bindings,
    key: String,
    _guard: MutexGuard<'a, ()>,
}

impl Held<'_> {
    /// The id that the name is bound to.
    pub(super) async fn bound_to(&self) -> StoreResult<Option<FootKey>> {
        let Some(record) = self.bindings.store.record(RECORD_KIND, &self.key).await? else { return Ok(None) };
        let binding: Binding =
            serde_json::from_str(&record.value).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Some(binding.foot))
    }

    /// Binds the name to an id, unless another holds it.
    pub(super) async fn claim(&self, foot: &FootKey, now: Timestamp) -> Result<(), ClaimError> {
        let bound = match self.bound_to().await? {
            Some(bound) => bound,
            None => {
                let binding = Binding { foot: foot.clone(), bound_at: now };
                let value =
                    serde_json::to_string(&binding).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
                match self.bindings.store.put_record(RECORD_KIND, &self.key, &value, Precondition::Absent).await {
                    Ok(_) => return Ok(()),
                    // Another hub was quicker.
                    Err(StoreError::VersionMismatch { .. }) => self.bound_to().await?.ok_or(ClaimError::Taken)?,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if bound == *foot { Ok(()) } else { Err(ClaimError::Taken) }
    }

    /// Frees the name. `false`: it was free.
    pub(super) async fn free(&self) -> StoreResult<bool> {
        match self.bindings.store.delete_record(RECORD_KIND, &self.key, Precondition::Any).await {
            Ok(()) => Ok(true),
            Err(StoreError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn record_key(scope: &Scope, (subject, name): &Address) -> String {
    format!("{}/{}/{subject}/{name}", scope.tenant, scope.project)
}

/// None of the parts may hold a slash.
pub(super) fn parse_key(key: &str) -> Option<(Scope, Address)> {
    let mut parts = key.split('/');
    let mut part = || parts.next();
    let scope = Scope::new(TenantName::parse(part()?).ok()?, ProjectName::parse(part()?).ok()?);
    let address = (Subject::parse(part()?).ok()?, FootName::parse(part()?).ok()?);
    part().is_none().then_some((scope, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_nothing_else_is_a_key() {
        let scope = Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse("shop").unwrap());
        let address = (Subject::parse("ada@example.org").unwrap(), FootName::parse("dev-1").unwrap());
        assert_eq!(parse_key(&record_key(&scope, &address)), Some((scope, address)));
        for odd in ["", "acme/shop/ada", "acme/shop/ada/dev/x", "acme/shop/ada/DEV"] {
            assert_eq!(parse_key(odd), None, "{odd}");
        }
    }
}
