//! Calls on a clock that the test moves, with a tool that ends when the test says so.

mod before_work;
mod restart;

use super::live::STOP_GRACE;
use super::*;
use crate::clock::{Clock as _, ManualClock};
use crate::permissions::{Action, Permissions};
use crate::tools::{Arguments, CallContext, Plan, Tool, ToolSet};
use footbridge_shared::id::InstanceId;
use footbridge_shared::limits::BUSY_RETRY_AFTER_MS;
use footbridge_shared::message::ToolEntry;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

const SECOND: Duration = Duration::from_secs(1);
/// A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the tool does; it says so when it starts.
#[derive(Clone)]
struct Door {
    runs: Arc<AtomicU64>,
    open: Arc<Semaphore>,
    entered: mpsc::UnboundedSender<CallContext>,
    changes: bool,
}

#[async_trait::async_trait]
impl Tool for Door {
    fn entry(&self) -> ToolEntry {
        let entry = json!({"name": "door", "description": "", "inputSchema": {"type": "object",
            "properties": {"stubborn": {"type": "boolean"}, "bytes": {"type": "integer"}, "panic": {"type": "boolean"},
                "fail": {"type": "string"}, "plan": {"type": "string"}}, "additionalProperties": false}});
        serde_json::from_str(&entry.to_string()).unwrap()
    }

    fn is_read_only(&self) -> bool {
        !self.changes
    }

    async fn plan(&self, arguments: Arguments, ctx: &CallContext) -> Result<Plan, Failure> {
        let (me, wanted) = (self.clone(), arguments.parse::<Value>()?);
        if let Some(plan) = wanted["plan"].as_str() {
            assert!(plan != "panic", "as it was told");
            if plan == "asks" {
                ctx.asking();
            }
            me.entered.send(ctx.clone()).unwrap();
            tokio::select! {
                opened = me.open.acquire() => opened.unwrap().forget(),
                // It knows no better than any tool that breaks off.
                () = ctx.cancelled(), if plan != "stubborn" => {
                    return Err(Failure::new(ErrorCode::Internal, Outcome::Unknown, "broke off"));
                }
            }
        }
        Ok(Plan::new(Action::Nothing, async move |ctx| {
            me.runs.fetch_add(1, Ordering::SeqCst);
            me.entered.send(ctx.clone()).unwrap();
            assert!(wanted["panic"] != true, "as it was told");
            tokio::select! {
                opened = me.open.acquire() => opened.unwrap().forget(),
                () = ctx.cancelled(), if wanted["stubborn"] != true => {
                    ctx.check().map_err(|stopped| stopped.hint("knock louder"))?;
                }
            }
            match wanted["fail"].as_str() {
                Some("not_run") => return Err(Failure::not_run(ErrorCode::NoMatch, "there was nothing to do")),
                Some(_) => return Err(Failure::completed(ErrorCode::ToolFailed, "done, in vain")),
                None => {}
            }
            Ok(ToolOutput::text(&"x".repeat(usize::try_from(wanted["bytes"].as_u64().unwrap_or(1)).unwrap())))
        }))
    }
}

struct Bench {
    calls: Calls,
    clock: Arc<ManualClock>,
    tool: Arc<Registered>,
    door: Door,
    entered: mpsc::UnboundedReceiver<CallContext>,
    state: Arc<tempfile::TempDir>,
    capacity: Capacity,
}

fn bench(running: usize, queued: usize) -> Bench {
    bench_on(Arc::new(tempfile::tempdir().unwrap()), ManualClock::shared(), Capacity { running, queued })
}

/// A process of a foot that keeps its journal in `state`.
fn bench_on(state: Arc<tempfile::TempDir>, clock: Arc<ManualClock>, capacity: Capacity) -> Bench {
    bench_with(state, clock, capacity, true)
}

/// One whose tool changes something or not.
fn bench_with(state: Arc<tempfile::TempDir>, clock: Arc<ManualClock>, capacity: Capacity, changes: bool) -> Bench {
    let (sender, entered) = mpsc::unbounded_channel();
    let door = Door { runs: Arc::default(), open: Arc::new(Semaphore::new(0)), entered: sender, changes };
    let (set, _) = ToolSet::new(vec![Arc::new(door.clone())], &Permissions::for_tests());
    let tool = set.get("door").unwrap();
    let instance = InstanceId::parse(&crate::random::id()).unwrap();
    let (journal, before) = Journal::open(state.path().join("web.journal"), &instance, clock.clone());
    let calls = Calls::new(capacity, clock.clone(), journal, before);
    Bench { calls, clock, tool, door, entered, state, capacity }
}

fn call(id: &str) -> Call {
    with(id, &json!({}))
}

fn with(id: &str, arguments: &Value) -> Call {
    let call = json!({"call": id, "tool": "door", "arguments": arguments, "deadlineMs": 0, "idleMs": 60_000, "sentMs": 0,
        "origin": "hub-1", "caller": {"subject": "ada"}});
    serde_json::from_str(&call.to_string()).unwrap()
}

fn keyed(id: &str, digest: &str) -> Call {
    Call { keyed: true, digest: Some(digest.to_owned()), ..call(id) }
}

fn cancel(id: &str) -> Cancel {
    Cancel { call: CallId::parse(id).unwrap(), reason: "nobody waits".to_owned() }
}

/// What a frame says, in a word or two: `c: result`, `c: deadline_exceeded not_run`.
fn said(frame: &Frame) -> String {
    let value: Value = serde_json::from_str(&frame.text).unwrap();
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    match text("type").as_str() {
        "failure" => format!("{}: {} {}", text("call"), text("code"), text("outcome")),
        other => format!("{}: {other}", text("call")),
    }
}

fn all_said(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(said).collect()
}

impl Bench {
    /// As the session does it: known, else admitted. What is answered at once.
    fn arrive(&mut self, call: Call, left: Duration) -> Option<String> {
        match self.calls.known(&call) {
            Known::New => self.calls.admit(call, self.tool.clone(), left).as_ref().map(said),
            Known::UnderWay => Some("under way".to_owned()),
            Known::Answered(frame) => Some(said(&frame)),
        }
    }

    async fn start(&mut self, call: Call) -> CallContext {
        assert_eq!(self.arrive(call, 60 * SECOND), None);
        self.entered.recv().await.unwrap()
    }

    async fn settle(&mut self) -> Vec<String> {
        let event = tokio::time::timeout(PATIENCE, self.calls.next()).await.expect("nothing happens");
        all_said(&self.calls.settle(event))
    }

    /// The process is killed, and another one starts.
    async fn killed(self) -> Self {
        // What it has said is with the system; the lock of its file goes with it.
        self.calls.flush().await;
        let Self { state, clock, capacity, .. } = self;
        bench_on(state, clock, capacity)
    }

    async fn runs_one(&mut self, call: Call) -> String {
        self.start(call).await;
        self.door.open.add_permits(1);
        self.settle().await.remove(0)
    }

    fn acked(&mut self, call: &str) {
        self.calls.acked(&CallId::parse(call).unwrap());
    }

    /// What `hello` names, in order: `c: Running`.
    fn named(&self) -> Vec<String> {
        self.calls.in_flight().into_iter().map(|known| format!("{}: {:?}", known.call, known.state)).collect()
    }

    fn tick_after(&mut self, time: Duration) -> Vec<String> {
        self.clock.advance(time);
        all_said(&self.calls.tick())
    }
}

#[tokio::test]
async fn a_repeated_call_is_answered_from_what_is_known_and_never_run_again() {
    let mut bench = bench(2, 2);
    bench.start(call("c")).await;
    assert_eq!(bench.arrive(call("c"), SECOND).unwrap(), "under way");
    bench.door.open.add_permits(1);
    assert_eq!(bench.settle().await, ["c: result"]);
    let Known::Answered(again) = bench.calls.known(&Call { origin: "hub-2".to_owned(), ..call("c") }) else { panic!() };
    assert_eq!(said(&again), "c: result");
    assert!(again.text.contains("hub-2"), "the answer goes where the call came from: {}", again.text);
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_keyed_call_is_remembered_after_its_result_is_gone() {
    let mut bench = bench(2, 2);
    bench.start(keyed("k", "digest-1")).await;
    assert_eq!(bench.arrive(keyed("k", "digest-2"), SECOND).unwrap(), "k: id_conflict not_run");
    bench.door.open.add_permits(1);
    bench.settle().await;
    assert_eq!(bench.arrive(keyed("k", "digest-2"), SECOND).unwrap(), "k: id_conflict not_run");
    bench.calls.acked(&CallId::parse("k").unwrap());
    assert_eq!(bench.arrive(keyed("k", "digest-1"), SECOND).unwrap(), "k: result_expired completed");
    bench.tick_after(23 * 60 * 60 * SECOND);
    assert_eq!(bench.arrive(keyed("k", "digest-1"), SECOND).unwrap(), "k: result_expired completed");
    bench.tick_after(2 * 60 * 60 * SECOND);
    assert!(bench.calls.in_flight().is_empty());
    assert!(bench.arrive(keyed("k", "digest-1"), SECOND).is_none(), "after a day the key is free");
}

#[tokio::test]
async fn a_result_is_kept_until_it_is_acknowledged_or_nobody_can_ask() {
    let mut bench = bench(2, 2);
    for id in ["first", "second"] {
        bench.start(call(id)).await;
        bench.door.open.add_permits(1);
        bench.settle().await;
    }
    bench.start(call("third")).await;
    let states: Vec<_> = bench.calls.in_flight().into_iter().map(|known| known.state).collect();
    assert_eq!(states, [InFlightState::Running, InFlightState::Done, InFlightState::Done]);
    assert_eq!(all_said(&bench.calls.unacked()), ["first: result", "second: result"]);
    bench.calls.acked(&CallId::parse("first").unwrap());
    assert_eq!(all_said(&bench.calls.unacked()), ["second: result"]);
    bench.door.open.add_permits(1);
    bench.settle().await;
    bench.tick_after(60 * SECOND + RESUME_GRACE_TWICE);
    assert!(bench.calls.unacked().is_empty(), "the deadline and the grace are over");
}

const RESUME_GRACE_TWICE: Duration = footbridge_shared::limits::RESUME_GRACE.saturating_mul(2);

#[tokio::test]
async fn cancel_answers_once_wherever_the_call_is() {
    let mut bench = bench(1, 2);
    assert!(bench.calls.cancel(&cancel("early")).is_none());
    assert_eq!(bench.arrive(call("early"), SECOND).unwrap(), "early: cancelled not_run", "it came too late");
    bench.tick_after(RESUME_GRACE_TWICE);
    assert!(!matches!(bench.calls.known(&call("early")), Known::Answered(_)));

    bench.start(call("running")).await;
    assert_eq!(bench.arrive(call("queued"), 60 * SECOND), None);
    assert_eq!(said(&bench.calls.cancel(&cancel("queued")).unwrap()), "queued: cancelled not_run");
    assert_eq!(bench.arrive(call("queued"), SECOND), None, "its caller thought again");
    bench.calls.cancel(&cancel("queued"));

    assert!(bench.calls.cancel(&cancel("running")).is_none(), "the work has to end first");
    assert!(bench.calls.cancel(&cancel("running")).is_none());
    assert_eq!(bench.settle().await, ["running: cancelled unknown"]);
    assert_eq!(said(&bench.calls.cancel(&cancel("running")).unwrap()), "running: cancelled unknown");

    bench.start(call("done")).await;
    bench.door.open.add_permits(1);
    bench.settle().await;
    assert_eq!(said(&bench.calls.cancel(&cancel("done")).unwrap()), "done: result", "it was done before");
    assert!(bench.calls.is_idle());
}

#[tokio::test]
async fn work_that_was_done_when_it_was_cancelled_says_so() {
    let mut bench = bench(1, 0);
    bench.start(with("c", &json!({"stubborn": true}))).await;
    bench.calls.cancel(&cancel("c"));
    bench.door.open.add_permits(1);
    assert_eq!(bench.settle().await, ["c: result"]);
}

#[tokio::test]
async fn what_is_late_does_not_run() {
    let mut bench = bench(1, 2);
    assert_eq!(bench.arrive(call("late"), Duration::ZERO).unwrap(), "late: deadline_exceeded not_run");
    bench.start(call("first")).await;
    assert_eq!(bench.arrive(call("waiting"), 5 * SECOND), None);
    assert!(bench.tick_after(4 * SECOND).is_empty());
    assert_eq!(bench.tick_after(SECOND), ["waiting: deadline_exceeded not_run"]);
    bench.door.open.add_permits(1);
    bench.settle().await;
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 1);
    assert_eq!(bench.arrive(call("waiting"), SECOND), None, "it did not run, so the same call may come again");
}

#[tokio::test]
async fn a_deadline_ends_the_work_and_stubborn_work_is_answered_for() {
    let mut bench = bench(1, 1);
    bench.start(call("soft")).await;
    assert!(bench.tick_after(60 * SECOND).is_empty(), "the work is told to end");
    assert_eq!(bench.settle().await, ["soft: deadline_exceeded unknown"]);

    bench.start(with("hard", &json!({"stubborn": true}))).await;
    assert_eq!(bench.arrive(call("next"), 600 * SECOND), None);
    assert!(bench.tick_after(60 * SECOND).is_empty());
    assert!(bench.calls.next_tick() <= STOP_GRACE);
    assert_eq!(bench.tick_after(STOP_GRACE), ["hard: deadline_exceeded unknown"]);
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 2, "its place is not free before it has ended");
    bench.door.open.add_permits(1);
    assert!(bench.settle().await.is_empty(), "one answer is enough");
    bench.entered.recv().await.unwrap();
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn signs_of_life_move_the_idle_limit_and_not_the_deadline() {
    let mut bench = bench(1, 0);
    let ctx = bench.start(Call { idle_ms: 10_000, ..call("c") }).await;
    for _ in 0..5 {
        assert!(bench.tick_after(9 * SECOND).is_empty());
        ctx.progress(1.0, None, "still here");
        assert_eq!(bench.settle().await, ["c: progress"]);
    }
    assert!(bench.tick_after(10 * SECOND).is_empty());
    let event = bench.calls.next().await;
    let frames = bench.calls.settle(event);
    assert_eq!(all_said(&frames), ["c: deadline_exceeded unknown"]);
    assert!(frames[0].text.contains("10000 ms"), "{}", frames[0].text);
    assert!(frames[0].text.contains("knock louder"), "what the tool says would have helped: {}", frames[0].text);

    let ctx = bench.start(call("d")).await;
    for _ in 0..60 {
        bench.clock.advance(SECOND);
        ctx.progress(1.0, None, "");
        bench.calls.tick();
    }
    while !bench.settle().await.contains(&"d: deadline_exceeded unknown".to_owned()) {}
}

#[tokio::test]
async fn progress_goes_before_the_result() {
    let mut bench = bench(1, 0);
    let ctx = bench.start(call("c")).await;
    ctx.progress(1.0, Some(2.0), "half");
    bench.door.open.add_permits(1);
    let mut said = Vec::new();
    while said.last() != Some(&"c: result".to_owned()) {
        said.extend(bench.settle().await);
    }
    assert_eq!(said, ["c: progress", "c: result"]);
    ctx.progress(2.0, None, "late");
}

#[tokio::test]
async fn a_full_foot_says_so_and_when_to_come_again() {
    let mut bench = bench(2, 1);
    bench.start(call("a")).await;
    bench.start(call("b")).await;
    assert_eq!(bench.arrive(call("c"), 60 * SECOND), None);
    let Known::New = bench.calls.known(&call("d")) else { panic!() };
    let frame = bench.calls.admit(call("d"), bench.tool.clone(), 60 * SECOND).unwrap();
    let answer: Value = serde_json::from_str(&frame.text).unwrap();
    assert_eq!((&answer["code"], &answer["outcome"]), (&json!("foot_busy"), &json!("not_run")));
    assert_eq!((&answer["retryable"], &answer["retryAfterMs"]), (&json!(true), &json!(BUSY_RETRY_AFTER_MS)));
    bench.door.open.add_permits(1);
    bench.settle().await;
    bench.entered.recv().await.unwrap();
    assert_eq!(bench.arrive(call("d"), 60 * SECOND), None, "there is room again");
}

#[tokio::test]
async fn a_result_beyond_the_limit_is_a_failure_of_a_call_that_ran() {
    let mut bench = bench(1, 0);
    bench.door.open.add_permits(3);
    for (id, bytes, expected) in [
        ("fits", MAX_RESULT_BYTES - 500, "fits: result"),
        ("edge", MAX_RESULT_BYTES - 10, "edge: result_too_large completed"),
        ("huge", 2 * MAX_RESULT_BYTES, "huge: result_too_large completed"),
    ] {
        bench.start(with(id, &json!({"bytes": bytes}))).await;
        assert_eq!(bench.settle().await, [expected]);
    }
    assert_eq!(bench.arrive(call("edge"), SECOND).unwrap(), "edge: result_too_large completed");
    // Another hub may accept less.
    bench.calls.set_message_bytes(2_000);
    assert_eq!(all_said(&bench.calls.unacked())[0], "fits: result_too_large completed");
}

#[tokio::test]
async fn wrong_arguments_do_not_run_and_a_panic_is_one_failure() {
    let mut bench = bench(1, 1);
    assert_eq!(bench.arrive(with("bad", &json!({"colour": 1})), SECOND), None);
    assert_eq!(bench.settle().await, ["bad: invalid_arguments not_run"]);
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 0);
    bench.start(with("panic", &json!({"panic": true}))).await;
    assert_eq!(bench.settle().await, ["panic: internal unknown"]);
    bench.start(call("next")).await;
}

#[tokio::test]
async fn the_end_of_the_foot_ends_its_calls() {
    let mut bench = bench(1, 1);
    bench.start(call("running")).await;
    bench.arrive(call("waiting"), 60 * SECOND);
    assert_eq!(all_said(&bench.calls.stop_all()), ["waiting: cancelled not_run"]);
    assert!(!bench.calls.is_idle());
    assert_eq!(bench.settle().await, ["running: cancelled unknown"]);
    assert!(bench.calls.is_idle());
}

#[tokio::test]
async fn what_waited_through_a_lost_grace_does_not_run() {
    let mut bench = bench(1, 1);
    bench.start(call("running")).await;
    bench.arrive(call("waiting"), 60 * SECOND);
    bench.calls.drop_waiting();
    bench.door.open.add_permits(2);
    assert_eq!(bench.settle().await, ["running: result"]);
    assert!(bench.calls.is_idle());
    assert_eq!(bench.door.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_foot_that_cannot_remember_more_refuses_instead_of_forgetting() {
    let mut bench = bench(1, 0);
    let mut count = 0;
    loop {
        bench.door.open.add_permits(1);
        let id = format!("c{count}");
        if let Some(answer) = bench.arrive(with(&id, &json!({"bytes": 60_000})), 60 * SECOND) {
            assert_eq!(answer, format!("{id}: foot_busy not_run"));
            break;
        }
        bench.entered.recv().await.unwrap();
        bench.settle().await;
        count += 1;
    }
    assert!((500..700).contains(&count), "{count} results of 60 kB are kept");
    assert_eq!(bench.arrive(call("c0"), SECOND).unwrap(), "c0: result");
    bench.calls.acked(&CallId::parse("c0").unwrap());
    assert_eq!(bench.arrive(with("more", &json!({})), 60 * SECOND), None);
    assert!(bench.clock.boot() > Duration::ZERO);
}
