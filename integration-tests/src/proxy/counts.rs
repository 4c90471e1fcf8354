//! How often what went wrong.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Fault;

/// The faults that really happened, by kind.
#[derive(Debug, Default)]
pub struct Counts {
    kinds: [AtomicU64; Fault::ALL.len()],
    connections: AtomicU64,
}

impl Counts {
    pub(super) fn add(&self, fault: Fault) {
        self.kinds[fault as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// How often this one happened.
    pub fn of(&self, fault: Fault) -> u64 {
        self.kinds[fault as usize].load(Ordering::Relaxed)
    }

    /// Connections that were carried.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// All faults.
    pub fn total(&self) -> u64 {
        Fault::ALL.into_iter().map(|fault| self.of(fault)).sum()
    }

    /// Counts of several proxies as one.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let sum = Self::default();
        for counts in all {
            for fault in Fault::ALL {
                sum.kinds[fault as usize].fetch_add(counts.of(fault), Ordering::Relaxed);
            }
            sum.connections.fetch_add(counts.connections(), Ordering::Relaxed);
        }
        sum
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections, {} faults", self.connections(), self.total())?;
        for fault in Fault::ALL {
            write!(f, "; {} {}", fault.name(), self.of(fault))?;
        }
        Ok(())
    }
}
