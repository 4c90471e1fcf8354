//! A hub's registry, and feet that are played by hand.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer as _, SigningKey};
use footbridge_shared::id::{CallId, FootKey, FootName, ProjectName, SessionId, Subject, TenantName};
use footbridge_shared::limits::{BULK_BYTES, DEFAULT_MAX_TIMEOUT, DEFAULT_TIMEOUT};
use footbridge_shared::message::{Call, Credit, FootToHub, Hello, HubToFoot, InFlightState, Pong, ToolsAck, Welcome};
use footbridge_shared::part::{Part, PartsId};
use footbridge_shared::parts::{Assembly, Taken};
use footbridge_shared::proof::signed_bytes;
use futures::channel::mpsc;
use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallClock, CallContext, CallEvent, Caller, EventSink, Keyed};
use crate::domain::failure::Failure;
use crate::domain::journal::{Kept, LateResults};
use crate::domain::output::ToolOutput;
use crate::domain::principal::{Principal, Reach, Role};
use crate::domain::scope::Scope;
use crate::domain::tool::{Tool, ToolCaller, ToolSource as _, Via};
use crate::lifecycle::Lifecycle;
use crate::sources::feet::{Close, FeetConfig, FeetCounts, FeetParts, FeetRegistry, Frame, ScopeCheck, SocketError};
use crate::store::memory::MemoryStore;

/// Frames that fit the pipe between hub and foot, each way.
const PIPE: usize = 8;

/// Time of day of the tests.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// The projects `acme/shop` and `acme/other` exist.
struct Acme;

#[async_trait]
impl ScopeCheck for Acme {
    async fn exists(&self, scope: &Scope) -> Result<bool, Failure> {
        Ok(scope.tenant.as_str() == "acme" && ["shop", "other"].contains(&scope.project.as_str()))
    }
}

/// The tools of the hub: none that a foot could reach.
struct NoTools;

#[async_trait]
impl ToolCaller for NoTools {
    async fn call(&self, _: &CallContext, name: &str, _: Arguments, _: Via) -> Result<ToolOutput, Failure> {
        Err(Failure::unknown_tool(name))
    }

    async fn list(&self, _: &CallContext) -> Result<Vec<Arc<Tool>>, Failure> {
        Ok(Vec::new())
    }

    async fn find(&self, _: &CallContext, _: &str) -> Result<Option<Arc<Tool>>, Failure> {
        Ok(None)
    }
}

pub(super) fn subject(name: &str) -> Subject {
    Subject::parse(name).unwrap()
}

pub(super) fn foot_name(name: &str) -> FootName {
    FootName::parse(name).unwrap()
}

pub(super) fn scope(project: &str) -> Scope {
    Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse(project).unwrap())
}

/// A registry over a store that outlives it.
pub(super) struct Hub {
    pub(super) registry: FeetRegistry,
    pub(super) lifecycle: Lifecycle,
    pub(super) store: Arc<MemoryStore>,
    pub(super) late: Arc<LateBox>,
    pub(super) scope: Scope,
}

/// Takes late results: those of the calls it wants.
#[derive(Default)]
pub(super) struct LateBox {
    /// Calls whose results are wanted, and whether they can be stored now.
    pub(super) wants: Mutex<HashMap<CallId, bool>>,
    /// What was stored.
    pub(super) kept: Mutex<Vec<(CallId, String)>>,
}

#[async_trait]
impl LateResults for LateBox {
    async fn keep(&self, _: &Scope, _: &FootKey, call: &CallId, result: Result<ToolOutput, Failure>) -> Kept {
        match self.wants.lock().get(call) {
            None => Kept::Unwanted,
            Some(false) => Kept::NotNow,
            Some(true) => {
                let text = result.map_or_else(|failure| failure.to_string(), |output| output.joined_text());
                self.kept.lock().push((call.clone(), text));
                Kept::Stored
            }
        }
    }
}

/// Passes on what a call says.
struct Ear(tokio::sync::mpsc::Sender<CallEvent>);

impl EventSink for Ear {
    fn event(&self, event: CallEvent) {
        let _ = self.0.try_send(event);
    }
}

impl Hub {
    pub(super) async fn new() -> Self {
        Self::with(FeetConfig::default()).await
    }

    pub(super) async fn with(config: FeetConfig) -> Self {
        Self::over(Arc::new(MemoryStore::new(Arc::new(Noon))), config).await
    }

    /// Another hub over the same store.
    pub(super) async fn over(store: Arc<MemoryStore>, config: FeetConfig) -> Self {
        let lifecycle = Lifecycle::new();
        let late = Arc::new(LateBox::default());
        let registry = FeetRegistry::open(FeetParts {
            config,
            store: store.clone(),
            clock: Arc::new(Noon),
            lifecycle: lifecycle.clone(),
            scopes: Arc::new(Acme),
            built_ins: BTreeSet::from(["web_search".to_owned(), "whoami".to_owned()]),
            late: late.clone(),
        })
        .await
        .unwrap();
        Self { registry, lifecycle, store, late, scope: scope("shop") }
    }

    /// A socket that nobody has said anything on.
    pub(super) fn dial(&self, principal: Principal, identity: Identity) -> TestFoot {
        let (to_hub, from_foot) = mpsc::channel(PIPE);
        let (to_foot, from_hub) = mpsc::channel(PIPE);
        self.registry.connect(Pipe { from_foot, to_foot }, Arc::new(principal));
        TestFoot { identity, to_hub, from_hub, session: None, deaf: false, parts: HashMap::new() }
    }

    /// A connected foot.
    pub(super) async fn foot(&self, owner: &str, name: &str) -> TestFoot {
        self.foot_as(owner, Identity::new(name), |_| {}).await
    }

    /// A connected foot with a changed `hello`.
    pub(super) async fn foot_as(&self, owner: &str, identity: Identity, change: impl FnOnce(&mut Hello)) -> TestFoot {
        let mut foot = self.dial(principal(owner), identity);
        foot.greet(change).await;
        foot
    }

    /// Public names that a subject sees.
    pub(super) async fn names(&self, who: &str) -> Vec<String> {
        let listing = self.registry.listing(&self.scope, &subject(who)).await.unwrap();
        listing.tools.keys().map(ToString::to_string).collect()
    }

    /// A tool as a subject sees it.
    pub(super) async fn tool(&self, who: &str, name: &str) -> Option<Arc<Tool>> {
        self.registry.listing(&self.scope, &subject(who)).await.unwrap().tools.get(name).cloned()
    }

    /// A call that runs.
    pub(super) async fn call(&self, who: &str, name: &str, arguments: Value) -> Running {
        let tool = self.tool(who, name).await.unwrap_or_else(|| panic!("{who} sees no {name}"));
        self.call_tool(who, tool, &arguments.to_string())
    }

    /// A call of a tool that was looked up before.
    pub(super) fn call_tool(&self, who: &str, tool: Arc<Tool>, arguments: &str) -> Running {
        self.call_with(who, tool, arguments, "outer", None)
    }

    /// A keyed call of this id.
    pub(super) async fn keyed_call(&self, who: &str, name: &str, id: &str) -> (Running, Arc<Keyed>) {
        let keyed = Arc::new(Keyed::new(format!("digest of {id}")));
        let tool = self.tool(who, name).await.unwrap();
        (self.call_with(who, tool, "{}", id, Some(keyed.clone())), keyed)
    }

    fn call_with(&self, who: &str, tool: Arc<Tool>, arguments: &str, id: &str, keyed: Option<Arc<Keyed>>) -> Running {
        let (events, heard) = tokio::sync::mpsc::channel(64);
        let mut ctx = CallContext::new(
            CallId::parse(id).unwrap(),
            Arc::new(self.scope.clone()),
            Arc::new(Caller::direct(subject(who))),
            CallClock::start(DEFAULT_TIMEOUT, DEFAULT_MAX_TIMEOUT),
            Arc::new(NoTools),
            Some(Arc::new(Ear(events))),
        );
        ctx.keyed = keyed;
        let (cancel, clock) = (ctx.cancel.clone(), ctx.clock.clone());
        let arguments = Arguments::new(RawValue::from_string(arguments.to_owned()).unwrap());
        let mut task = JoinSet::new();
        task.spawn(async move { tool.handler.invoke(arguments, &ctx).await });
        Running { task, cancel, clock, heard }
    }

    /// Changes so far of what the listings of the project are made from.
    pub(super) fn revision(&self) -> u64 {
        self.registry.core.known(&self.scope).unwrap().revision()
    }

    /// Waits until what is here now is what it should be.
    pub(super) async fn settles(&self, what: impl Fn(FeetCounts) -> bool) {
        for _ in 0..20_000 {
            if what(self.registry.counts()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it stays at {:?}", self.registry.counts());
    }

    /// Nothing of any foot is left, and the hub can stop.
    pub(super) async fn ends_clean(self) {
        self.settles(|counts| counts == FeetCounts::default()).await;
        assert_eq!(self.lifecycle.shut_down(Duration::from_secs(1)).await, 0, "tasks are left");
    }
}

/// A token with the role `foot` for the whole tenant.
pub(super) fn principal(owner: &str) -> Principal {
    Principal {
        token: "t".into(),
        subject: subject(owner),
        roles: vec![Role::Foot],
        reach: Reach { tenant: Some(TenantName::parse("acme").unwrap()), projects: None },
        act_as: Vec::new(),
        ended: CancellationToken::new(),
    }
}

/// A call in a task of its own. Dropped, its caller is gone.
pub(super) struct Running {
    task: JoinSet<Result<ToolOutput, Failure>>,
    pub(super) cancel: CancellationToken,
    pub(super) clock: CallClock,
    pub(super) heard: tokio::sync::mpsc::Receiver<CallEvent>,
}

impl Running {
    /// The end of the call.
    pub(super) async fn end(&mut self) -> Result<ToolOutput, Failure> {
        self.task.join_next().await.unwrap().unwrap()
    }

    /// The text of its result.
    pub(super) async fn text(&mut self) -> String {
        self.end().await.unwrap().joined_text()
    }

    /// Its failure.
    pub(super) async fn failure(&mut self) -> Failure {
        self.end().await.unwrap_err()
    }

    /// Whether it has not ended.
    pub(super) async fn runs(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(1), self.task.join_next()).await.is_err()
    }
}

/// Who a foot says it is.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) key: SigningKey,
    pub(super) name: String,
    pub(super) instance: String,
}

impl Identity {
    /// The key is made from the name.
    pub(super) fn new(name: &str) -> Self {
        Self::with_key(name, name)
    }

    pub(super) fn with_key(name: &str, seed: &str) -> Self {
        let key = SigningKey::from_bytes(blake3::hash(seed.as_bytes()).as_bytes());
        Self { key, name: name.to_owned(), instance: "i1".to_owned() }
    }

    /// The same foot as a new process.
    pub(super) fn restarted(&self) -> Self {
        Self { instance: format!("{}x", self.instance), ..self.clone() }
    }

    pub(super) fn hello(&self, nonce: &str) -> Hello {
        let proof = self.key.sign(&signed_bytes(nonce));
        serde_json::from_value(json!({
            "proof": URL_SAFE_NO_PAD.encode(proof.to_bytes()),
            "foot": {
                "name": self.name, "id": URL_SAFE_NO_PAD.encode(self.key.verifying_key().to_bytes()),
                "instance": self.instance, "version": "1", "os": "linux", "arch": "x86_64", "hostname": "box",
            },
            "tenant": "acme", "project": "shop", "maxConcurrent": 64,
        }))
        .unwrap()
    }
}

/// The foot's end of a socket.
pub(super) struct TestFoot {
    pub(super) identity: Identity,
    pub(super) to_hub: mpsc::Sender<Result<Frame, SocketError>>,
    pub(super) from_hub: mpsc::Receiver<Frame>,
    pub(super) session: Option<SessionId>,
    /// Leaves heartbeats unanswered.
    pub(super) deaf: bool,
    /// Unfinished messages of the hub.
    pub(super) parts: HashMap<PartsId, Assembly>,
}

/// What a foot hears.
#[derive(Debug)]
pub(super) enum Heard {
    Message(HubToFoot),
    Closed(Close),
    End,
}

/// Hears a message of this type, or fails.
macro_rules! hear {
    ($foot:expr, $kind:ident) => {
        match $foot.hear().await {
            $crate::sources::feet::tests::harness::Heard::Message(footbridge_shared::message::HubToFoot::$kind(
                message,
            )) => message,
            other => panic!("{other:?} instead of {}", stringify!($kind)),
        }
    };
}
pub(super) use hear;

impl TestFoot {
    /// Answers the challenge, and expects to be welcome.
    pub(super) async fn greet(&mut self, change: impl FnOnce(&mut Hello)) -> Welcome {
        self.say_hello(change).await;
        let welcome = hear!(self, Welcome);
        self.session = Some(welcome.session.clone());
        welcome
    }

    /// Answers the challenge.
    pub(super) async fn say_hello(&mut self, change: impl FnOnce(&mut Hello)) {
        let challenge = hear!(self, Challenge);
        let mut hello = self.identity.hello(&challenge.nonce);
        change(&mut hello);
        self.say(Box::new(hello)).await;
    }

    pub(super) async fn say(&mut self, message: impl Into<FootToHub>) {
        self.say_text(&message.into().encode()).await;
    }

    pub(super) async fn say_text(&mut self, text: &str) {
        self.say_frame(Frame::Text(text.to_owned().into())).await;
    }

    /// A frame to a hub that is gone is lost.
    pub(super) async fn say_frame(&mut self, frame: Frame) {
        let _ = self.to_hub.send(Ok(frame)).await;
    }

    /// The next thing that is no heartbeat and no unfinished message. Bulk is returned at once.
    pub(super) async fn hear(&mut self) -> Heard {
        loop {
            let (text, bulk) = match self.from_hub.next().await {
                None => return Heard::End,
                Some(Frame::Close(close)) => return Heard::Closed(close),
                Some(Frame::Text(text)) => {
                    let bytes = text.len();
                    (text, bytes)
                }
                Some(Frame::Binary(frame)) => {
                    let part = Part::decode(&frame).unwrap();
                    self.say(credit(part.id, frame.len())).await;
                    match self.parts.entry(part.id).or_default().take(&part, usize::MAX, |_| true) {
                        Taken::Whole(text) => {
                            self.parts.remove(&part.id);
                            (text.into(), 0)
                        }
                        Taken::Kept | Taken::Dropped => continue,
                        odd => panic!("{odd:?}"),
                    }
                }
                Some(other) => panic!("a hub does not send {other:?}"),
            };
            let message = HubToFoot::decode(std::str::from_utf8(&text).unwrap()).unwrap();
            if let Some(id) = message.call().and_then(CallId::to_bytes).filter(|_| bulk >= BULK_BYTES) {
                self.say(credit(id, bulk)).await;
            }
            match message {
                HubToFoot::Ping(ping) if !self.deaf => {
                    self.say(Pong { echo_ms: ping.sent_ms, sent_ms: 0 }).await;
                }
                HubToFoot::Ping(_) | HubToFoot::Pong(_) => {}
                message => return Heard::Message(message),
            }
        }
    }

    /// The code of the close, after whatever is said before it.
    pub(super) async fn hear_close(&mut self) -> u16 {
        loop {
            match self.hear().await {
                Heard::Closed(close) => return close.code,
                Heard::Message(_) => {}
                Heard::End => panic!("the socket ended without a close"),
            }
        }
    }

    /// Offers simple tools and reads the answer.
    pub(super) async fn offer(&mut self, revision: u64, names: &[&str]) -> ToolsAck {
        let upsert: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        self.change(revision, json!(upsert), &[]).await
    }

    /// Changes what is offered and reads the answer.
    pub(super) async fn change(&mut self, revision: u64, upsert: Value, remove: &[&str]) -> ToolsAck {
        let change = json!({"type": "tools", "revision": revision, "upsert": upsert, "remove": remove});
        self.say_text(&change.to_string()).await;
        hear!(self, ToolsAck)
    }

    /// Answers a call with one text.
    pub(super) async fn answer(&mut self, call: &Call, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.say(footbridge_shared::message::CallResult {
            call: call.call.clone(),
            origin: call.origin.clone(),
            content: to_raw_value(&content).unwrap(),
            structured: None,
            is_error: false,
            meta: None,
            extra: None,
        })
        .await;
    }

    /// Comes back over a new socket: the same process, its session, and these calls.
    pub(super) async fn resume(&self, hub: &Hub, owner: &str, calls: &[(&Call, InFlightState)]) -> (Self, Welcome) {
        let mut foot = hub.dial(principal(owner), self.identity.clone());
        let session = self.session.clone().unwrap();
        let welcome = foot
            .greet(|hello| {
                hello.resume = Some(footbridge_shared::message::Resume { session });
                hello.in_flight = calls
                    .iter()
                    .map(|(call, state)| footbridge_shared::message::InFlight {
                        call: call.call.clone(),
                        digest: None,
                        state: *state,
                        origin: call.origin.clone(),
                    })
                    .collect();
            })
            .await;
        (foot, welcome)
    }

    /// Answers every call with its foot's name, the tool and the arguments, until the hub closes.
    pub(super) async fn echo(mut self) {
        while let Heard::Message(message) = self.hear().await {
            if let HubToFoot::Call(call) = message {
                let text = format!("{} {} {}", self.identity.name, call.tool, call.arguments.get());
                self.answer(&call, &text).await;
            }
        }
    }
}

/// Returns bulk.
fn credit(id: PartsId, bytes: usize) -> Credit {
    Credit { call: CallId::from_bytes(id), bytes: bytes as u64, hold: false }
}

/// A simple tool.
pub(super) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// The hub's end of a socket.
struct Pipe {
    from_foot: mpsc::Receiver<Result<Frame, SocketError>>,
    to_foot: mpsc::Sender<Frame>,
}

fn broken(error: mpsc::SendError) -> SocketError {
    SocketError::Broken(error.to_string())
}

impl Stream for Pipe {
    type Item = Result<Frame, SocketError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.from_foot.poll_next_unpin(cx)
    }
}

impl Sink<Frame> for Pipe {
    type Error = SocketError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.to_foot.poll_ready_unpin(cx).map_err(broken)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Frame) -> Result<(), SocketError> {
        self.to_foot.start_send_unpin(frame).map_err(broken)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.to_foot.poll_flush_unpin(cx).map_err(broken)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.to_foot.poll_close_unpin(cx).map_err(broken)
    }
}
