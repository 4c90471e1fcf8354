//! Who may run now: a bounded number of scripts, a bounded share for each tenant, first come first served.
//!
//! A script that calls a tool that runs a script keeps its place while it waits for that one. So each depth of nesting has
//! places of its own: whoever holds one waits only for places deeper down, the deepest waits for nobody, and nesting can
//! neither starve itself nor grow without bound. At most `workers` × (`MAX_DEPTH` + 1) scripts exist at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use footbridge_shared::id::TenantName;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::call::MAX_DEPTH;

/// One place in so many of the queue is out of reach for a tenant that would fill it all.
const KEPT_FOR_OTHERS: usize = 8;
/// Tenants whose place in the books is kept although none of their scripts runs.
const TENANTS_KEPT: usize = 1_024;

/// The places of all depths.
#[derive(Debug)]
pub(super) struct Gate(Vec<Level>);

/// The right to run one script. Ends when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _worker: OwnedSemaphorePermit,
    _tenant: OwnedSemaphorePermit,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Gate {
    /// Places for `workers` scripts at each depth, `per_tenant` of them for one tenant. `queue` callers may wait, seven
    /// eighths of them of one tenant.
    pub(super) fn new(workers: usize, per_tenant: usize, queue: usize) -> Self {
        let workers = workers.max(1);
        let per_tenant = per_tenant.clamp(1, workers);
        let tenant_queue = queue - queue / KEPT_FOR_OTHERS;
        let level = || Level {
            workers: Arc::new(Semaphore::new(workers)),
            waiting: AtomicUsize::new(0),
            queue,
            per_tenant,
            tenant_queue,
            tenants: Mutex::default(),
        };
        Self((0..=MAX_DEPTH).map(|_| level()).collect())
    }

    /// Waits for a place at a depth of nesting. A caller that gives up leaves the queue by dropping the future.
    pub(super) async fn admit(&self, depth: u8, tenant: &TenantName) -> Result<Permit, Full> {
        self.0.get(usize::from(depth)).ok_or(Full)?.admit(tenant).await
    }
}

/// The places of one depth.
#[derive(Debug)]
struct Level {
    workers: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
    per_tenant: usize,
    tenant_queue: usize,
    tenants: Mutex<HashMap<TenantName, Arc<Tenant>>>,
}

#[derive(Debug)]
struct Tenant {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Level {
    async fn admit(&self, name: &TenantName) -> Result<Permit, Full> {
        let tenant = self.tenant(name);
        // Permits go to those who wait before anybody can try for them, so this does not jump the queue.
        if let Ok(own) = tenant.places.clone().try_acquire_owned()
            && let Ok(worker) = self.workers.clone().try_acquire_owned()
        {
            return Ok(Permit { _worker: worker, _tenant: own });
        }
        let _all = Waiting::enter(&self.waiting, self.queue)?;
        let _own = Waiting::enter(&tenant.waiting, self.tenant_queue)?;
        // First the tenant's place, then a worker's: a tenant's crowd waits in a queue of its own and not before others.
        let own = tenant.places.clone().acquire_owned().await.map_err(|_| Full)?;
        let worker = self.workers.clone().acquire_owned().await.map_err(|_| Full)?;
        Ok(Permit { _worker: worker, _tenant: own })
    }

    fn tenant(&self, name: &TenantName) -> Arc<Tenant> {
        let mut tenants = self.tenants.lock();
        if let Some(tenant) = tenants.get(name) {
            return tenant.clone();
        }
        if tenants.len() >= TENANTS_KEPT {
            // Whoever runs or waits holds a semaphore or the entry itself.
            tenants.retain(|_, tenant| Arc::strong_count(tenant) > 1 || Arc::strong_count(&tenant.places) > 1);
        }
        let places = Arc::new(Semaphore::new(self.per_tenant));
        let tenant = Arc::new(Tenant { places, waiting: AtomicUsize::new(0) });
        tenants.insert(name.clone(), tenant.clone());
        tenant
    }
}

/// A place in a queue, given back when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize, most: usize) -> Result<Self, Full> {
        if count.fetch_add(1, Ordering::Relaxed) < most {
            Ok(Self(count))
        } else {
            count.fetch_sub(1, Ordering::Relaxed);
            Err(Full)
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use std::pin::pin;

    fn tenant(name: &str) -> TenantName {
        TenantName::parse(name).unwrap()
    }

    #[tokio::test]
    async fn a_full_queue_is_said_at_once_and_leaving_it_makes_room() {
        let gate = Gate::new(1, 1, 1);
        let a = tenant("a");
        let running = gate.admit(0, &a).await.unwrap();
        {
            let mut waiting = pin!(gate.admit(0, &a));
            assert!(waiting.as_mut().now_or_never().is_none());
            assert_eq!(gate.admit(0, &a).await.err(), Some(Full));
        }
        let mut waiting = pin!(gate.admit(0, &a));
        assert!(waiting.as_mut().now_or_never().is_none(), "the one that left no longer counts");
        drop(running);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn a_tenants_crowd_does_not_stand_before_others() {
        let gate = Gate::new(3, 2, 16);
        let (crowd, other) = (tenant("crowd"), tenant("other"));
        let _running = [gate.admit(0, &crowd).await.unwrap(), gate.admit(0, &crowd).await.unwrap()];
        let mut waiting: Vec<_> = (0..14).map(|_| Box::pin(gate.admit(0, &crowd))).collect();
        assert!(waiting.iter_mut().all(|w| w.as_mut().now_or_never().is_none()));
        assert_eq!(gate.admit(0, &crowd).await.err(), Some(Full), "seven eighths of the queue and no more");
        assert!(gate.admit(0, &other).now_or_never().is_some_and(|permit| permit.is_ok()));
    }

    #[tokio::test]
    async fn waiters_are_served_in_order() {
        let gate = Gate::new(1, 1, 8);
        let a = tenant("a");
        let running = gate.admit(0, &a).await.unwrap();
        let (mut first, mut second) = (pin!(gate.admit(0, &a)), pin!(gate.admit(0, &a)));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(running);
        assert!(second.as_mut().now_or_never().is_none());
        assert!(first.now_or_never().is_some());
    }

    #[tokio::test]
    async fn each_depth_has_places_of_its_own_and_the_last_has_no_successor() {
        let gate = Gate::new(1, 1, 0);
        let a = tenant("a");
        let chain: Vec<_> = (0..=MAX_DEPTH).map(|depth| gate.admit(depth, &a).now_or_never()).collect();
        assert!(chain.iter().all(|permit| matches!(permit, Some(Ok(_)))));
        assert_eq!(gate.admit(MAX_DEPTH + 1, &a).await.err(), Some(Full));
    }
}
