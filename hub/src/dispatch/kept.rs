//! Ended calls that are kept for a while, within bounds of the hub, and fairly: who keeps the most gives up first, so that
//! no tenant's results make room for another's that has more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::TenantName;
use tokio::time::Instant;

use super::calls::{CallEntry, KEEP_RESULT, MAX_ENDED, MAX_ENDED_BYTES};

/// Time between two looks for what has been kept long enough.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

struct Ended {
    entry: Arc<CallEntry>,
    bytes: usize,
    at: Instant,
}

#[derive(Default)]
struct Share {
    /// Oldest first.
    queue: VecDeque<Ended>,
    bytes: usize,
}

impl Share {
    fn pop(&mut self) -> Option<Ended> {
        let oldest = self.queue.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Kept {
    shares: HashMap<TenantName, Share>,
    count: usize,
    bytes: usize,
    swept: Option<Instant>,
}

impl Kept {
    /// Keeps one more, and gives those that have to go for it.
    pub(super) fn add(&mut self, entry: Arc<CallEntry>, bytes: usize, now: Instant) -> Vec<Arc<CallEntry>> {
        self.count += 1;
        self.bytes += bytes;
        let tenant = &entry.scope.tenant;
        if !self.shares.contains_key(tenant) {
            self.shares.insert(tenant.clone(), Share::default());
        }
        if let Some(share) = self.shares.get_mut(tenant) {
            share.bytes += bytes;
            share.queue.push_back(Ended { entry, bytes, at: now });
        }
        let mut gone = self.sweep(now);
        while self.count > MAX_ENDED || self.bytes > MAX_ENDED_BYTES {
            let by_bytes = self.bytes > MAX_ENDED_BYTES;
            let heaviest =
                self.shares.values_mut().max_by_key(|share| if by_bytes { share.bytes } else { share.queue.len() });
            let Some(oldest) = heaviest.and_then(Share::pop) else { break };
            self.count -= 1;
            self.bytes -= oldest.bytes;
            gone.push(oldest.entry);
        }
        gone
    }

    /// Gives those that were kept long enough.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<Arc<CallEntry>> {
        if self.swept.is_some_and(|swept| now.duration_since(swept) < SWEEP_EVERY) {
            return Vec::new();
        }
        self.swept = Some(now);
        let mut gone = Vec::new();
        self.shares.retain(|_, share| {
            while share.queue.front().is_some_and(|oldest| now.duration_since(oldest.at) >= KEEP_RESULT) {
                let Some(oldest) = share.pop() else { break };
                self.count -= 1;
                self.bytes -= oldest.bytes;
                gone.push(oldest.entry);
            }
            !share.queue.is_empty()
        });
        gone
    }
}
