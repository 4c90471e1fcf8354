//! Journals of processes that come and go, on real files, a disk that fails when the test says so, and a clock that the
//! test moves.

mod disk;
mod model;
mod time;
mod trouble;

use std::path::{Path, PathBuf};

use super::entry::Entries;
use super::*;
use crate::clock::ManualClock;
use disk::TestDisk;

const HOUR: Duration = Duration::from_secs(3600);

/// The machine that the processes of one foot run on.
struct Machine {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    disk: TestDisk,
    max_entries: usize,
}

/// One process of the foot.
struct Process {
    journal: Journal,
    found: Entries,
    thread: JoinHandle<()>,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, clock: ManualClock::shared(), disk: TestDisk::default(), max_entries: MAX_ENTRIES }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("web.journal")
    }

    fn start(&self, instance: &str) -> Process {
        let (folder, disk) = (Folder::new(self.folder(), instance), Box::new(self.disk.clone()));
        let (writer, found) = Writer::open(folder, disk, self.clock.clone(), self.max_entries);
        let (journal, thread) = Journal::with(writer);
        Process { journal, found, thread: thread.unwrap() }
    }

    /// What a process finds that starts now, on files as they are now: the old ones were killed this moment.
    fn found_after_a_kill(&self) -> Entries {
        let other = Self { clock: self.clock.clone(), ..Self::new() };
        std::fs::create_dir(other.folder()).unwrap();
        for name in self.files() {
            std::fs::copy(self.folder().join(&name), other.folder().join(&name)).unwrap();
        }
        let process = other.start("after-the-kill");
        let found = process.found.clone();
        process.end();
        found
    }

    /// The journals that are there.
    fn files(&self) -> Vec<String> {
        let listed = std::fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<String> = listed.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "lock");
        names.sort();
        names
    }

    fn file(&self, instance: &str) -> PathBuf {
        self.folder().join(format!("{instance}.log"))
    }

    fn start_of(&self, call: &CallId) -> Start {
        use crate::clock::Clock as _;
        let keyed = call.as_str().starts_with("key");
        let life = if keyed { KEYED_FOR } else { UNKEYED_FOR };
        let (digest, origin) = (keyed.then(|| "digest".to_owned()), "hub-1".to_owned());
        Start { call: call.clone(), keyed, digest, origin, until: self.clock.boot() + life }
    }
}

impl Process {
    async fn begin(&self, machine: &Machine, call: &str) -> (Begun, Ticket) {
        let ticket = self.journal.ticket();
        (self.journal.begin(machine.start_of(&id(call)), ticket).await, ticket)
    }

    /// Begins a call that may begin.
    async fn begins(&self, machine: &Machine, call: &str) -> Ticket {
        let (begun, ticket) = self.begin(machine, call).await;
        assert!(matches!(begun, Begun::Yes), "{call}: {begun:?}");
        ticket
    }

    /// Begins a call that another process began, and says how that is known to have ended.
    async fn finds(&self, machine: &Machine, call: &str) -> Option<Outcome> {
        match self.begin(machine, call).await.0 {
            Begun::Before(entry) => entry.outcome,
            other => panic!("{call}: {other:?}"),
        }
    }

    async fn refused(&self, machine: &Machine, call: &str) -> Refusal {
        match self.begin(machine, call).await.0 {
            Begun::Refused(refusal) => refusal,
            other => panic!("{call}: {other:?}"),
        }
    }

    fn ended(&self, machine: &Machine, call: &str, ticket: Ticket, outcome: Outcome) {
        self.journal.ended(id(call), ticket, outcome, machine.start_of(&id(call)).until);
    }

    async fn runs(&self, machine: &Machine, call: &str) {
        let ticket = self.begins(machine, call).await;
        self.ended(machine, call, ticket, Outcome::Completed);
    }

    fn acked(&self, call: &str) {
        self.journal.acked(id(call));
    }

    /// The process ends.
    fn end(self) {
        drop(self.journal);
        self.thread.join().unwrap();
    }
}

fn id(call: &str) -> CallId {
    CallId::parse(call).unwrap()
}

/// `c started`, `c completed`, `c unknown acked`, in order.
fn told(entries: &Entries) -> Vec<String> {
    let mut told: Vec<String> = entries
        .iter()
        .map(|(call, entry)| {
            let outcome = entry.outcome.map_or("started".to_owned(), |outcome| format!("{outcome:?}").to_lowercase());
            format!("{call} {outcome}{}", if entry.acked { " acked" } else { "" })
        })
        .collect();
    told.sort();
    told
}

fn records(path: &Path) -> Vec<record::Record> {
    record::read(&std::fs::read(path).unwrap()).unwrap().records
}

#[tokio::test]
async fn a_call_is_known_after_a_kill_from_before_its_work_begins() {
    let machine = Machine::new();
    let process = machine.start("p1");
    assert_eq!(told(&process.found), [""; 0]);
    process.begins(&machine, "key-1").await;
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 started"]);

    let ticket = process.begins(&machine, "key-2").await;
    process.ended(&machine, "key-2", ticket, Outcome::Completed);
    let ticket = process.begins(&machine, "c-3").await;
    process.ended(&machine, "c-3", ticket, Outcome::Unknown);
    process.journal.flush().await;
    assert_eq!(told(&machine.found_after_a_kill()), ["c-3 unknown", "key-1 started", "key-2 completed"]);

    process.acked("key-2");
    process.acked("c-3");
    process.journal.flush().await;
    let found = machine.found_after_a_kill();
    assert_eq!(told(&found), ["key-1 started", "key-2 completed acked"], "without its key a call cannot come again");
    let entry = &found[&id("key-2")];
    assert_eq!((entry.keyed, entry.digest.as_deref(), entry.origin.as_str()), (true, Some("digest"), "hub-1"));
    process.end();
}

#[tokio::test]
async fn an_end_is_there_after_a_kill_although_nobody_waited_for_it() {
    let machine = Machine::new();
    let process = machine.start("p1");
    process.runs(&machine, "key-1").await;
    // Whoever begins next has seen the end written before.
    process.begins(&machine, "key-2").await;
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed", "key-2 started"]);
    process.runs(&machine, "key-3").await;
    process.end();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed", "key-2 started", "key-3 completed"]);
}

#[tokio::test]
async fn what_did_not_run_leaves_nothing_and_may_run() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let ticket = process.begins(&machine, "key-1").await;
    process.ended(&machine, "key-1", ticket, Outcome::NotRun);
    process.journal.flush().await;
    assert_eq!(told(&machine.found_after_a_kill()), [""; 0]);
    process.runs(&machine, "key-1").await;
    process.end();
    assert_eq!(told(&machine.start("p2").found), ["key-1 completed"]);
}

#[tokio::test]
async fn the_late_end_of_a_start_that_was_given_up_is_not_that_of_the_next() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let given_up = process.begins(&machine, "key-1").await;
    let ticket = process.begins(&machine, "key-1").await;
    process.ended(&machine, "key-1", given_up, Outcome::NotRun);
    process.journal.flush().await;
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 started"]);
    process.ended(&machine, "key-1", ticket, Outcome::Completed);
    process.end();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed"]);
}

#[tokio::test]
async fn a_start_that_was_given_up_does_not_come_behind_the_next() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let late = process.journal.ticket();
    let ticket = process.begins(&machine, "key-1").await;
    let begun = process.journal.begin(machine.start_of(&id("key-1")), late).await;
    assert!(matches!(begun, Begun::Refused(Refusal::GivenUp)), "{begun:?}");
    process.ended(&machine, "key-1", ticket, Outcome::Completed);
    process.end();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed"]);
}

#[tokio::test]
async fn a_new_process_takes_over_what_the_dead_left() {
    let machine = Machine::new();
    let first = machine.start("p1");
    first.begins(&machine, "key-1").await;
    first.runs(&machine, "key-2").await;
    first.runs(&machine, "c-3").await;
    first.end();

    let second = machine.start("p2");
    assert_eq!(machine.files(), ["p2.log"], "their files are gone, their calls are in its own");
    assert_eq!(told(&second.found), ["c-3 completed", "key-1 started", "key-2 completed"]);
    assert_eq!(second.finds(&machine, "key-1").await, None);
    assert_eq!(second.finds(&machine, "key-2").await, Some(Outcome::Completed));
    second.acked("key-1");
    second.acked("c-3");
    second.runs(&machine, "key-4").await;
    second.end();
    let third = machine.start("p3");
    assert_eq!(told(&third.found), ["key-1 started acked", "key-2 completed", "key-4 completed"]);
    assert_eq!(machine.files(), ["p3.log"]);
    third.end();
}

#[tokio::test]
async fn files_that_say_the_same_twice_say_it_once() {
    let machine = Machine::new();
    let first = machine.start("p1");
    let ticket = first.begins(&machine, "key-1").await;
    first.journal.flush().await;
    let early = std::fs::read(machine.file("p1")).unwrap();
    first.ended(&machine, "key-1", ticket, Outcome::Completed);
    first.acked("key-1");
    first.end();
    // A process was killed between the new file and the removal of the old one. It left a draft, too.
    for name in ["p0.log", "p2.log"] {
        std::fs::write(machine.folder().join(name), &early).unwrap();
    }
    std::fs::write(machine.folder().join("p3.draft"), "half of it").unwrap();
    let process = machine.start("p4");
    assert_eq!(told(&process.found), ["key-1 completed acked"], "what is known beats what is not");
    assert_eq!(machine.files(), ["p4.log"]);
    process.end();
}

#[tokio::test]
async fn of_two_processes_that_live_each_sees_what_the_other_began() {
    let machine = Machine::new();
    let (old, new) = (machine.start("p1"), machine.start("p2"));
    assert_eq!(machine.files(), ["p1.log", "p2.log"], "the file of the living is theirs");
    let ticket = old.begins(&machine, "key-1").await;
    assert_eq!(new.finds(&machine, "key-1").await, None, "it began after this one had read everything");
    old.ended(&machine, "key-1", ticket, Outcome::Completed);
    old.journal.flush().await;
    assert_eq!(new.finds(&machine, "key-1").await, Some(Outcome::Completed));
    // And the other way round: the old one still reads what its hub had sent before.
    new.begins(&machine, "key-2").await;
    assert_eq!(old.finds(&machine, "key-2").await, None);
    old.end();
    new.begins(&machine, "key-3").await;
    assert_eq!(machine.files(), ["p2.log"], "as soon as the old one is gone its calls are taken over");
    assert_eq!(new.finds(&machine, "key-1").await, Some(Outcome::Completed));
    new.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_processes_that_begin_the_same_call_one_does() {
    let machine = Machine::new();
    let processes: Vec<Process> = (0..4).map(|n| machine.start(&format!("p{n}"))).collect();
    for round in 0..10 {
        let call = format!("key-{round}");
        let all = processes.iter().map(|process| process.begin(&machine, &call));
        let begun = futures::future::join_all(all).await;
        let yes = begun.iter().filter(|(begun, _)| matches!(begun, Begun::Yes)).count();
        assert_eq!(yes, 1, "{begun:?}");
    }
    processes.into_iter().for_each(Process::end);
    assert_eq!(machine.found_after_a_kill().len(), 10);
}
