//! A running call: who calls, how long it may take, and what it says while it runs.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::{CallId, Subject};
use footbridge_shared::message::Stream;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::mcp::McpClient;
use super::principal::Principal;
use super::scope::Scope;
use super::tool::ToolCaller;

/// How deep tools may call tools.
pub const MAX_DEPTH: u8 = 8;
/// Longest time between two signs of life of a call that waits for its client.
const AWAKE: Duration = Duration::from_secs(1);

/// On whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The subject: feet are theirs or shared with them.
    pub subject: Subject,
    /// Roles of the process. A direct call has none, whatever its token may do.
    pub roles: Vec<String>,
    /// Profile of the process.
    pub profile: Option<String>,
    /// The process.
    pub process: Option<String>,
    /// Id of the token that the call came with, for audit.
    pub token: Option<Arc<str>>,
}

impl Caller {
    /// The process role that lets tools write configuration documents.
    pub const CONFIGURE: &'static str = "configure";

    /// A call without a process.
    pub fn direct(subject: Subject) -> Self {
        Self { subject, roles: Vec::new(), profile: None, process: None, token: None }
    }

    /// A direct call by whoever holds a token.
    pub fn of(principal: &Principal) -> Self {
        Self { token: Some(principal.token.clone()), ..Self::direct(principal.subject.clone()) }
    }

    /// Whether tools may write configuration documents for this caller.
    pub fn may_configure(&self) -> bool {
        self.process.is_some() && self.roles.iter().any(|role| role == Self::CONFIGURE)
    }
}

/// What a call says while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// How far it is.
    Progress {
        /// Counts up.
        progress: f64,
        /// To this.
        total: Option<f64>,
        /// What it does.
        message: Option<String>,
    },
    /// Partial output.
    Output {
        /// Which stream.
        stream: Stream,
        /// The text.
        data: String,
        /// Bytes dropped before it.
        skipped_bytes: u64,
    },
}

/// Hears what a call says while it runs.
pub trait EventSink: Send + Sync {
    /// Takes an event. Never waits: events are a courtesy, and what there is no room for is dropped.
    fn event(&self, event: CallEvent);
}

/// What makes a call a keyed one, for whoever runs it.
///
/// A foot keeps a result until it hears that it is safe. So the foot's end of the call leaves word here how to say that
/// ([`Self::answered`]), and the dispatcher says it once the result is written down ([`Self::take_receipt`]).
pub struct Keyed {
    digest: String,
    receipt: Mutex<Option<Receipt>>,
}

/// Tells a foot that its answer is safe.
pub type Receipt = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyed").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl Keyed {
    /// A keyed call with this digest of tool and arguments.
    pub fn new(digest: String) -> Self {
        Self { digest, receipt: Mutex::new(None) }
    }

    /// The digest.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The foot itself has said how the call ended.
    pub fn answered(&self, receipt: Receipt) {
        *self.receipt.lock() = Some(receipt);
    }

    /// How to tell the foot that its answer is safe; `None`: it gave none.
    pub fn take_receipt(&self) -> Option<Receipt> {
        self.receipt.lock().take()
    }
}

/// Time limits of one call. Progress moves the idle limit, nothing moves the hard one.
#[derive(Debug, Clone)]
pub struct CallClock {
    hard: Instant,
    idle: Duration,
    activity: Arc<Activity>,
}

#[derive(Debug)]
struct Activity {
    last: watch::Sender<Instant>,
    /// A sign of life of an inner call is one of all that wait for it.
    outer: Option<Arc<Activity>>,
}

impl Activity {
    fn touch(&self) {
        self.last.send_replace(Instant::now());
        if let Some(outer) = &self.outer {
            outer.touch();
        }
    }
}

/// Which limit a call reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// No sign of life for this long.
    Idle(Duration),
    /// The hard limit.
    Hard,
}

impl CallClock {
    /// Starts now.
    pub fn start(idle: Duration, hard: Duration) -> Self {
        let now = Instant::now();
        Self {
            hard: now + hard,
            idle: idle.min(hard),
            activity: Arc::new(Activity { last: watch::Sender::new(now), outer: None }),
        }
    }

    /// A clock within this one: neither limit is later than the outer one's.
    pub fn within(&self, idle: Duration, hard: Duration) -> Self {
        let now = Instant::now();
        Self {
            hard: self.hard.min(now + hard),
            idle: idle.min(hard),
            activity: Arc::new(Activity { last: watch::Sender::new(now), outer: Some(self.activity.clone()) }),
        }
    }

    /// A sign of life.
    pub fn touch(&self) {
        self.activity.touch();
    }

    /// Waits for something that may take its time, such as a person: meanwhile the call is not idle. The hard limit goes on.
    pub async fn awake_during<T>(&self, waited_for: impl Future<Output = T>) -> T {
        // Not below what timers can tell apart.
        let pause = (self.idle / 2).clamp(Duration::from_millis(1), AWAKE);
        let mut waited_for = std::pin::pin!(waited_for);
        loop {
            self.touch();
            tokio::select! {
                biased;
                given = &mut waited_for => {
                    // What comes next has the whole idle time.
                    self.touch();
                    return given;
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// The hard limit.
    pub fn hard(&self) -> Instant {
        self.hard
    }

    /// The idle limit.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    /// What is left until the hard limit.
    pub fn left(&self) -> Duration {
        self.hard.saturating_duration_since(Instant::now())
    }

    /// Waits until a limit is reached.
    pub async fn expired(&self) -> Expired {
        let last = self.activity.last.subscribe();
        loop {
            let idle_end = *last.borrow() + self.idle;
            tokio::time::sleep_until(idle_end.min(self.hard)).await;
            let now = Instant::now();
            if now >= self.hard {
                return Expired::Hard;
            }
            if *last.borrow() + self.idle <= now {
                return Expired::Idle(self.idle);
            }
        }
    }
}

/// One running call, handed to everything that serves it. Cheap to clone.
#[derive(Clone)]
pub struct CallContext {
    /// The id of the call that came from outside; inner calls keep it.
    pub call: CallId,
    /// Where it runs.
    pub scope: Arc<Scope>,
    /// For whom.
    pub caller: Arc<Caller>,
    /// How long it may take.
    pub clock: CallClock,
    /// Fires when nobody wants the result any more, and when a limit is reached.
    pub cancel: CancellationToken,
    /// 0 for a call from outside, one more for each tool that calls a tool.
    pub depth: u8,
    /// Calls other tools, within what the caller may do.
    pub tools: Arc<dyn ToolCaller>,
    /// Present for a call with an idempotency key, and for no call that it makes.
    pub keyed: Option<Arc<Keyed>>,
    /// The MCP client that caused it; calls that it makes have the same.
    pub client: Option<Arc<dyn McpClient>>,
    /// What an MCP client sent with it beside name and arguments (`_meta` and more), as it came: a JSON object. For no call
    /// that it makes.
    pub extra: Option<Arc<RawValue>>,
    events: Option<Arc<dyn EventSink>>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("call", &self.call)
            .field("scope", &self.scope)
            .field("caller", &self.caller)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl CallContext {
    /// A call from outside.
    pub fn new(
        call: CallId,
        scope: Arc<Scope>,
        caller: Arc<Caller>,
        clock: CallClock,
        tools: Arc<dyn ToolCaller>,
        events: Option<Arc<dyn EventSink>>,
    ) -> Self {
        Self {
            call,
            scope,
            caller,
            clock,
            cancel: CancellationToken::new(),
            depth: 0,
            tools,
            keyed: None,
            client: None,
            extra: None,
            events,
        }
    }

    /// The same call, stricter in time and with a token of its own that the outer one's also fires.
    #[must_use]
    pub fn narrowed(&self, idle: Duration, hard: Duration) -> Self {
        Self { clock: self.clock.within(idle, hard), cancel: self.cancel.child_token(), ..self.clone() }
    }

    /// The same call with a cancel token of its own, which the outer one's also fires.
    #[must_use]
    pub fn stoppable(&self) -> Self {
        Self { cancel: self.cancel.child_token(), ..self.clone() }
    }

    /// A call that this one makes. Whoever runs it gives it a cancel token of its own ([`Self::stoppable`]).
    #[must_use]
    pub fn inner(&self) -> Self {
        Self { depth: self.depth.saturating_add(1), keyed: None, extra: None, ..self.clone() }
    }

    /// A sign of life, passed on to whoever listens. Never waits.
    pub fn emit(&self, event: CallEvent) {
        self.clock.touch();
        if let Some(events) = &self.events {
            events.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn progress_moves_the_idle_limit_and_not_the_hard_one() {
        let outer = CallClock::start(2 * SECOND, 10 * SECOND);
        let inner = outer.within(2 * SECOND, 60 * SECOND);
        for _ in 0..9 {
            tokio::time::advance(SECOND).await;
            inner.touch();
        }
        let started = Instant::now();
        assert_eq!(outer.expired().await, Expired::Hard);
        assert_eq!(started.elapsed(), SECOND);
        assert_eq!(inner.hard(), outer.hard());

        let quiet = CallClock::start(2 * SECOND, 10 * SECOND);
        assert_eq!(quiet.expired().await, Expired::Idle(2 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_person_is_awake_until_the_answer_and_within_the_hard_limit() {
        let (outer, started) = (CallClock::start(2 * SECOND, 20 * SECOND), Instant::now());
        let inner = outer.within(SECOND, 60 * SECOND);
        let person = inner.awake_during(tokio::time::sleep(7 * SECOND));
        let ((), expired) = tokio::join!(person, inner.expired());
        assert_eq!((expired, started.elapsed()), (Expired::Idle(SECOND), 8 * SECOND));
        assert_eq!((outer.expired().await, started.elapsed()), (Expired::Idle(2 * SECOND), 9 * SECOND));
        let never = outer.awake_during(std::future::pending::<()>());
        tokio::select! {
            biased;
            () = never => unreachable!(),
            expired = outer.expired() => assert_eq!((expired, started.elapsed()), (Expired::Hard, 20 * SECOND)),
        }
    }
}
