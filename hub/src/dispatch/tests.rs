//! The dispatcher over a source of its own: limits, cancelling, depth, listeners, room.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use footbridge_shared::Outcome;
use footbridge_shared::id::{ProjectName, ToolName};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::*;
use crate::clock::{SharedClock, SystemClock};
use crate::domain::call::CallEvent;
use crate::domain::journal::{FootTarget, Recall};
use crate::domain::listener::CallEnd;
use crate::domain::tool::{Listing, MAX_HARD, MAX_IDLE, Origin, ToolHandler, ToolSpec};

mod journal;
mod keyed;

use journal::Journal;

const SECOND: Duration = Duration::from_secs(1);

/// What a tool of these tests does.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Answers with a text of so many bytes.
    Answer(usize),
    /// Calls itself until it may not, and answers how often that went.
    Nest,
    /// Works silently for so long.
    Work(Duration),
    /// Passes on to `work`.
    Delegate,
    /// Works, and shows life every second.
    Progress,
    /// Hears no cancel.
    Deaf,
    /// Stops when told to.
    Obedient,
    /// Is defective.
    Panic,
}

#[async_trait]
impl ToolHandler for Does {
    async fn invoke(&self, _: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        match *self {
            Self::Answer(bytes) => Ok(ToolOutput::text(&"x".repeat(bytes))),
            Self::Nest => match ctx.tools.call(ctx, "nest", Arguments::empty(), Via::Script).await {
                Ok(inner) => {
                    let below: u32 = inner.joined_text().parse().unwrap();
                    Ok(ToolOutput::text(&(below + 1).to_string()))
                }
                Err(failure) => {
                    assert_eq!((failure.code, failure.outcome), (ErrorCode::DepthExceeded, Outcome::NotRun));
                    Ok(ToolOutput::text("0"))
                }
            },
            Self::Work(time) => {
                sleep(time).await;
                Ok(ToolOutput::text("worked"))
            }
            Self::Delegate => ctx.tools.call(ctx, "work", Arguments::empty(), Via::Delegate).await,
            Self::Progress => loop {
                sleep(SECOND).await;
                ctx.emit(CallEvent::Progress { progress: 1.0, total: None, message: None });
            },
            Self::Deaf => std::future::pending().await,
            Self::Obedient => {
                ctx.cancel.cancelled().await;
                Err(Failure::new(ErrorCode::Cancelled, Outcome::NotRun, "it had not begun").hint("come earlier"))
            }
            Self::Panic => panic!("a defect"),
        }
    }
}

struct Tools(Arc<Listing>);

#[async_trait]
impl ToolSource for Tools {
    async fn listing(&self, _: &Scope, _: &Subject) -> Result<Arc<Listing>, Failure> {
        Ok(self.0.clone())
    }

    async fn absent(&self, _: &Scope, _: &Caller, name: &str) -> Option<Failure> {
        name.starts_with("late__").then(|| Failure::not_run(ErrorCode::ServerUnavailable, "it comes"))
    }
}

/// No call of these tests goes to a foot.
struct NoFeet;

impl FootRecall for NoFeet {
    fn recall(&self, _: &Scope, _: &FootTarget, _: &ToolName) -> Recall {
        Recall::Away
    }

    fn stop(&self, _: &Scope, _: &FootTarget, _: &CallId) {}
}

fn tool(name: &str, does: Does, limits: Option<(Duration, Duration)>) -> (ToolName, Arc<Tool>) {
    let name = ToolName::parse(name).unwrap();
    let spec = ToolSpec {
        timeout: limits.map(|(idle, _)| idle),
        max_timeout: limits.map(|(_, hard)| hard),
        ..ToolSpec::bare(name.clone(), Origin::BuiltIn)
    };
    (name, Arc::new(Tool { spec, schema: None, handler: Arc::new(does) }))
}

fn dispatcher(listeners: Vec<Arc<dyn CallListener>>) -> (Arc<Dispatcher>, Lifecycle) {
    let tools = BTreeMap::from([
        tool("answer", Does::Answer(10), None),
        tool("large", Does::Answer(MAX_ENDED_BYTES_TENTH), None),
        tool("nest", Does::Nest, None),
        tool("work", Does::Work(90 * SECOND), Some((300 * SECOND, 600 * SECOND))),
        tool("delegate", Does::Delegate, Some((MAX_IDLE, MAX_HARD))),
        tool("progress", Does::Progress, Some((2 * SECOND, 10 * SECOND))),
        tool("deaf", Does::Deaf, Some((2 * SECOND, 10 * SECOND))),
        tool("obedient", Does::Obedient, None),
        tool("panic", Does::Panic, None),
    ]);
    let empty = || Arc::new(Tools(Arc::default()));
    let built_in = Arc::new(Tools(Arc::new(Listing { tools, ..Listing::default() })));
    let sources = Sources { configured: empty(), built_in, client: empty() };
    let lifecycle = Lifecycle::new();
    let clock: SharedClock = Arc::new(SystemClock);
    let (keyed, feet) = (KeyedCalls::new(Journal::new(), clock), Arc::new(NoFeet));
    (Dispatcher::new(DispatcherParts { sources, listeners, keyed, feet, lifecycle: lifecycle.clone() }), lifecycle)
}

/// A tenth of what may be kept of ended calls.
const MAX_ENDED_BYTES_TENTH: usize = calls::MAX_ENDED_BYTES / 10;

fn request_of(tenant: &str, name: &str) -> CallRequest {
    CallRequest {
        scope: Arc::new(Scope::new(TenantName::parse(tenant).unwrap(), ProjectName::parse("p").unwrap())),
        caller: Arc::new(Caller::direct(Subject::parse("ann").unwrap())),
        name: name.to_owned(),
        arguments: Arguments::empty(),
        timeout: None,
        max_timeout: None,
        key: None,
        client: None,
        extra: None,
    }
}

fn request(name: &str) -> CallRequest {
    request_of("t", name)
}

async fn failure(dispatcher: &Dispatcher, name: &str) -> (ErrorCode, Outcome) {
    let (result, _) = dispatcher.start(request(name)).await.unwrap().wait().await;
    let failure = result.as_ref().as_ref().unwrap_err();
    (failure.code, failure.outcome)
}

#[tokio::test]
async fn tools_call_tools_eight_deep_and_no_deeper() {
    let (dispatcher, _) = dispatcher(Vec::new());
    let (result, _) = dispatcher.start(request("nest")).await.unwrap().wait().await;
    assert_eq!(result.as_ref().as_ref().unwrap().joined_text(), MAX_DEPTH.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_wrapper_leaves_the_limits_to_what_it_calls() {
    let (dispatcher, _) = dispatcher(Vec::new());
    let (result, _) = dispatcher.start(request("delegate")).await.unwrap().wait().await;
    assert_eq!(result.as_ref().as_ref().unwrap().joined_text(), "worked");
    // The caller's own limit holds for the whole chain.
    let hurried = CallRequest { timeout: Some(5 * SECOND), ..request("delegate") };
    let (result, _) = dispatcher.start(hurried).await.unwrap().wait().await;
    assert_eq!(result.as_ref().as_ref().unwrap_err().code, ErrorCode::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_silent_tool_ends_at_its_idle_limit_and_a_lively_one_at_its_hard_one() {
    let (dispatcher, _) = dispatcher(Vec::new());
    for (name, limit) in [("deaf", 2 * SECOND + run::CANCEL_GRACE), ("progress", 10 * SECOND + run::CANCEL_GRACE)] {
        let begun = Instant::now();
        assert_eq!(failure(&dispatcher, name).await, (ErrorCode::DeadlineExceeded, Outcome::Unknown), "{name}");
        let took = begun.elapsed();
        assert!(took >= limit && took < limit + SECOND, "{name}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_and_still_ends() {
    let (dispatcher, lifecycle) = dispatcher(Vec::new());
    for (name, outcome) in [("obedient", Outcome::NotRun), ("deaf", Outcome::Unknown)] {
        let running = dispatcher.start(request(name)).await.unwrap();
        let entry = running.entry().clone();
        drop(running);
        let (result, _) = entry.wait().await;
        let failure = result.as_ref().as_ref().unwrap_err();
        assert_eq!((failure.code, failure.outcome), (ErrorCode::Cancelled, outcome), "{name}");
        assert_eq!(failure.hint.as_deref(), (name == "obedient").then_some("come earlier"), "what the work knows");
    }
    assert_eq!(lifecycle.shut_down(SECOND).await, 0);
}

#[tokio::test]
async fn a_handler_that_breaks_off_ends_its_call() {
    let (dispatcher, _) = dispatcher(Vec::new());
    assert_eq!(failure(&dispatcher, "panic").await, (ErrorCode::Internal, Outcome::Unknown));
    assert_eq!(dispatcher.calls().list(&request("panic").scope).len(), 1);
}

#[tokio::test]
async fn a_hub_that_goes_down_starts_nothing() {
    let (dispatcher, lifecycle) = dispatcher(Vec::new());
    lifecycle.soft().cancel();
    let refused = dispatcher.start(request("answer")).await.err().unwrap();
    assert_eq!((refused.code, refused.outcome), (ErrorCode::Draining, Outcome::NotRun));
}

#[tokio::test]
async fn one_tenant_does_not_take_all_the_room() {
    let (dispatcher, lifecycle) = dispatcher(Vec::new());
    let mut held = Vec::new();
    for _ in 0..MAX_RUNNING_CALLS_OF_A_TENANT {
        held.push(dispatcher.start(request("deaf")).await.unwrap());
    }
    let refused = dispatcher.start(request("deaf")).await.err().unwrap();
    assert_eq!((refused.code, refused.outcome), (ErrorCode::Overloaded, Outcome::NotRun));
    assert!(refused.retry_after_ms.is_some());
    dispatcher.start(request_of("other", "answer")).await.unwrap().wait().await;
    lifecycle.hard().cancel();
    drop(held);
    assert_eq!(lifecycle.shut_down(SECOND).await, 0);
    assert_eq!(dispatcher.permits.available_permits(), MAX_RUNNING_CALLS, "every place is free again");
}

#[tokio::test]
async fn ended_calls_are_kept_within_bounds() {
    let (dispatcher, _) = dispatcher(Vec::new());
    for _ in 0..25 {
        dispatcher.start(request("large")).await.unwrap().wait().await;
    }
    let kept = dispatcher.calls().list(&request("large").scope).len();
    assert!((8..=10).contains(&kept), "{kept} results of a tenth of the room each");
    for _ in 0..calls::MAX_ENDED + 10 {
        dispatcher.start(request("answer")).await.unwrap().wait().await;
    }
    assert_eq!(dispatcher.calls().list(&request("answer").scope).len(), calls::MAX_ENDED);
}

#[tokio::test]
async fn a_tenants_results_are_not_given_up_for_those_of_one_that_has_more() {
    let (dispatcher, _) = dispatcher(Vec::new());
    for _ in 0..3 {
        dispatcher.start(request_of("small", "large")).await.unwrap().wait().await;
    }
    for _ in 0..30 {
        dispatcher.start(request_of("big", "large")).await.unwrap().wait().await;
    }
    for _ in 0..calls::MAX_ENDED + 10 {
        dispatcher.start(request_of("busy", "answer")).await.unwrap().wait().await;
    }
    let kept = |tenant: &str| dispatcher.calls().list(&request_of(tenant, "large").scope).len();
    assert_eq!(kept("small"), 3);
    assert!((5..=7).contains(&kept("big")), "{}", kept("big"));
    assert!(kept("busy") > calls::MAX_ENDED / 2);
}

/// Writes down what it is told.
#[derive(Default)]
struct Notes {
    told: Mutex<Vec<String>>,
    delegates: AtomicU64,
}

impl Notes {
    fn note(&self, text: String) {
        self.told.lock().unwrap().push(text);
    }
}

impl CallListener for Notes {
    fn before(&self, _: &CallContext, tool: &Arc<Tool>) {
        self.note(format!("before {}", tool.spec.name));
    }

    fn after(&self, _: &CallContext, tool: &Arc<Tool>, end: CallEnd) {
        self.note(format!("after {} {:?} {:?}", tool.spec.name, end.error.map(ErrorCode::as_str), end.outcome));
    }

    fn after_delegate(&self, _: &CallContext, _: &Arc<Tool>, _: CallEnd) {
        self.delegates.fetch_add(1, Ordering::Relaxed);
    }

    fn refused(&self, _: &Scope, _: &Caller, name: &str, failure: &Failure) {
        self.note(format!("refused {name} {}", failure.code));
    }
}

#[tokio::test(start_paused = true)]
async fn listeners_hear_of_each_call_once_before_and_once_after() {
    let notes = Arc::new(Notes::default());
    let (dispatcher, lifecycle) = dispatcher(vec![notes.clone()]);
    dispatcher.start(request("answer")).await.unwrap().wait().await;
    assert!(dispatcher.start(request("nothing")).await.is_err());
    failure(&dispatcher, "panic").await;
    // A run that is dropped in the middle has an end, too.
    let running = dispatcher.start(request("deaf")).await.unwrap();
    lifecycle.hard().cancel();
    running.wait().await;
    let told = notes.told.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            "before answer",
            "after answer None Completed",
            "refused nothing unknown_tool",
            "before panic",
            "after panic Some(\"cancelled\") Unknown",
            "before deaf",
            "after deaf Some(\"cancelled\") Unknown",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_delegated_half_of_a_wrapper_comes_through_hooks_of_its_own() {
    let notes = Arc::new(Notes::default());
    let (dispatcher, _) = dispatcher(vec![notes.clone()]);
    dispatcher.start(request("delegate")).await.unwrap().wait().await;
    assert_eq!(notes.delegates.load(Ordering::Relaxed), 1);
    let told = notes.told.lock().unwrap().clone();
    assert_eq!(told, ["before delegate", "before work", "after delegate None Completed"]);
}

#[tokio::test]
async fn what_is_not_there_yet_is_told_on_every_way_to_it() {
    let (dispatcher, _lifecycle) = dispatcher(Vec::new());
    let CallRequest { scope, caller, .. } = request("late__tool");
    let code = |failure: Failure| failure.code;
    assert_eq!(code(dispatcher.missing(&scope, &caller, "late__tool").await), ErrorCode::ServerUnavailable);
    assert_eq!(code(dispatcher.missing(&scope, &caller, "nothing").await), ErrorCode::UnknownTool);
    let clock = CallClock::start(SECOND, SECOND);
    let ctx = CallContext::new(new_call_id(), scope, caller, clock, dispatcher.clone(), None);
    let found = dispatcher.find_all(&ctx, &["late__tool", "nothing", "work"]).await.unwrap();
    let codes: Vec<_> = found.into_iter().map(|found| found.err().map(code)).collect();
    assert_eq!(codes, [Some(ErrorCode::ServerUnavailable), Some(ErrorCode::UnknownTool), None]);
}
