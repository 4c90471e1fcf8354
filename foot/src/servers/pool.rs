//! The connections to one server that are somebody's: each is opened when it is needed, and closed when it was not for long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::attached::{Attached, Key};

/// Connections to one server: to a program, so many processes.
const MAX_CONNECTIONS: usize = 32;
/// How long one may be idle. What a server knows of its session ends with it.
const MAX_IDLE: Duration = Duration::from_secs(15 * 60);
/// The same for one on which resources are followed: it is there to be heard. Clients go away without a word, so not for ever.
const MAX_IDLE_FOLLOWED: Duration = Duration::from_secs(24 * 60 * 60);

/// A place for one connection. Whoever opens it holds the lock, and others who want the same wait for it.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Attached>>>>;

/// The connections.
#[derive(Default)]
pub(super) struct Pool {
    slots: Mutex<HashMap<Key, Slot>>,
}

/// There are as many connections as may be, and all are in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full;

impl Pool {
    /// The place for one, and the connection that had to make room for it, to be closed.
    ///
    /// # Errors
    /// [`Full`].
    pub(super) fn slot(&self, key: &Key) -> Result<(Slot, Option<Arc<Attached>>), Full> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(key) {
            return Ok((slot.clone(), None));
        }
        let mut dropped = None;
        if slots.len() >= MAX_CONNECTIONS {
            let idle = slots.iter().filter_map(|(key, slot)| {
                let held = slot.try_lock().ok()?;
                let rank = match held.as_ref() {
                    None => (false, Duration::ZERO),
                    Some(held) => (!held.follows.is_empty(), held.router.idle_since()?),
                };
                Some((rank, key.clone()))
            });
            let (_, oldest) = idle.min_by_key(|(rank, _)| *rank).ok_or(Full)?;
            dropped = slots.remove(&oldest).and_then(|slot| slot.try_lock().ok().and_then(|mut held| held.take()));
        }
        let slot = Slot::default();
        slots.insert(key.clone(), slot.clone());
        Ok((slot, dropped))
    }

    /// Takes out what is over, and what was idle for too long: that is to be closed.
    pub(super) fn sweep(&self, now: Duration) -> Vec<Arc<Attached>> {
        let mut dropped = Vec::new();
        self.slots().retain(|_, slot| {
            let Ok(mut held) = slot.try_lock() else { return true };
            let Some(attached) = held.as_ref() else { return false };
            let is_followed = !attached.follows.is_empty();
            if attached.is_over() && !is_followed {
                // Something may still run on it.
                return false;
            }
            // What was followed on one that is over is followed on the next, if its callers come back.
            let max = if is_followed { MAX_IDLE_FOLLOWED } else { MAX_IDLE };
            let is_idle = attached.router.idle_since().is_some_and(|since| now.saturating_sub(since) >= max);
            if is_idle {
                dropped.extend(held.take());
            }
            !is_idle
        });
        dropped
    }

    /// Takes all out, to be closed.
    pub(super) async fn take_all(&self) -> Vec<Arc<Attached>> {
        let slots: Vec<Slot> = self.slots().drain().map(|(_, slot)| slot).collect();
        let mut all = Vec::new();
        for slot in slots {
            all.extend(slot.lock().await.take());
        }
        all
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Slot>> {
        // Nothing panics while it holds the lock.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
