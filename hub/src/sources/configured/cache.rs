//! Compiled catalogs, one a scope, of as many scopes as are in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use dashmap::DashMap;

use super::catalog::Catalog;
use super::pack::PackListings;
use crate::documents::{Fingerprint, Generation, Revision};
use crate::domain::scope::Scope;

/// Most scopes whose catalogs are kept.
const MAX_SCOPES: usize = 1024;
/// Polls without a use after which a scope's catalog is let go of.
const MAX_IDLE_POLLS: u32 = 120;

/// A compiled catalog and the state it was compiled from.
#[derive(Clone)]
pub(super) struct Compiled {
    pub(super) catalog: Arc<Catalog>,
    pub(super) revision: Revision,
    pub(super) fingerprint: Fingerprint,
    pub(super) generation: Generation,
    pub(super) with_packs: Arc<PackListings>,
}

/// The place of one scope's catalog.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) installed: ArcSwapOption<Compiled>,
    /// Whether the scope is known to have changed although nobody announced it.
    pub(super) stale: AtomicBool,
    /// Held by whoever compiles, so that many callers wait for one compilation.
    pub(super) compiling: tokio::sync::Mutex<()>,
    /// When it was last used, in uses of any slot.
    last_use: AtomicU64,
    idle_polls: AtomicU32,
}

impl Slot {
    /// What is in force, if it was compiled in this generation and nothing is known against it.
    pub(super) fn current(&self, generation: Generation) -> Option<Arc<Compiled>> {
        let installed = self.installed.load_full()?;
        (installed.generation == generation && !self.stale.load(Ordering::Acquire)).then_some(installed)
    }

    /// Whether its catalog holds servers in force: then it is not let go of for want of use.
    fn holds_servers(&self) -> bool {
        self.installed.load().as_ref().is_some_and(|compiled| compiled.catalog.has_servers())
    }

    /// Puts a catalog in force.
    pub(super) fn install(&self, compiled: Arc<Compiled>) {
        self.installed.store(Some(compiled));
        self.stale.store(false, Ordering::Release);
    }
}

/// All slots.
#[derive(Default)]
pub(super) struct Cache {
    slots: DashMap<Scope, Arc<Slot>>,
    uses: AtomicU64,
}

impl Cache {
    /// The slot of a scope. When there are too many, the one that was not used for longest goes.
    pub(super) fn slot(&self, scope: &Scope) -> Arc<Slot> {
        let found = self.slots.get(scope).map(|slot| slot.clone());
        let slot = found.unwrap_or_else(|| {
            self.make_room();
            self.slots.entry(scope.clone()).or_default().clone()
        });
        slot.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot.idle_polls.store(0, Ordering::Relaxed);
        slot
    }

    fn make_room(&self) {
        while self.slots.len() >= MAX_SCOPES {
            let oldest = self
                .slots
                .iter()
                .min_by_key(|slot| (slot.holds_servers(), slot.last_use.load(Ordering::Relaxed)))
                .map(|slot| slot.key().clone());
            match oldest {
                Some(scope) => drop(self.slots.remove(&scope)),
                None => return,
            }
        }
    }

    /// Every slot in use; lets go of those that nobody used for a while.
    pub(super) fn poll(&self) -> Vec<(Scope, Arc<Slot>)> {
        self.slots
            .retain(|_, slot| slot.idle_polls.fetch_add(1, Ordering::Relaxed) < MAX_IDLE_POLLS || slot.holds_servers());
        self.slots.iter().map(|slot| (slot.key().clone(), slot.value().clone())).collect()
    }

    /// The scopes in use that are the given one or, if that is a tenant's layer, of that tenant; without one all.
    pub(super) fn touched_by(&self, changed: Option<&Scope>) -> Vec<Scope> {
        let touched = |scope: &Scope| {
            changed.is_none_or(|changed| {
                changed.tenant == scope.tenant
                    && (changed.project.is_tenant_layer() || changed.project == scope.project)
            })
        };
        self.slots.iter().map(|slot| slot.key().clone()).filter(touched).collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use footbridge_shared::id::{ProjectName, TenantName};

    use super::*;

    #[test]
    fn the_scope_that_was_not_used_for_longest_goes_first() {
        let cache = Cache::default();
        let scope = |n: usize| Scope::new(TenantName::parse(&format!("t{n}")).unwrap(), ProjectName::tenant_layer());
        let first = cache.slot(&scope(0));
        for n in 1..MAX_SCOPES {
            cache.slot(&scope(n));
        }
        assert!(Arc::ptr_eq(&cache.slot(&scope(0)), &first), "used again");
        cache.slot(&scope(MAX_SCOPES));
        assert_eq!(cache.len(), MAX_SCOPES);
        assert!(Arc::ptr_eq(&cache.slot(&scope(0)), &first));
        assert!(!cache.slots.contains_key(&scope(1)));
    }

    #[test]
    fn an_idle_scope_is_let_go_of() {
        let cache = Cache::default();
        let scope = Scope::new(TenantName::parse("t").unwrap(), ProjectName::tenant_layer());
        cache.slot(&scope);
        for _ in 0..MAX_IDLE_POLLS {
            assert_eq!(cache.poll().len(), 1);
        }
        assert_eq!(cache.poll().len(), 0);
    }
}
