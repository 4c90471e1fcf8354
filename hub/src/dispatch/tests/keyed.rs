//! Calls with a key: run once, whatever happens around them. A hub that was killed is another dispatcher over the same
//! journal.

use std::sync::atomic::AtomicUsize;

use footbridge_shared::id::{FootKey, FootName, InstanceId};
use tokio::sync::Semaphore;

use super::journal::Broken;
use super::*;
use crate::dispatch::found::Found;
use crate::domain::call::Receipt;
use crate::domain::journal::{Kept, LateResults};

/// How a run of [`Worker`] goes.
#[derive(Debug, Clone, Copy)]
enum Goes {
    /// The foot, or the hub itself, has a result.
    Well,
    /// The foot says that it has enough to do.
    Busy,
    /// The foot says that it ran before, and that the result is not there any more.
    Expired,
    /// The foot is lost sight of.
    Gone,
    /// It does not end.
    On,
}

/// A tool that counts its runs, and the foot that it runs on, if it does.
struct Worker {
    target: Option<FootTarget>,
    goes: Mutex<Goes>,
    runs: AtomicUsize,
    receipts: Arc<AtomicUsize>,
    /// Lets runs end, one for each permit.
    gate: Semaphore,
    ids: Mutex<Vec<(CallId, Option<String>)>>,
}

impl Worker {
    fn new(target: Option<FootTarget>) -> Arc<Self> {
        let receipts = Arc::default();
        let (goes, ids) = (Mutex::new(Goes::Well), Mutex::default());
        Arc::new(Self { target, goes, runs: AtomicUsize::new(0), receipts, gate: Semaphore::new(1_000), ids })
    }

    fn goes(&self, how: Goes) {
        *self.goes.lock().unwrap() = how;
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    fn receipts(&self) -> usize {
        self.receipts.load(Ordering::SeqCst)
    }

    fn receipt(&self) -> Receipt {
        let receipts = self.receipts.clone();
        Box::new(move || {
            receipts.fetch_add(1, Ordering::SeqCst);
        })
    }
}

#[async_trait]
impl ToolHandler for Worker {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.ids.lock().unwrap().push((ctx.call.clone(), ctx.keyed.as_ref().map(|keyed| keyed.digest().to_owned())));
        self.gate.acquire().await.unwrap().forget();
        ctx.emit(CallEvent::Progress { progress: 1.0, total: None, message: None });
        let goes = *self.goes.lock().unwrap();
        let said = match goes {
            Goes::Well => Ok(ToolOutput::text(&format!("run {run}"))),
            Goes::Busy => Err(Failure::not_run(ErrorCode::FootBusy, "busy").retry_after_ms(5)),
            Goes::Expired => Err(Failure::new(ErrorCode::ResultExpired, Outcome::Completed, "it was acknowledged")),
            Goes::Gone => return Err(Failure::new(ErrorCode::FootGone, Outcome::Unknown, "gone")),
            Goes::On => {
                ctx.cancel.cancelled().await;
                Err(Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "stopped"))
            }
        };
        if let (Some(keyed), Some(_)) = (&ctx.keyed, &self.target) {
            keyed.answered(self.receipt());
        }
        said
    }

    fn runs_on(&self) -> Option<FootTarget> {
        self.target.clone()
    }
}

fn target() -> FootTarget {
    FootTarget {
        owner: Subject::parse("ann").unwrap(),
        foot: FootName::parse("dev").unwrap(),
        key: FootKey::parse(&"k".repeat(43)).unwrap(),
        instance: InstanceId::parse("i").unwrap(),
        local: ToolName::parse("work").unwrap(),
    }
}

/// Where the foot is.
struct Feet(Mutex<Where>);

enum Where {
    Here(Arc<Tool>),
    Away,
    Replaced,
}

impl FootRecall for Feet {
    fn recall(&self, _: &Scope, _: &FootTarget, _: &ToolName) -> Recall {
        match &*self.0.lock().unwrap() {
            Where::Here(tool) => Recall::Here(tool.clone()),
            Where::Away => Recall::Away,
            Where::Replaced => Recall::Replaced,
        }
    }

    fn stop(&self, _: &Scope, _: &FootTarget, _: &CallId) {}
}

/// A hub with one tool, `work`.
struct Stage {
    dispatcher: Arc<Dispatcher>,
    keyed: Arc<KeyedCalls>,
    journal: Arc<Journal>,
    worker: Arc<Worker>,
    feet: Arc<Feet>,
    lifecycle: Lifecycle,
}

impl Stage {
    fn new(target: Option<FootTarget>) -> Self {
        Self::over(Journal::new(), Worker::new(target))
    }

    /// Another hub over the same journal, as after a kill.
    fn restarted(&self) -> Self {
        Self::over(self.journal.clone(), self.worker.clone())
    }

    fn over(journal: Arc<Journal>, worker: Arc<Worker>) -> Self {
        let (name, tool) = tool("work", Does::Deaf, None);
        let tool = Arc::new(Tool { spec: tool.spec.clone(), schema: None, handler: worker.clone() });
        let feet = Arc::new(Feet(Mutex::new(Where::Here(tool.clone()))));
        let tools = BTreeMap::from([(name, tool)]);
        let empty = || Arc::new(Tools(Arc::default()));
        let built_in = Arc::new(Tools(Arc::new(Listing { tools, ..Listing::default() })));
        let sources = Sources { configured: empty(), built_in, client: empty() };
        let (lifecycle, keyed) = (Lifecycle::new(), KeyedCalls::new(journal.clone(), Arc::new(SystemClock)));
        let dispatcher = Dispatcher::new(DispatcherParts {
            sources,
            listeners: Vec::new(),
            keyed: keyed.clone(),
            feet: feet.clone(),
            lifecycle: lifecycle.clone(),
        });
        Self { dispatcher, keyed, journal, worker, feet, lifecycle }
    }

    fn foot_is(&self, place: Where) {
        *self.feet.0.lock().unwrap() = place;
    }

    async fn start(&self, key: &str) -> Result<RunningCall, Failure> {
        self.dispatcher.start(keyed("work", key)).await
    }

    /// Text of the result or `code outcome`, and whether it is a replay.
    async fn call(&self, key: &str) -> (String, bool) {
        match self.start(key).await {
            Ok(running) => {
                let replayed = running.is_replayed();
                (told(running.wait().await.0.as_ref()), replayed)
            }
            Err(failure) => (told(&Err(failure)), false),
        }
    }

    async fn found(&self, running: &CallId) -> Found {
        self.dispatcher.find(&request("work").scope, running.as_str()).await.unwrap().unwrap()
    }
}

fn told(result: &Result<ToolOutput, Failure>) -> String {
    match result {
        Ok(output) => output.joined_text(),
        Err(failure) => format!("{} {:?}", failure.code, failure.outcome),
    }
}

fn keyed(name: &str, key: &str) -> CallRequest {
    CallRequest { key: Some(IdempotencyKey::parse(key).unwrap()), ..request(name) }
}

#[tokio::test]
async fn the_same_key_at_the_same_moment_runs_once() {
    let stage = Stage::new(None);
    let all = futures::future::join_all((0..50).map(|_| stage.call("k"))).await;
    assert!(all.iter().all(|(text, _)| text == "run 1"), "{all:?}");
    assert_eq!(stage.worker.runs(), 1);
    assert_eq!(stage.call("k").await, ("run 1".to_owned(), true));
    assert_eq!(stage.call("other").await, ("run 2".to_owned(), false));
    assert_eq!(stage.keyed.being_admitted(), 0, "nothing is left of who was admitted");
}

#[tokio::test]
async fn a_key_stands_for_one_call_of_one_caller() {
    let stage = Stage::new(None);
    stage.call("k").await;
    let arguments = Arguments::new(RawValue::from_string(r#"{"a":1}"#.to_owned()).unwrap());
    let refused = stage.dispatcher.start(CallRequest { arguments, ..keyed("work", "k") }).await.err().unwrap();
    assert_eq!((refused.code, refused.outcome), (ErrorCode::IdempotencyKeyReused, Outcome::NotRun));
    let bob = Arc::new(Caller::direct(Subject::parse("bob").unwrap()));
    let running = stage.dispatcher.start(CallRequest { caller: bob, ..keyed("work", "k") }).await.unwrap();
    assert_eq!(told(running.wait().await.0.as_ref()), "run 2");
    // While it runs, too.
    stage.worker.gate.forget_permits(1_000);
    let running = stage.start("k2").await.unwrap();
    let arguments = Arguments::new(RawValue::from_string(r#"{"a":1}"#.to_owned()).unwrap());
    let refused = stage.dispatcher.start(CallRequest { arguments, ..keyed("work", "k2") }).await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::IdempotencyKeyReused);
    stage.worker.gate.add_permits(1);
    running.wait().await;
}

#[tokio::test]
async fn a_keyed_call_outlives_its_caller_and_its_hub_keeps_the_end() {
    let stage = Stage::new(None);
    stage.worker.gate.forget_permits(1_000);
    let running = stage.start("k").await.unwrap();
    let call = running.entry().call.clone();
    drop(running);
    stage.worker.gate.add_permits(1);
    let found = stage.dispatcher.await_end(stage.found(&call).await, SECOND).await;
    assert_eq!(told(found.entry.result().unwrap().0.as_ref()), "run 1");
    assert_eq!(stage.lifecycle.shut_down(SECOND).await, 0);
    let restarted = stage.restarted();
    assert_eq!(told(restarted.found(&call).await.entry.result().unwrap().0.as_ref()), "run 1");
    assert_eq!(restarted.call("k").await, ("run 1".to_owned(), true));
}

#[tokio::test]
async fn an_end_is_replayed_though_the_tool_is_gone() {
    let stage = Stage::new(None);
    stage.call("k").await;
    let mut restarted = stage.restarted();
    let none = || Arc::new(Tools(Arc::default()));
    restarted.dispatcher = Dispatcher::new(DispatcherParts {
        sources: Sources { configured: none(), built_in: none(), client: none() },
        listeners: Vec::new(),
        keyed: restarted.keyed.clone(),
        feet: restarted.feet.clone(),
        lifecycle: restarted.lifecycle.clone(),
    });
    assert_eq!(restarted.call("k").await, ("run 1".to_owned(), true));
    assert_eq!(restarted.call("k2").await, ("unknown_tool NotRun".to_owned(), false));
}

#[tokio::test]
async fn what_certainly_did_not_run_frees_its_key() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::Busy);
    assert_eq!(stage.call("k").await.0, "foot_busy NotRun");
    assert_eq!(stage.worker.receipts(), 1);
    stage.worker.goes(Goes::Well);
    assert_eq!(stage.call("k").await, ("run 2".to_owned(), false));
}

#[tokio::test]
async fn nothing_runs_that_could_not_be_written_down() {
    let stage = Stage::new(None);
    for code in [ErrorCode::StorageFull, ErrorCode::StorageUnavailable] {
        stage.journal.breaks(Some(Broken::Begin(code)));
        assert_eq!(stage.call("k").await.0, format!("{code} NotRun"));
    }
    assert_eq!(stage.worker.runs(), 0);
    stage.journal.breaks(None);
    assert_eq!(stage.call("k").await, ("run 1".to_owned(), false));
}

#[tokio::test]
async fn an_end_that_cannot_be_written_down_reaches_its_caller_and_stays_with_the_foot() {
    for on_foot in [Some(target()), None] {
        let stage = Stage::new(on_foot.clone());
        stage.journal.breaks(Some(Broken::End));
        assert_eq!(stage.call("k").await.0, "run 1");
        assert_eq!(stage.worker.receipts(), 0, "the foot has to keep it");
        stage.journal.breaks(None);
        let again = stage.call("k").await;
        if on_foot.is_some() {
            // Asked again, a foot answers from its own journal; this one only counts.
            assert_eq!((again.0.as_str(), stage.worker.receipts()), ("run 2", 1));
            let ids = stage.worker.ids.lock().unwrap().clone();
            assert_eq!(ids[0], ids[1], "the same id and digest");
        } else {
            assert_eq!(again.0, "draining Unknown");
            assert_eq!(stage.worker.runs(), 1);
        }
    }
}

#[tokio::test]
async fn a_hub_that_was_killed_in_a_call_of_its_own_does_not_know_and_says_so() {
    let stage = Stage::new(None);
    stage.worker.gate.forget_permits(1_000);
    let running = stage.start("k").await.unwrap();
    let call = running.entry().call.clone();
    let restarted = stage.restarted();
    assert_eq!(restarted.call("k").await, ("draining Unknown".to_owned(), true));
    assert_eq!(restarted.call("k").await, ("draining Unknown".to_owned(), true), "and goes on saying so");
    assert_eq!(told(restarted.found(&call).await.entry.result().unwrap().0.as_ref()), "draining Unknown");
    assert_eq!(stage.worker.runs(), 1);
}

#[tokio::test]
async fn a_call_is_collected_from_the_foot_that_has_it() {
    let stage = Stage::new(Some(target()));
    stage.worker.gate.forget_permits(1_000);
    let running = stage.start("k").await.unwrap();
    let call = running.entry().call.clone();
    stage.lifecycle.hard().cancel();
    assert_eq!(told(running.wait().await.0.as_ref()), "draining Unknown");
    let restarted = stage.restarted();
    let here = std::mem::replace(&mut *restarted.feet.0.lock().unwrap(), Where::Away);
    for _ in 0..2 {
        assert_eq!(restarted.call("k").await.0, "foot_unavailable Unknown");
    }
    assert!(restarted.found(&call).await.away().is_some());
    restarted.foot_is(here);
    stage.worker.gate.add_permits(2);
    assert_eq!(
        restarted.call("k").await,
        ("run 2".to_owned(), false),
        "this foot runs what it is asked, a real one knows"
    );
    let ids = stage.worker.ids.lock().unwrap().clone();
    assert_eq!(ids[0], ids[1]);
    assert_eq!(restarted.call("k").await, ("run 2".to_owned(), true));
}

#[tokio::test]
async fn a_guess_about_a_call_that_a_foot_may_have_is_never_certain() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::Gone);
    assert_eq!(stage.call("k").await.0, "foot_gone Unknown");
    // The row is open still: the foot is asked.
    stage.worker.goes(Goes::Well);
    assert_eq!(stage.call("k").await, ("run 2".to_owned(), false));
    // What did not run says its foot, and that is certain.
    stage.worker.goes(Goes::Gone);
    stage.call("k2").await;
    stage.worker.goes(Goes::Busy);
    assert_eq!(stage.call("k2").await.0, "foot_busy NotRun");
}

#[tokio::test]
async fn another_foot_under_the_same_name_is_not_asked() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::Gone);
    stage.call("k").await;
    stage.foot_is(Where::Replaced);
    assert_eq!(stage.call("k").await, ("foot_gone Unknown".to_owned(), true));
    stage.foot_is(Where::Away);
    assert_eq!(stage.call("k").await, ("foot_gone Unknown".to_owned(), true), "it is written down");
    assert_eq!(stage.worker.runs(), 1);
}

#[tokio::test]
async fn what_a_foot_brings_late_is_kept_for_its_own_calls_alone() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::Gone);
    let running = stage.start("k").await.unwrap();
    let call = running.entry().call.clone();
    running.wait().await;
    let scope = request("work").scope;
    let output = || Ok(ToolOutput::text("late"));
    let thief = FootKey::parse(&"t".repeat(43)).unwrap();
    assert_eq!(stage.keyed.keep(&scope, &thief, &call, output()).await, Kept::Unwanted);
    let elsewhere = request_of("other", "work").scope;
    assert_eq!(stage.keyed.keep(&elsewhere, &target().key, &call, output()).await, Kept::Unwanted);
    for broken in [Broken::End, Broken::Find] {
        stage.journal.breaks(Some(broken));
        assert_eq!(stage.keyed.keep(&scope, &target().key, &call, output()).await, Kept::NotNow);
    }
    stage.journal.breaks(None);
    assert_eq!(stage.keyed.keep(&scope, &target().key, &call, output()).await, Kept::Stored);
    assert_eq!(
        told(stage.found(&call).await.entry.result().unwrap().0.as_ref()),
        "late",
        "not what was guessed before"
    );
    assert_eq!(stage.call("k").await, ("late".to_owned(), true));
    assert_eq!(stage.keyed.keep(&scope, &target().key, &call, output()).await, Kept::Stored, "again and again");
}

#[tokio::test]
async fn a_retry_that_a_late_result_overtakes_answers_that_result() {
    for goes in [Goes::Expired, Goes::Gone] {
        let stage = Stage::new(Some(target()));
        stage.worker.goes(Goes::Gone);
        stage.call("k").await;
        // The retry found the row open and is with the foot, which has brought its result meanwhile.
        stage.worker.gate.forget_permits(1_000);
        stage.worker.goes(goes);
        let retry = stage.start("k").await.unwrap();
        let late = Ok(ToolOutput::text("late"));
        let kept = stage.keyed.keep(&request("work").scope, &target().key, &retry.entry().call, late).await;
        assert_eq!(kept, Kept::Stored);
        stage.worker.gate.add_permits(1);
        let call = retry.entry().call.clone();
        assert_eq!(told(retry.wait().await.0.as_ref()), "late", "{goes:?}");
        assert_eq!(told(stage.found(&call).await.entry.result().unwrap().0.as_ref()), "late", "{goes:?}");
        assert_eq!(stage.call("k").await, ("late".to_owned(), true), "{goes:?}");
    }
}

#[tokio::test]
async fn a_late_word_that_a_call_did_not_run_takes_no_row_from_its_retry() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::Gone);
    stage.call("k").await;
    stage.worker.gate.forget_permits(1_000);
    stage.worker.goes(Goes::Well);
    let retry = stage.start("k").await.unwrap();
    let late = Err(Failure::not_run(ErrorCode::DeadlineExceeded, "the first try came too late"));
    let kept = stage.keyed.keep(&request("work").scope, &target().key, &retry.entry().call, late).await;
    assert_eq!(kept, Kept::Stored);
    stage.worker.gate.add_permits(1);
    assert_eq!(told(retry.wait().await.0.as_ref()), "run 2");
    assert_eq!(stage.restarted().call("k").await, ("run 2".to_owned(), true), "its end is written down");
}

#[tokio::test]
async fn a_foot_that_says_late_that_a_call_did_not_run_frees_its_key() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::Gone);
    let running = stage.start("k").await.unwrap();
    let call = running.entry().call.clone();
    running.wait().await;
    let late = Err(Failure::not_run(ErrorCode::DeadlineExceeded, "it came too late"));
    assert_eq!(stage.keyed.keep(&request("work").scope, &target().key, &call, late).await, Kept::Stored);
    let shown = stage.found(&call).await.entry.result().unwrap().0;
    assert_eq!(told(shown.as_ref()), "deadline_exceeded NotRun");
    stage.worker.goes(Goes::Well);
    assert_eq!(stage.call("k").await, ("run 2".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_call_that_is_away_is_woken_when_it_ends() {
    let stage = Stage::new(Some(target()));
    stage.worker.gate.forget_permits(1_000);
    let call = stage.start("k").await.unwrap().entry().call.clone();
    let restarted = stage.restarted();
    let waiting = async {
        let found = restarted.found(&call).await;
        restarted.dispatcher.await_end(found, 60 * SECOND).await
    };
    let bringing = async {
        sleep(5 * SECOND).await;
        let output = Ok(ToolOutput::text("late"));
        restarted.keyed.keep(&request("work").scope, &target().key, &call, output).await
    };
    let begun = Instant::now();
    let (found, kept) = tokio::join!(waiting, bringing);
    assert_eq!((kept, told(found.entry.result().unwrap().0.as_ref())), (Kept::Stored, "late".to_owned()));
    assert_eq!(begun.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_call_that_is_cancelled_ends_as_its_foot_says() {
    let stage = Stage::new(Some(target()));
    stage.worker.goes(Goes::On);
    let running = stage.start("k").await.unwrap();
    stage.dispatcher.stop(&stage.found(&running.entry().call.clone()).await);
    assert_eq!(told(running.wait().await.0.as_ref()), "cancelled Unknown");
    assert_eq!(stage.call("k").await, ("cancelled Unknown".to_owned(), true));
}

#[tokio::test]
async fn calls_that_a_keyed_one_makes_have_no_key() {
    let (dispatcher, _) = dispatcher(Vec::new());
    let running = dispatcher.start(keyed("nest", "k")).await.unwrap();
    assert_eq!(told(running.wait().await.0.as_ref()), MAX_DEPTH.to_string());
    let stage = Stage::new(None);
    stage.call("k").await;
    stage.dispatcher.start(request("work")).await.unwrap().wait().await;
    let ids = stage.worker.ids.lock().unwrap().clone();
    assert!(ids[0].1.is_some() && ids[1].1.is_none());
}

#[tokio::test]
async fn a_follower_comes_again_and_misses_nothing() {
    use crate::dispatch::events::Heard;
    let stage = Stage::new(None);
    let running = stage.start("k").await.unwrap();
    let mut heard = Vec::new();
    for seen in [0, 1, 99] {
        let mut follower = running.entry().follow(seen);
        loop {
            match follower.next().await {
                Heard::Event { id, .. } => heard.push(format!("{id}")),
                Heard::Skipped { id, .. } => heard.push(format!("gap to {id}")),
                Heard::Ended { id, result, .. } => {
                    heard.push(format!("{id}: {}", told(&result)));
                    break;
                }
            }
        }
    }
    assert_eq!(heard, ["1", "2: run 1", "2: run 1", "2: run 1"]);
}
