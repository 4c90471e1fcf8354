//! Messages of a client, carried to a server over streamable HTTP and back, and understood no further than that needs: for
//! bridges, whose clients speak over byte streams.
//!
//! The client is not told that a server forgot its session: its own `initialize` is sent again, and what was refused
//! with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::{ErrorCode, Outcome};
use http::HeaderValue;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::{HttpTarget, Spawn};
use crate::fields::read_field;
use crate::headers::ParamHeaders;
use crate::message::{Message, RequestId};
use crate::meta;
use crate::streamable::{Broken, Endpoint, Follow, PostError, Posted, SIDE_MESSAGE_WAIT, Speech};

mod failure;
mod session;
#[cfg(test)]
mod tests;

use failure::Failure;
use session::Session;

/// How many messages for the client may wait.
const INCOMING: usize = 64;
/// How many requests of the client run at the same time. More are refused.
const MAX_RUNNING: u32 = 256;
/// How long a server that does not answer at all is looked for before a request is given up.
const REACH_WAIT: Duration = Duration::from_secs(10);
/// How long to wait between two looks.
const REACH_PAUSE: Duration = Duration::from_millis(250);

/// Carries messages. Cheap to clone.
#[derive(Clone)]
pub struct HttpRelay {
    inner: Arc<Inner>,
}

struct Inner {
    endpoint: Endpoint,
    spawn: Arc<dyn Spawn>,
    incoming: mpsc::Sender<Message>,
    session: Session,
    /// The client's requests that run.
    running: Mutex<HashMap<RequestId, Running>>,
    room: Arc<Semaphore>,
    /// Of the tools that were listed: which arguments they want in headers.
    param_headers: Mutex<HashMap<String, Arc<ParamHeaders>>>,
    closed: CancellationToken,
}

/// A request that runs.
struct Running {
    /// Cancelled, its stream is dropped.
    cancel: CancellationToken,
    /// It belongs to no session: the end of its stream is all that its cancellation is.
    is_stateless: bool,
    /// Why it did not reach the server when it was tried last.
    last: Option<Failure>,
}

impl HttpRelay {
    /// Starts to carry. Returns what comes for the client.
    pub fn start(target: HttpTarget, spawn: Arc<dyn Spawn>) -> (Self, mpsc::Receiver<Message>) {
        let (incoming, comes) = mpsc::channel(INCOMING);
        let inner = Arc::new(Inner {
            endpoint: Endpoint::new(target),
            spawn,
            incoming,
            session: Session::default(),
            running: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_RUNNING as usize)),
            param_headers: Mutex::default(),
            closed: CancellationToken::new(),
        });
        (Self { inner }, comes)
    }

    /// Takes a message of the client. A request is answered among what comes, whatever becomes of it. The others are sent
    /// when this returns, so that they keep their order, or are lost with a server that is away.
    pub async fn send(&self, message: Message) {
        let inner = &self.inner;
        match message {
            Message::Request { id, method, params } => {
                let Ok(place) = Arc::clone(&inner.room).try_acquire_owned() else {
                    let failed =
                        Failure::new(ErrorCode::Overloaded, Outcome::NotRun, "too many requests at the same time");
                    return inner.refuse(id, &failed).await;
                };
                let cancel = inner.closed.child_token();
                let message = Message::Request { id: id.clone(), method, params };
                let is_stateless = inner.speech(&message).is_stateless();
                let running = Running { cancel: cancel.clone(), is_stateless, last: None };
                if let Some(doubled) = inner.running.lock().insert(id.clone(), running) {
                    // Which of the two an answer is to, nobody could tell.
                    doubled.cancel.cancel();
                }
                let inner = Arc::clone(inner);
                self.inner.spawn.spawn(Box::pin(async move {
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => {}
                        () = inner.request(&id, &message) => {}
                    }
                    drop(place);
                }));
            }
            message => {
                if let Message::Notification { method, params } = &message
                    && method == "notifications/cancelled"
                    && inner.cancel(params.as_deref())
                {
                    return;
                }
                let sent = tokio::time::timeout(SIDE_MESSAGE_WAIT, inner.post(&message));
                tokio::select! {
                    () = inner.closed.cancelled() => {}
                    sent = sent => if !matches!(sent, Ok(Ok(_))) {
                        tracing::debug!("a message of the client did not reach its server");
                    },
                }
                if matches!(&message, Message::Notification { method, .. } if method == "notifications/initialized") {
                    inner.listen();
                }
            }
        }
    }

    /// Waits until every request was answered.
    pub async fn idle(&self) {
        // All places are free then. The semaphore is never closed.
        let _ = self.inner.room.acquire_many(MAX_RUNNING).await;
    }

    /// Ends every request that runs, and answers it with why there is no answer yet. Returns how many there were.
    pub async fn give_up(&self) -> usize {
        let running = std::mem::take(&mut *self.inner.running.lock());
        let open = running.len();
        for (id, Running { cancel, last, .. }) in running {
            cancel.cancel();
            let unknown = || Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "it had not answered at the end");
            self.inner.refuse(id, &last.unwrap_or_else(unknown)).await;
        }
        open
    }

    /// Ends what runs, and the session.
    pub async fn close(&self, within: Duration) {
        let inner = &self.inner;
        inner.closed.cancel();
        let _ = tokio::time::timeout(within, inner.endpoint.delete(&inner.session.speech())).await;
    }
}

impl Inner {
    /// How a message of the client is spoken: it says its version itself, or its session has one.
    fn speech(&self, message: &Message) -> Speech {
        let (method, params) = match message {
            Message::Request { method, params, .. } | Message::Notification { method, params } => (method, params),
            Message::Response { .. } => return self.session.speech(),
        };
        if method == "initialize" {
            return Speech::default();
        }
        let meta = params.as_deref().filter(|params| params.get().contains(meta::PROTOCOL_VERSION));
        let meta = meta.and_then(|params| read_field::<Box<RawValue>>(params, "_meta"));
        let said = meta.and_then(|meta| read_field::<String>(&meta, meta::PROTOCOL_VERSION));
        let speech = said.map_or_else(|| self.session.speech(), |version| Speech::named(&version));
        let tool = match (method.as_str(), params) {
            ("tools/call", Some(params)) if speech.is_stateless() => read_field::<String>(params, "name"),
            _ => None,
        };
        let param_headers = tool.and_then(|tool| self.param_headers.lock().get(&tool).cloned());
        speech.with_names(method, params.as_deref(), param_headers.as_deref())
    }

    /// Sends a message; again if the server forgot the session.
    async fn post(self: &Arc<Self>, message: &Message) -> Result<(Posted, Speech), PostError> {
        let speech = self.speech(message);
        let seen = self.endpoint.session();
        match self.endpoint.post(message.to_text(), &speech).await {
            Err(PostError::Forgotten) => {
                self.renew(seen.as_ref()).await?;
                let speech = self.speech(message);
                Ok((self.endpoint.post(message.to_text(), &speech).await?, speech))
            }
            posted => Ok((posted?, speech)),
        }
    }

    /// Makes a request of the client, and hands on all that comes of it.
    async fn request(self: &Arc<Self>, id: &RequestId, message: &Message) {
        let began = Instant::now();
        let failed = loop {
            let failed = match self.post(message).await {
                Ok((posted, speech)) => match self.hand_on(id, message, posted, speech).await {
                    Ok(()) => return,
                    Err(failed) => break failed,
                },
                // It did not reach the server, which may be starting again.
                Err(error @ PostError::NotSent(_)) if began.elapsed() <= REACH_WAIT => Failure::from(error),
                Err(error) => break error.into(),
            };
            if let Some(running) = self.running.lock().get_mut(id) {
                running.last = Some(failed);
            }
            tokio::time::sleep(REACH_PAUSE).await;
        };
        if self.claim(id) {
            self.refuse(id.clone(), &failed).await;
        }
    }

    /// Whether a request is still to be answered; from now on it is not.
    fn claim(&self, id: &RequestId) -> bool {
        self.running.lock().remove(id).is_some()
    }

    /// Hands on what a request was answered with. The error says why there was no answer among it.
    async fn hand_on(
        self: &Arc<Self>,
        id: &RequestId,
        request: &Message,
        posted: Posted,
        speech: Speech,
    ) -> Result<(), Failure> {
        match posted {
            Posted::Nothing => Err(Failure::bad_answer("it gave no answer")),
            Posted::Messages(messages) => {
                let mut answered = false;
                for message in messages {
                    answered |= self.hand(id, request, message).await;
                }
                if answered { Ok(()) } else { Err(Failure::bad_answer("its answer is not for this request")) }
            }
            Posted::Stream(stream) => {
                let speech = speech.without_names();
                let mut follow = Follow::answer(&self.endpoint, &speech, *stream);
                loop {
                    let text = match follow.next().await {
                        Ok(text) => text,
                        Err(Broken::BadAnswer(why)) => return Err(PostError::BadAnswer(why).into()),
                        Err(_) => return Err(Failure::lost("")),
                    };
                    for message in Message::parse_all(&text).unwrap_or_default() {
                        if self.hand(id, request, message).await {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// Hands a message to the client; `true`: it answers this request.
    async fn hand(self: &Arc<Self>, id: &RequestId, request: &Message, message: Message) -> bool {
        let message = match message {
            // An answer without an id, to this POST, is to this request.
            Message::Response { id: None, outcome } => Message::Response { id: Some(id.clone()), outcome },
            message => message,
        };
        let answers = matches!(&message, Message::Response { id: Some(whose), .. } if whose == id);
        if answers
            && let (Message::Request { method, .. }, Message::Response { outcome: Ok(result), .. }) =
                (request, &message)
        {
            match method.as_str() {
                "initialize" => self.session.begin(request, result),
                "tools/list" => self.learn(result),
                _ => {}
            }
        }
        if answers && !self.claim(id) {
            return true;
        }
        // Without a receiver the client has gone.
        let _ = self.incoming.send(message).await;
        answers
    }

    /// Remembers which arguments the listed tools want in headers. Most lists have none.
    fn learn(&self, result: &RawValue) {
        if !result.get().contains("x-mcp-header") {
            return;
        }
        for tool in read_field::<Vec<Box<RawValue>>>(result, "tools").unwrap_or_default() {
            let schema = read_field::<Box<RawValue>>(&tool, "inputSchema");
            let headers =
                schema.and_then(|schema| ParamHeaders::of(&schema).ok()).filter(|headers| !headers.is_empty());
            if let (Some(name), Some(headers)) = (read_field(&tool, "name"), headers) {
                self.param_headers.lock().insert(name, Arc::new(headers));
            }
        }
    }

    async fn refuse(&self, id: RequestId, failure: &Failure) {
        let error = failure.to_rpc(&self.endpoint.place());
        let _ = self.incoming.send(Message::Response { id: Some(id), outcome: Err(error) }).await;
    }

    /// Drops a request that the client cancelled: from now on nothing answers it. That comes before the server is told,
    /// which would answer that it stopped. `true`: the request belongs to no session, and the end of its stream tells.
    fn cancel(&self, params: Option<&RawValue>) -> bool {
        let Some(id) = params.and_then(|params| read_field::<RequestId>(params, "requestId")) else { return false };
        let Some(running) = self.running.lock().remove(&id) else { return false };
        running.cancel.cancel();
        running.is_stateless
    }

    /// Opens the session anew with what the client said first, unless somebody else did since `seen`.
    async fn renew(self: &Arc<Self>, seen: Option<&HeaderValue>) -> Result<(), PostError> {
        let _alone = self.session.renewing().await;
        if self.endpoint.session().as_ref() != seen {
            return Ok(());
        }
        let Some(hello) = self.session.hello() else { return Err(PostError::Forgotten) };
        let posted = self.endpoint.post(hello.to_text(), &Speech::default()).await?;
        let Message::Request { id, .. } = &hello else { return Err(PostError::Forgotten) };
        let answer = match posted {
            Posted::Nothing => None,
            Posted::Messages(messages) => messages.into_iter().find_map(|message| answer_of(id, message)),
            Posted::Stream(stream) => {
                let speech = Speech::default();
                let mut follow = Follow::answer(&self.endpoint, &speech, *stream);
                loop {
                    let Ok(text) = follow.next().await else { break None };
                    let messages = Message::parse_all(&text).unwrap_or_default();
                    if let Some(answer) = messages.into_iter().find_map(|message| answer_of(id, message)) {
                        break Some(answer);
                    }
                }
            }
        };
        let Some(result) = answer else {
            return Err(PostError::BadAnswer("the session was not opened again".to_owned()));
        };
        self.session.begin(&hello, &result);
        let initialized = Message::Notification { method: "notifications/initialized".to_owned(), params: None };
        self.endpoint.post(initialized.to_text(), &self.session.speech()).await?;
        tracing::info!("the hub had forgotten the session; it was opened again");
        Ok(())
    }

    /// Follows the server's own stream, across sessions.
    fn listen(self: &Arc<Self>) {
        if !self.session.may_listen() {
            return;
        }
        let inner = Arc::clone(self);
        self.spawn.spawn(Box::pin(async move {
            tokio::select! {
                () = inner.closed.cancelled() => {}
                () = inner.follow_own_stream() => {}
            }
        }));
    }

    async fn follow_own_stream(self: &Arc<Self>) {
        loop {
            let (speech, seen) = (self.session.speech(), self.endpoint.session());
            let mut follow = Follow::standalone(&self.endpoint, &speech);
            let broken = loop {
                match follow.next().await {
                    Ok(text) => {
                        for message in Message::parse_all(&text).unwrap_or_default() {
                            let _ = self.incoming.send(message).await;
                        }
                    }
                    Err(broken) => break broken,
                }
            };
            if !matches!(broken, Broken::Forgotten) {
                tracing::debug!(why = ?broken, "the hub has no stream of its own");
                return;
            }
            let renewed = self.renew(seen.as_ref()).await;
            if let Err(error) = &renewed {
                tracing::debug!(why = ?error, "the session could not be opened again");
            }
            // A server may forget each session at once.
            tokio::time::sleep(if renewed.is_ok() { REACH_PAUSE } else { REACH_WAIT }).await;
        }
    }
}

fn answer_of(id: &RequestId, message: Message) -> Option<Box<RawValue>> {
    match message {
        Message::Response { id: Some(whose), outcome: Ok(result) } if whose == *id => Some(result),
        _ => None,
    }
}
