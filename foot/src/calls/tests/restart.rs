//! What a process of a foot knows of the calls of those before it.

use super::*;

#[tokio::test]
async fn a_call_that_a_former_process_began_is_answered_and_never_run_again() {
    let mut first = bench(4, 4);
    first.runs_one(keyed("k-done", "d")).await;
    first.start(keyed("k-open", "d")).await;
    first.start(call("c-open")).await;
    let mut second = first.killed().await;
    for (call, expected) in [
        (keyed("k-open", "d"), "k-open: foot_restarted unknown"),
        (call("c-open"), "c-open: foot_restarted unknown"),
        (keyed("k-done", "d"), "k-done: result_expired completed"),
        (keyed("k-done", "other"), "k-done: id_conflict not_run"),
    ] {
        for _ in 0..2 {
            assert_eq!(second.arrive(call.clone(), 60 * SECOND).unwrap(), expected);
        }
    }
    assert_eq!(said(&second.calls.cancel(&cancel("k-open")).unwrap()), "k-open: foot_restarted unknown");
    let Known::Answered(frame) = second.calls.known(&Call { origin: "hub-2".to_owned(), ..keyed("k-open", "d") })
    else {
        panic!()
    };
    let answer: Value = serde_json::from_str(&frame.text).unwrap();
    assert_eq!((&answer["origin"], &answer["retryable"]), (&json!("hub-2"), &json!(false)));
    assert!(answer["hint"].is_string());
    assert_eq!(second.door.runs.load(Ordering::SeqCst), 0);
    // And so does the third: the second took it over.
    let mut third = second.killed().await;
    assert_eq!(third.arrive(keyed("k-open", "d"), SECOND).unwrap(), "k-open: foot_restarted unknown");
}

#[tokio::test]
async fn the_true_outcome_survives_and_what_did_not_run_may_run() {
    let mut first = bench(4, 4);
    for (id, fail, expected) in
        [("failed", "in vain", "failed: tool_failed completed"), ("nothing", "not_run", "nothing: no_match not_run")]
    {
        let call = Call { keyed: true, ..with(id, &json!({"fail": fail})) };
        assert_eq!(first.runs_one(call).await, expected);
    }
    first.start(Call { keyed: true, ..call("stopped") }).await;
    first.calls.cancel(&cancel("stopped"));
    assert_eq!(first.settle().await, ["stopped: cancelled unknown"]);
    let mut second = first.killed().await;
    let again = |id: &str| Call { keyed: true, ..call(id) };
    assert_eq!(second.arrive(again("failed"), SECOND).unwrap(), "failed: result_expired completed");
    assert_eq!(second.arrive(again("stopped"), SECOND).unwrap(), "stopped: foot_restarted unknown");
    assert_eq!(second.runs_one(again("nothing")).await, "nothing: result");
}

#[tokio::test]
async fn hello_names_calls_with_a_key_until_the_hub_has_them() {
    let mut first = bench(4, 4);
    first.runs_one(keyed("k-1", "d")).await;
    first.runs_one(keyed("k-2", "d")).await;
    first.runs_one(call("c-3")).await;
    first.runs_one(keyed("k-acked", "d")).await;
    first.acked("k-acked");
    let mut second = first.killed().await;
    let mut named = second.calls.in_flight();
    named.sort_by(|a, b| a.call.cmp(&b.call));
    let named: Vec<Value> = named.iter().map(|known| serde_json::to_value(known).unwrap()).collect();
    let entry = |id: &str| json!({"call": id, "digest": "d", "state": "done", "origin": "hub-1"});
    assert_eq!(named, [entry("k-1"), entry("k-2")]);
    assert!(second.calls.unacked().is_empty(), "there is no payload to send by itself");
    assert!(second.calls.is_settled(), "nor any that keeps it from leaving");

    second.acked("k-1");
    assert_eq!(second.named(), ["k-2: Done"]);
    assert_eq!(second.arrive(keyed("k-1", "d"), SECOND).unwrap(), "k-1: result_expired completed");
    // What this process can still answer goes first.
    second.runs_one(keyed("k-0", "d")).await;
    second.start(call("c-4")).await;
    assert_eq!(second.named(), ["c-4: Running", "k-0: Done", "k-2: Done"]);
    let third = second.killed().await;
    let mut named = third.named();
    named.sort();
    assert_eq!(named, ["k-0: Done", "k-2: Done"]);
}

#[tokio::test]
async fn two_processes_that_overlap_run_a_call_once() {
    let mut old = bench(4, 4);
    let mut new = bench_on(old.state.clone(), old.clock.clone(), old.capacity);
    assert_eq!(old.runs_one(keyed("done", "d")).await, "done: result");
    old.calls.flush().await;
    assert_eq!(new.arrive(keyed("done", "other"), 60 * SECOND), None, "it has never heard of it");
    assert_eq!(new.settle().await, ["done: id_conflict not_run"]);
    assert_eq!(new.arrive(keyed("done", "d"), 60 * SECOND).unwrap(), "done: result_expired completed", "now it has");
    // The old one had it in its socket when the new one took its place.
    old.start(keyed("k", "d")).await;
    assert_eq!(new.arrive(keyed("k", "d"), 60 * SECOND), None);
    assert_eq!(new.settle().await, ["k: foot_restarted unknown"]);
    assert_eq!(new.arrive(keyed("k", "d"), 60 * SECOND).unwrap(), "k: foot_restarted unknown");
    assert_eq!((old.door.runs.load(Ordering::SeqCst), new.door.runs.load(Ordering::SeqCst)), (2, 0));
}

#[tokio::test]
async fn what_changes_nothing_leaves_nothing() {
    let changing = bench(1, 1);
    let Bench { state, clock, capacity, .. } = changing.killed().await;
    let journal = || {
        let folder = state.path().join("web.journal");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    let mut reading = bench_with(state.clone(), clock, capacity, false);
    let before = journal();
    assert_eq!(reading.runs_one(keyed("k", "d")).await, "k: result");
    reading.acked("k");
    assert_eq!(reading.arrive(keyed("k", "d"), SECOND).unwrap(), "k: result_expired completed", "this process knows");
    reading.calls.flush().await;
    assert_eq!(journal(), before);
}

#[tokio::test]
async fn a_foot_that_cannot_write_refuses_what_changes_something() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    std::fs::write(state.path().join("web.journal"), "in the way").unwrap();
    let (clock, capacity) = (ManualClock::shared(), Capacity { running: 2, queued: 2 });
    let mut changing = bench_on(state.clone(), clock.clone(), capacity);
    assert_eq!(changing.arrive(call("c"), 60 * SECOND), None);
    assert_eq!(changing.settle().await, ["c: storage_unavailable not_run"]);
    assert_eq!(changing.door.runs.load(Ordering::SeqCst), 0);
    let mut reading = bench_with(state.clone(), clock, capacity, false);
    assert_eq!(reading.runs_one(call("c")).await, "c: result");
    std::fs::remove_file(state.path().join("web.journal")).unwrap();
    assert_eq!(changing.runs_one(call("c")).await, "c: result", "it did not run before");
}

#[tokio::test]
async fn a_foot_that_remembers_all_it_can_runs_what_changes_nothing() {
    let clock = ManualClock::shared();
    let (state, capacity) = (Arc::new(tempfile::tempdir().unwrap()), Capacity { running: 2, queued: 2 });
    for (changes, expected) in [(true, Some("c: storage_full not_run".to_owned())), (false, None)] {
        let mut bench = bench_with(state.clone(), clock.clone(), capacity, changes);
        for n in 0..journal::MAX_ENTRIES {
            let entry = Entry {
                keyed: true,
                digest: None,
                origin: String::new(),
                outcome: Some(Outcome::Completed),
                acked: true,
                until: Duration::MAX,
            };
            bench.calls.kept.keep_before(CallId::parse(&format!("k-{n}")).unwrap(), Done::before(entry));
        }
        assert_eq!(bench.arrive(keyed("c", "d"), 60 * SECOND), expected);
        if !changes {
            bench.entered.recv().await.unwrap();
            bench.door.open.add_permits(1);
            assert_eq!(bench.settle().await, ["c: result"]);
            bench.acked("c");
            assert_eq!(bench.arrive(keyed("c", "d"), 60 * SECOND), None, "to run it again harms nobody");
        }
    }
}
