//! One session: what the hub keeps of a client between its requests.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::{Raw, RequestId, RpcError, Version, call_text, codes, declined};
use footbridge_shared::id::Subject;
use footbridge_shared::{ErrorCode, Outcome};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::level::Level;
use super::listen::Shown;
use super::message::{is_object, no_object, object};
use super::peer::{View, rpc_error, too_much};
use super::stream::Stream;
use crate::domain::failure::Failure;
use crate::domain::scope::Scope;

/// Requests of one session that run at once.
const MAX_RUNNING: usize = 256;
/// Questions to the client of one session that are open at once.
const MAX_QUESTIONS: usize = 64;
/// Streams of one session that can be resumed.
const MAX_STREAMS: usize = 32;
/// Bytes that its streams keep for that, those of running requests aside.
const MAX_REPLAY_BYTES: usize = 1024 * 1024;
/// Resources that one session follows.
pub(super) const MAX_SUBSCRIPTIONS: usize = 256;
/// Bytes of all their URIs.
pub(super) const MAX_SUBSCRIPTION_BYTES: usize = 128 * 1024;
/// Bytes of the questions that are open at once: a question may show a picture.
pub(super) const MAX_QUESTION_BYTES: usize = 4 * 1024 * 1024;

/// A session. It belongs to a subject in a scope.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    pub(super) scope: Arc<Scope>,
    pub(super) subject: Subject,
    pub(super) version: Version,
    /// What its client can do, as it said.
    pub(super) capabilities: Raw,
    pub(super) view: View,
    /// Fires when it ends, and with the token that it was opened with.
    pub(super) ended: CancellationToken,
    state: Mutex<State>,
}

struct State {
    used: Instant,
    level: Option<Level>,
    running: HashMap<RequestId, CancellationToken>,
    questions: HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>,
    question_bytes: usize,
    last_question: u64,
    streams: VecDeque<Arc<Stream>>,
    last_stream: u64,
    standalone: Arc<Stream>,
    /// Ends the one reader of the standalone stream.
    listening: Option<CancellationToken>,
    /// (server, URI there) → URI as the client knows it.
    subscriptions: HashMap<(String, String), String>,
    shown: Shown,
}

impl State {
    fn make_room(&mut self) {
        // Those that go on are as many as requests run.
        let ended = || self.streams.iter().filter(|old| old.has_ended());
        let (mut count, mut bytes) = (ended().count(), ended().map(|old| old.bytes()).sum::<usize>());
        while count > MAX_STREAMS || bytes > MAX_REPLAY_BYTES {
            let Some(oldest) = self.streams.iter().position(|old| old.has_ended()) else { break };
            let Some(gone) = self.streams.remove(oldest) else { break };
            (count, bytes) = (count - 1, bytes.saturating_sub(gone.bytes()));
        }
    }
}

/// What makes a session.
pub(super) struct Opened {
    pub(super) id: Arc<str>,
    pub(super) scope: Arc<Scope>,
    pub(super) subject: Subject,
    pub(super) version: Version,
    pub(super) capabilities: Raw,
    pub(super) view: View,
    pub(super) ended: CancellationToken,
}

impl Session {
    pub(super) fn new(opened: Opened) -> Self {
        let Opened { id, scope, subject, version, capabilities, view, ended } = opened;
        let standalone = Arc::new(Stream::default());
        standalone.set_number(0);
        let state = State {
            used: Instant::now(),
            level: None,
            running: HashMap::new(),
            questions: HashMap::new(),
            question_bytes: 0,
            last_question: 0,
            streams: VecDeque::new(),
            last_stream: 0,
            standalone,
            listening: None,
            subscriptions: HashMap::new(),
            shown: Shown::default(),
        };
        Self { id, scope, subject, version, capabilities, view, ended, state: Mutex::new(state) }
    }

    /// It was used just now.
    pub(super) fn touch(&self) {
        self.state.lock().used = Instant::now();
    }

    /// Whether its streams begin with an event that only says where they are: older clients would read it as a message.
    pub(super) fn primes(&self) -> bool {
        self.version >= Version::V2025_11_25
    }

    /// For how long nothing happened in it. `None`: something does.
    pub(super) fn idle(&self) -> Option<Duration> {
        let state = self.state.lock();
        let listening = state.listening.as_ref().is_some_and(|listening| !listening.is_cancelled());
        (!listening && state.running.is_empty()).then(|| state.used.elapsed())
    }

    /// From which level on its client wants log messages; `None`: it did not say.
    pub(super) fn level(&self) -> Option<Level> {
        self.state.lock().level
    }

    pub(super) fn set_level(&self, level: Level) {
        self.state.lock().level = Some(level);
    }

    /// A request begins: what stops it. The guard ends its time.
    ///
    /// # Errors
    /// Its id is in use, or too many run.
    pub(super) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<Running, RpcError> {
        let mut state = self.state.lock();
        if state.running.len() >= MAX_RUNNING {
            return Err(rpc_error(&too_much(
                "too many requests of this session run at once",
                "wait for the answer to one",
            )));
        }
        if state.running.contains_key(id) {
            return Err(RpcError::new(codes::INVALID_REQUEST, "a request with this id runs already"));
        }
        let stop = self.ended.child_token();
        state.running.insert(id.clone(), stop.clone());
        Ok(Running { session: self.clone(), id: id.clone(), stop })
    }

    /// Stops the request of this id.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(stop) = self.state.lock().running.get(id) {
            stop.cancel();
        }
    }

    /// Asks the client, on the stream of the request that caused it. Dropped, the question is withdrawn.
    pub(super) async fn ask(
        self: &Arc<Self>,
        stream: &Arc<Stream>,
        method: &str,
        params: &Raw,
    ) -> Result<Raw, RpcError> {
        let gone = || RpcError::new(codes::INTERNAL_ERROR, "the client's session has ended");
        let bytes = params.get().len();
        let (number, answer) = {
            let mut state = self.state.lock();
            if state.questions.len() >= MAX_QUESTIONS || state.question_bytes + bytes > MAX_QUESTION_BYTES {
                return Err(RpcError::new(codes::INTERNAL_ERROR, "the client is asked too many things at once"));
            }
            state.last_question += 1;
            state.question_bytes += bytes;
            let (tell, answer) = oneshot::channel();
            let number = state.last_question;
            state.questions.insert(number, tell);
            (number, answer)
        };
        let written = stream.send(call_text(Some(&RequestId::number(number)), method, Some(params)));
        let _question = Question { session: self, stream, number, written, bytes };
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(gone())),
            // Nobody reads it there (any more).
            () = stream.ended() => declined(method),
            () = self.ended.cancelled() => Err(gone()),
        }
    }

    /// The client answers. What nobody asked is let go. An answer is given once: one that is no object ends its question as
    /// an error.
    ///
    /// # Errors
    /// The answer is no object.
    pub(super) fn answered(&self, id: &RequestId, outcome: Result<Raw, RpcError>) -> Result<(), RpcError> {
        let (outcome, told) = match outcome {
            Ok(result) if !is_object(&result) => (Err(no_object("`result`")), Err(no_object("`result`"))),
            outcome => (outcome, Ok(())),
        };
        let Ok(number) = id.as_json().parse() else { return told };
        let asked = self.state.lock().questions.remove(&number);
        if let Some(asked) = asked {
            // Whoever asked may be gone.
            let _ = asked.send(outcome);
        }
        told
    }

    /// Makes a stream one that can be resumed, and forgets old ones that there is no room for.
    pub(super) fn open(&self, stream: &Arc<Stream>) {
        let mut state = self.state.lock();
        state.last_stream += 1;
        stream.set_number(state.last_stream);
        state.streams.push_back(stream.clone());
        state.make_room();
    }

    /// A stream has ended: forgets old ones that there is no room for.
    pub(super) fn make_room(&self) {
        self.state.lock().make_room();
    }

    /// A stream by its number; 0 is the one that belongs to no request.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        let state = self.state.lock();
        if number == 0 {
            return Some(state.standalone.clone());
        }
        state.streams.iter().find(|stream| stream.number() == Some(number)).cloned()
    }

    /// Becomes the one reader of the standalone stream; the one before is let go.
    pub(super) fn listen(&self) -> (Arc<Stream>, CancellationToken, DropGuard) {
        let mut state = self.state.lock();
        let listening = self.ended.child_token();
        if let Some(before) = state.listening.replace(listening.clone()) {
            before.cancel();
        }
        state.used = Instant::now();
        (state.standalone.clone(), listening.clone(), listening.drop_guard())
    }

    /// Follows a resource: as `uri` for the client. Whether there was room.
    pub(super) fn subscribe(&self, server: &str, original: &str, uri: &str) -> bool {
        let mut state = self.state.lock();
        let key = (server.to_owned(), original.to_owned());
        let bytes: usize = state.subscriptions.iter().map(|((_, there), known)| there.len() + known.len()).sum();
        let before = state.subscriptions.get(&key).map(|known| original.len() + known.len());
        let bytes = bytes - before.unwrap_or_default() + original.len() + uri.len();
        let room =
            (before.is_some() || state.subscriptions.len() < MAX_SUBSCRIPTIONS) && bytes <= MAX_SUBSCRIPTION_BYTES;
        if room {
            state.subscriptions.insert(key, uri.to_owned());
        }
        room
    }

    /// Follows it no longer.
    pub(super) fn unsubscribe(&self, server: &str, original: &str) {
        self.state.lock().subscriptions.remove(&(server.to_owned(), original.to_owned()));
    }

    /// What the client calls a resource that it follows.
    pub(super) fn follows(&self, server: &str, original: &str) -> Option<String> {
        self.state.lock().subscriptions.get(&(server.to_owned(), original.to_owned())).cloned()
    }

    /// Changes what it is known to have been shown.
    pub(super) fn shown<T>(&self, with: impl FnOnce(&mut Shown) -> T) -> T {
        with(&mut self.state.lock().shown)
    }

    /// Ends it: what runs in it is stopped, which its answers say; with them their streams end.
    pub(super) fn end(&self) {
        self.ended.cancel();
        let mut state = self.state.lock();
        state.questions.clear();
        state.streams.clear();
        state.standalone.end();
    }
}

/// The end of its session stopped a request.
pub(super) fn session_over() -> RpcError {
    let failure = Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "the session ended while the request ran");
    rpc_error(&failure.hint("open another session, and see whether it was done before you send it again"))
}

/// A request of a session while it runs.
pub(super) struct Running {
    session: Arc<Session>,
    id: RequestId,
    /// Stops it.
    pub(super) stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.running.remove(&self.id);
        state.used = Instant::now();
    }
}

/// An open question.
struct Question<'a> {
    session: &'a Session,
    stream: &'a Stream,
    number: u64,
    /// Under which number it stands on the stream.
    written: u64,
    bytes: usize,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let open = {
            let mut state = self.session.state.lock();
            state.question_bytes = state.question_bytes.saturating_sub(self.bytes);
            state.questions.remove(&self.number).is_some()
        };
        // Nobody waits for its answer any more.
        self.stream.release(self.written);
        if open {
            let params = object([("requestId", self.number.into())]);
            self.stream.tell(call_text(None, "notifications/cancelled", Some(&params)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use footbridge_shared::id::{ProjectName, TenantName};
    use futures::FutureExt as _;

    use super::*;

    fn session() -> Arc<Session> {
        Arc::new(Session::new(Opened {
            id: "s".into(),
            scope: Arc::new(Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse("web").unwrap())),
            subject: Subject::parse("ann").unwrap(),
            version: Version::V2025_11_25,
            capabilities: object([]),
            view: View::All,
            ended: CancellationToken::new(),
        }))
    }

    fn question(bytes: usize) -> Raw {
        object([("message", "x".repeat(bytes).into())])
    }

    #[tokio::test]
    async fn questions_of_a_session_have_room_for_so_many_bytes() {
        let (session, stream) = (session(), Arc::new(Stream::default()));
        let (small, large) = (question(1), question(MAX_QUESTION_BYTES - 100));
        {
            let mut first = pin!(session.ask(&stream, "elicitation/create", &large));
            assert!(first.as_mut().now_or_never().is_none());
            assert!(session.ask(&stream, "elicitation/create", &question(100)).now_or_never().unwrap().is_err());
            assert!(session.ask(&stream, "elicitation/create", &small).now_or_never().is_none());
        }
        // Withdrawn: there is room again, and what was written makes room.
        assert!(session.ask(&stream, "elicitation/create", &large).now_or_never().is_none());
        assert!(stream.bytes() < MAX_QUESTION_BYTES);
    }

    #[tokio::test]
    async fn what_is_asked_where_nobody_reads_is_declined() {
        let (session, stream) = (session(), Arc::new(Stream::default()));
        let params = question(1);
        let mut asked = pin!(session.ask(&stream, "elicitation/create", &params));
        assert!(asked.as_mut().now_or_never().is_none());
        stream.end();
        assert_eq!(asked.await.unwrap().get(), r#"{"action":"decline"}"#);
        let again = session.ask(&stream, "elicitation/create", &params).now_or_never();
        assert_eq!(again.unwrap().unwrap().get(), r#"{"action":"decline"}"#);
    }

    #[test]
    fn what_a_session_follows_has_room_for_so_many_bytes() {
        let session = session();
        let long = "x".repeat(MAX_SUBSCRIPTION_BYTES / 4);
        assert!(session.subscribe("a", &long, &long));
        assert!(session.subscribe("a", &long, &long), "again");
        assert!(!session.subscribe("b", &long, &format!("{long}y")));
        assert!(session.subscribe("b", &long, &long));
        assert!(!session.subscribe("c", "", "x"));
        session.unsubscribe("a", &long);
        assert!(session.subscribe("c", "", "x"));
    }

    #[tokio::test]
    async fn an_answer_that_is_no_object_ends_its_question_as_an_error() {
        let (session, stream) = (session(), Arc::new(Stream::default()));
        let params = question(1);
        let mut asked = pin!(session.ask(&stream, "elicitation/create", &params));
        assert!(asked.as_mut().now_or_never().is_none());
        let weird: Raw = serde_json::from_str(r#"["weird"]"#).unwrap();
        let told = session.answered(&RequestId::number(1), Ok(weird)).unwrap_err();
        assert_eq!(told.code, codes::INVALID_PARAMS);
        assert!(asked.await.is_err());
        // The client's own errors are the server's business.
        assert!(session.answered(&RequestId::number(2), Err(told)).is_ok());
    }
}
