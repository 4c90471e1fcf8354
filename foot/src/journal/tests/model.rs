//! Any order of starts, ends, acks, restarts and damage, against what a map says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Calls there are: the first half have keys.
const CALLS: usize = 6;

#[derive(Debug, Clone, Copy)]
enum Step {
    Begin(usize),
    End(usize, Outcome),
    Ack(usize),
    Restart,
    /// A restart after a kill in the middle of a write: this many bytes of rubbish stand behind what was written.
    Torn(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![Just(Outcome::NotRun), Just(Outcome::Completed), Just(Outcome::Unknown)];
    prop_oneof![
        4 => (0..CALLS).prop_map(Step::Begin),
        4 => (0..CALLS, outcome).prop_map(|(call, outcome)| Step::End(call, outcome)),
        2 => (0..CALLS).prop_map(Step::Ack),
        1 => Just(Step::Restart),
        1 => (1..60_usize).prop_map(Step::Torn),
    ]
}

fn name(call: usize) -> String {
    if call < CALLS / 2 { format!("key-{call}") } else { format!("c-{call}") }
}

/// What must be known of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fact {
    outcome: Option<Outcome>,
    acked: bool,
    /// This process began it, and has not ended it.
    open: Option<Ticket>,
}

async fn follows(steps: Vec<Step>) {
    let machine = Machine::new();
    let mut process = machine.start("p");
    let mut facts: BTreeMap<usize, Fact> = BTreeMap::new();
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Step::Begin(call) => {
                let (begun, ticket) = process.begin(&machine, &name(call)).await;
                match (begun, facts.get(&call).copied()) {
                    (Begun::Yes, None | Some(Fact { open: Some(_), .. })) => {
                        facts.insert(call, Fact { outcome: None, acked: false, open: Some(ticket) });
                    }
                    (Begun::Before(entry), Some(fact)) => assert_eq!(entry.outcome, fact.outcome),
                    (begun, fact) => panic!("{}: {begun:?}, and it is known as {fact:?}", name(call)),
                }
            }
            Step::End(call, outcome) => {
                let Some(fact) = facts.get_mut(&call) else { continue };
                let Some(ticket) = fact.open.take() else { continue };
                process.ended(&machine, &name(call), ticket, outcome);
                fact.outcome = Some(outcome);
                if outcome == Outcome::NotRun {
                    facts.remove(&call);
                }
            }
            Step::Ack(call) => {
                let Some(fact) = facts.get_mut(&call).filter(|fact| fact.open.is_none()) else { continue };
                process.acked(&name(call));
                fact.acked = true;
                if call >= CALLS / 2 && fact.outcome.is_some() {
                    facts.remove(&call);
                }
            }
            Step::Restart | Step::Torn(_) => {
                process.end();
                if let Step::Torn(bytes) = step {
                    let [file] = &machine.files()[..] else { panic!("one process, one file") };
                    let path = machine.folder().join(file);
                    let mut content = std::fs::read(&path).unwrap();
                    content.truncate(content.iter().rposition(|byte| *byte != 0).unwrap() + 1);
                    content.extend(std::iter::repeat_n(b'{', bytes));
                    std::fs::write(&path, content).unwrap();
                }
                process = machine.start(&format!("p{n}"));
                facts.values_mut().for_each(|fact| fact.open = None);
                let expected = facts.iter().map(|(call, fact)| (id(&name(*call)), (fact.outcome, fact.acked)));
                let found = process.found.iter().map(|(call, entry)| (call.clone(), (entry.outcome, entry.acked)));
                assert_eq!(found.collect::<BTreeMap<_, _>>(), expected.collect::<BTreeMap<_, _>>());
            }
        }
    }
    process.end();
}

proptest! {
    // Each case starts and ends several processes on real files.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_is_known_afterwards(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(follows(steps));
    }
}
