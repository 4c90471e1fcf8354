//! Calls that are stopped before their work begins: they did not run, and do not.

use super::*;

fn planning(id: &str, plan: &str) -> Call {
    with(id, &json!({"plan": plan}))
}

#[tokio::test]
async fn a_call_that_is_stopped_before_its_work_did_not_run_whatever_it_says() {
    let mut bench = bench(1, 1);
    for (id, plan) in [("prepares", "waits"), ("asks", "asks")] {
        bench.start(planning(id, plan)).await;
        assert!(bench.calls.cancel(&cancel(id)).is_none());
        assert_eq!(bench.settle().await, [format!("{id}: cancelled not_run")]);
    }
    bench.start(planning("late", "asks")).await;
    assert!(bench.tick_after(60 * SECOND).is_empty(), "a person is asked, until nobody waits any more");
    assert_eq!(bench.settle().await, ["late: deadline_exceeded not_run"]);
    assert_eq!(bench.arrive(planning("panics", "panic"), SECOND), None);
    assert_eq!(bench.settle().await, ["panics: internal not_run"]);
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 0);
    assert_eq!(bench.runs_one(call("late")).await, "late: result", "it did not run, so it may");
}

#[tokio::test]
async fn a_call_that_was_answered_with_not_run_does_not_run_later() {
    let mut bench = bench(2, 2);
    bench.start(planning("c", "stubborn")).await;
    bench.calls.cancel(&cancel("c"));
    assert_eq!(bench.tick_after(STOP_GRACE), ["c: cancelled not_run"]);
    // The same call comes again and works; then what the first one waited for happens.
    bench.start(call("c")).await;
    bench.door.open.add_permits(2);
    let mut answers = Vec::new();
    while !bench.calls.tasks.is_empty() {
        answers.extend(bench.settle().await);
    }
    assert_eq!(answers, ["c: result"]);
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 1);
    let mut next = bench.killed().await;
    assert_eq!(next.arrive(call("c"), SECOND).unwrap(), "c: result_expired completed");
}

#[tokio::test]
async fn what_had_not_begun_when_the_grace_was_lost_does_not_run() {
    let mut bench = bench(3, 3);
    bench.start(call("works")).await;
    bench.start(planning("asks", "asks")).await;
    bench.start(planning("prepares", "stubborn")).await;
    assert_eq!(bench.arrive(call("waits"), 60 * SECOND), None);
    let mut named = bench.named();
    named[..2].sort();
    assert_eq!(named, ["prepares: Running", "works: Running", "asks: Asking", "waits: Queued"]);

    bench.calls.drop_waiting();
    assert_eq!(bench.settle().await, ["asks: foot_gone not_run"]);
    bench.door.open.add_permits(2);
    let mut answers = [bench.settle().await, bench.settle().await].concat();
    answers.sort();
    assert_eq!(answers, ["prepares: foot_gone not_run", "works: result"]);
    assert!(bench.calls.is_idle());
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 1);
}
