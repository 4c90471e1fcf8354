//! A disk that counts, and fails when it is told to; and how calls share its work.

use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex};

use futures::FutureExt as _;

use super::*;
use crate::journal::disk::{Disk, LogFile};

/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Real files, with faults.
#[derive(Debug, Clone, Default)]
pub(super) struct TestDisk(Arc<Faults>);

#[derive(Debug, Default)]
struct Faults {
    syncs: AtomicU64,
    /// There is no room beyond what is allocated.
    full: AtomicBool,
    /// The next sync fails.
    sync_fails: AtomicBool,
    /// Syncs wait while it is closed.
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    closed: bool,
    waiting: usize,
}

#[derive(Debug)]
struct TestFile {
    file: Box<dyn LogFile>,
    faults: Arc<Faults>,
}

impl TestDisk {
    pub(super) fn syncs(&self) -> u64 {
        self.0.syncs.load(Ordering::SeqCst)
    }

    pub(super) fn fill(&self, full: bool) {
        self.0.full.store(full, Ordering::SeqCst);
    }

    pub(super) fn fail_next_sync(&self) {
        self.0.sync_fails.store(true, Ordering::SeqCst);
    }

    fn close_gate(&self) {
        self.0.gate.lock().unwrap().closed = true;
    }

    fn open_gate(&self) {
        self.0.gate.lock().unwrap().closed = false;
        self.0.moved.notify_all();
    }

    /// Returns when a sync waits at the gate.
    fn await_sync(&self) {
        let gate = self.0.gate.lock().unwrap();
        let (gate, waited) = self.0.moved.wait_timeout_while(gate, PATIENCE, |gate| gate.waiting == 0).unwrap();
        drop(gate);
        assert!(!waited.timed_out(), "nothing is synced");
    }
}

impl Disk for TestDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(TestFile { file: RealDisk.create(path)?, faults: self.0.clone() }))
    }
}

impl LogFile for TestFile {
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        if self.faults.full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.allocate(bytes)
    }

    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<()> {
        self.file.write_at(bytes, place)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.syncs.fetch_add(1, Ordering::SeqCst);
        let mut gate = self.faults.gate.lock().unwrap();
        gate.waiting += 1;
        self.faults.moved.notify_all();
        gate = self.faults.moved.wait_while(gate, |gate| gate.closed).unwrap();
        gate.waiting -= 1;
        drop(gate);
        // No test takes the power away: what was written is there.
        if self.faults.sync_fails.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("the disk is tired"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn calls_that_begin_together_share_a_sync() {
    const CALLS: usize = 64;
    let machine = Machine::new();
    let process = machine.start("p1");
    let before = machine.disk.syncs();
    machine.disk.close_gate();
    let names: Vec<String> = (0..CALLS).map(|n| format!("key-{n}")).collect();
    let mut all: Vec<_> = names.iter().map(|name| Box::pin(process.begin(&machine, name))).collect();
    assert!((&mut all[0]).now_or_never().is_none());
    machine.disk.await_sync();
    // The others come while the first one is being synced.
    for begin in &mut all[1..] {
        assert!(begin.now_or_never().is_none(), "no work begins before its start is safe");
    }
    machine.disk.open_gate();
    for (begun, _) in futures::future::join_all(all).await {
        assert!(matches!(begun, Begun::Yes), "{begun:?}");
    }
    assert_eq!(machine.disk.syncs() - before, 2, "one for the first, one for {} others", CALLS - 1);
    process.end();
    assert_eq!(machine.found_after_a_kill().len(), CALLS);
}

#[tokio::test]
async fn ends_and_acks_are_synced_with_the_next_start() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let ticket = process.begins(&machine, "key-1").await;
    let before = machine.disk.syncs();
    machine.disk.close_gate();
    process.ended(&machine, "key-1", ticket, Outcome::Completed);
    process.acked("key-1");
    let mut next = Box::pin(process.begin(&machine, "key-2"));
    assert!((&mut next).now_or_never().is_none());
    machine.disk.await_sync();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed acked", "key-2 started"]);
    machine.disk.open_gate();
    next.await;
    assert_eq!(machine.disk.syncs() - before, 1);
    // Nothing waits: there is nothing to sync.
    process.journal.flush().await;
    assert_eq!(machine.disk.syncs() - before, 1);
    process.end();
}

#[tokio::test]
async fn an_end_that_no_start_follows_is_synced_by_itself() {
    let machine = Machine::new();
    let process = machine.start("p1");
    process.runs(&machine, "key-1").await;
    machine.disk.close_gate();
    machine.disk.await_sync();
    machine.disk.open_gate();
    process.end();
}
