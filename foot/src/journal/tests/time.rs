//! How long calls are remembered, on clocks that jump.

use super::*;
use crate::clock::Clock as _;

/// What a process finds that starts now.
fn found(machine: &Machine, instance: &str) -> Vec<String> {
    let process = machine.start(instance);
    let told = told(&process.found);
    process.end();
    told
}

async fn one_call_each(machine: &Machine) {
    let process = machine.start("p1");
    process.runs(machine, "key-1").await;
    process.runs(machine, "c-2").await;
    process.end();
}

#[tokio::test]
async fn a_key_is_remembered_for_an_hour_longer_than_the_hub_does() {
    let machine = Machine::new();
    one_call_each(&machine).await;
    assert_eq!(found(&machine, "p2"), ["c-2 completed", "key-1 completed"]);
    machine.clock.advance(UNKEYED_FOR);
    assert_eq!(found(&machine, "p3"), ["key-1 completed"]);
    machine.clock.advance(HUB_KEY_LIFE);
    assert_eq!(found(&machine, "p4"), ["key-1 completed"]);
    machine.clock.advance(HOUR);
    assert_eq!(found(&machine, "p5"), [""; 0]);
}

#[tokio::test]
async fn a_time_of_day_that_is_set_neither_forgets_nor_keeps_for_years() {
    let machine = Machine::new();
    one_call_each(&machine).await;
    let now = machine.clock.wall();
    machine.clock.set_wall(now + 1000 * HOUR);
    assert_eq!(found(&machine, "p2"), ["c-2 completed", "key-1 completed"], "this run of the machine knows better");
    machine.clock.set_wall(now - 100_000 * HOUR);
    assert_eq!(found(&machine, "p3"), ["c-2 completed", "key-1 completed"]);
    machine.clock.advance(27 * HOUR);
    assert_eq!(found(&machine, "p4"), [""; 0]);
}

#[tokio::test]
async fn after_a_restart_of_the_machine_the_time_of_day_counts() {
    let machine = Machine::new();
    one_call_each(&machine).await;
    machine.clock.restart_machine();
    assert_eq!(found(&machine, "p2"), ["c-2 completed", "key-1 completed"]);
    machine.clock.restart_machine();
    machine.clock.set_wall(machine.clock.wall() + HUB_KEY_LIFE);
    assert_eq!(found(&machine, "p3"), ["key-1 completed"]);
    machine.clock.advance(HOUR);
    assert_eq!(found(&machine, "p4"), [""; 0]);
    // A time of day that jumped back with the restart.
    one_call_each(&machine).await;
    machine.clock.restart_machine();
    machine.clock.set_wall(Duration::from_secs(5));
    assert_eq!(found(&machine, "p5"), ["c-2 completed", "key-1 completed"]);
    machine.clock.advance(27 * HOUR);
    assert_eq!(found(&machine, "p6"), [""; 0]);
}

#[tokio::test]
async fn a_process_forgets_by_its_own_clock() {
    let machine = Machine { max_entries: 3, ..Machine::new() };
    let process = machine.start("p1");
    for call in ["key-1", "c-2", "key-3"] {
        process.runs(&machine, call).await;
    }
    assert_eq!(process.refused(&machine, "key-4").await, Refusal::TooMany, "nothing is forgotten early");
    process.acked("key-1");
    assert_eq!(process.refused(&machine, "key-4").await, Refusal::TooMany, "a key is not free when its result is safe");
    machine.clock.set_wall(machine.clock.wall() + 1000 * HOUR);
    assert_eq!(process.refused(&machine, "key-4").await, Refusal::TooMany);
    machine.clock.advance(UNKEYED_FOR);
    process.runs(&machine, "key-4").await;
    machine.clock.advance(KEYED_FOR);
    for call in ["key-1", "key-5", "key-6"] {
        process.runs(&machine, call).await;
    }
    process.end();
}
