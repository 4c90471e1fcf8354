//! What is known of one call, and how long that matters.

use std::collections::HashMap;
use std::time::Duration;

use footbridge_shared::Outcome;
use footbridge_shared::id::CallId;
use serde::{Deserialize, Serialize};

use super::KEYED_FOR;
use super::record::Record;
use crate::clock::{Clock, millis};

/// Longest time that the time of day is believed to leave to an entry whose file is read: that of a key, and an hour for
/// work that is to end yet. A time of day that jumped back would let it live for years.
const MAX_LEFT: Duration = KEYED_FOR.saturating_add(Duration::from_secs(60 * 60));

/// A moment on two clocks: milliseconds since 1970, which somebody may set, and milliseconds of this run of the machine.
///
/// What it limits is over once both are past; as long as either says that it matters, it does. To remember for too long
/// costs a caller an odd answer, to forget too early runs a call twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Until {
    pub(super) wall_ms: u64,
    pub(super) boot_ms: u64,
}

impl Until {
    /// The moment at which the boot clock shows `boot`.
    pub(super) fn at(boot: Duration, clock: &dyn Clock) -> Self {
        let left = boot.saturating_sub(clock.boot());
        Self { wall_ms: millis(clock.wall().saturating_add(left)), boot_ms: millis(boot) }
    }

    /// What is left until then. Boot times of another run of the machine say nothing.
    pub(super) fn left(self, same_run: bool, clock: &dyn Clock) -> Duration {
        let wall = Duration::from_millis(self.wall_ms).saturating_sub(clock.wall()).min(MAX_LEFT);
        let boot = Duration::from_millis(self.boot_ms).saturating_sub(clock.boot());
        if same_run { wall.max(boot) } else { wall }
    }
}

/// What is known of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Whether it has an idempotency key.
    pub(crate) keyed: bool,
    /// Digest of tool and arguments.
    pub(crate) digest: Option<String>,
    /// As it came with the call.
    pub(crate) origin: String,
    /// How it ended. `None`: its work had begun, and nobody wrote down an end.
    pub(crate) outcome: Option<Outcome>,
    /// The hub has what there is to know.
    pub(crate) acked: bool,
    /// Until when this matters, on this machine's boot clock.
    pub(crate) until: Duration,
}

impl Entry {
    /// The record that says that its work begins.
    pub(super) fn started(&self, call: &CallId, clock: &dyn Clock) -> Record {
        let (keyed, digest, origin) = (self.keyed, self.digest.clone(), self.origin.clone());
        Record::Started { call: call.clone(), keyed, digest, origin, until: Until::at(self.until, clock) }
    }

    /// All records that say this of a call.
    pub(super) fn records(&self, call: &CallId, clock: &dyn Clock) -> impl Iterator<Item = Record> + use<> {
        let (started, until) = (self.started(call, clock), Until::at(self.until, clock));
        let ended = self.outcome.map(|outcome| Record::Ended { call: call.clone(), outcome, until });
        let acked = self.acked.then(|| Record::Acked { call: call.clone() });
        [Some(started), ended, acked].into_iter().flatten()
    }

    /// Adds what another file says of the same call. What is known beats what is not.
    fn merge(&mut self, other: Self) {
        self.outcome = match (self.outcome, other.outcome) {
            (Some(Outcome::Unknown) | None, known @ Some(_)) => known,
            (known, _) => known,
        };
        self.acked |= other.acked;
        self.until = self.until.max(other.until);
    }
}

/// Calls and what is known of them.
pub(super) type Entries = HashMap<CallId, Entry>;

/// What the records of one file come to. What does not matter any more is left out.
pub(super) fn replay(records: Vec<Record>, clock: &dyn Clock) -> Entries {
    let this_run = clock.machine_run();
    let mut same_run = false;
    let mut entries = Entries::new();
    let now = clock.boot();
    for record in records {
        match record {
            Record::Opened { run } => same_run = !run.is_empty() && run == this_run,
            Record::Started { call, keyed, digest, origin, until } => {
                let until = now + until.left(same_run, clock);
                entries.insert(call, Entry { keyed, digest, origin, outcome: None, acked: false, until });
            }
            Record::Ended { call, outcome: Outcome::NotRun, .. } => _ = entries.remove(&call),
            Record::Ended { call, outcome, until } => {
                if let Some(entry) = entries.get_mut(&call) {
                    (entry.outcome, entry.until) = (Some(outcome), now + until.left(same_run, clock));
                }
            }
            Record::Acked { call } => acked(&mut entries, &call),
            Record::Other => {}
        }
    }
    entries.retain(|_, entry| now < entry.until);
    entries
}

/// The hub has it. A call without a key cannot come again after that.
pub(super) fn acked(entries: &mut Entries, call: &CallId) {
    if let Some(entry) = entries.get_mut(call) {
        entry.acked = true;
        if !entry.keyed && entry.outcome.is_some() {
            entries.remove(call);
        }
    }
}

/// Adds what another file says.
pub(super) fn merge(entries: &mut Entries, others: Entries) {
    for (call, entry) in others {
        match entries.entry(call) {
            std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().merge(entry),
            std::collections::hash_map::Entry::Vacant(free) => _ = free.insert(entry),
        }
    }
}
