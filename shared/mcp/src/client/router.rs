//! What comes from a server, and where it goes: answers to their requests, progress to who wants it, questions and news to
//! [`Events`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use footbridge_shared::message::Raw;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::voice::Voice;
use super::{Events, OnProgress, Progress, RequestOptions, Spawn, Tag};
use crate::codes::{INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR};
use crate::error::{RequestError, RpcError};
use crate::message::{Message, Outlined, RequestId, cut};

#[cfg(test)]
mod tests;

/// How many questions of one server are asked at the same time. More are refused.
const MAX_QUESTIONS: usize = 64;
/// How many bytes the parameters of those questions have together. What is more is refused.
const MAX_QUESTION_BYTES: usize = 2 * MAX_MESSAGE_BYTES;
/// How many answers that are ours alone, to pings and to questions that are refused, wait to be sent to one server. A
/// server that asks for more does not read them, and gets none: every one is a task, and over HTTP a request.
const MAX_SIDE_REPLIES: usize = 64;

/// Bytes of the message of progress: what is more is cut.
const MAX_PROGRESS_BYTES: usize = 16 * 1024;

/// Where answers to a server's questions go.
pub(crate) trait Replies: Send + Sync {
    /// Sends one.
    fn reply(self: Arc<Self>, message: Message) -> BoxFuture<'static, ()>;
}

/// Where a message came from.
pub(crate) struct Origin {
    /// The request on whose stream it came.
    pub(crate) tag: Option<Tag>,
    /// Fired, what is asked there is withdrawn.
    pub(crate) until: CancellationToken,
}

/// What a request waits for.
pub(crate) struct Call {
    /// Its answer; `None` where that comes another way.
    pub(crate) answer: Option<oneshot::Sender<Result<Raw, RequestError>>>,
    /// Who hears of progress.
    pub(crate) progress: Option<OnProgress>,
    /// Whether any of it was written to the server.
    pub(crate) started: bool,
    /// Whether the server may cancel it.
    pub(crate) server_may_end: bool,
}

#[derive(Default)]
struct Calls {
    open: HashMap<u64, Call>,
    /// Why there are no more.
    ended: Option<String>,
}

/// Takes in what comes on one connection.
pub(crate) struct Router {
    events: Arc<dyn Events>,
    spawn: Arc<dyn Spawn>,
    calls: Mutex<Calls>,
    /// The server's questions that are being answered; cancelled, they are withdrawn.
    questions: Mutex<HashMap<RequestId, CancellationToken>>,
    room: Arc<Semaphore>,
    /// Bytes of the questions' parameters.
    bytes: Arc<Semaphore>,
    side: Arc<Semaphore>,
    next_id: AtomicU64,
    closed: CancellationToken,
}

/// A request that is about to be sent.
pub(crate) struct Begun {
    /// What it is called on the connection.
    pub(crate) id: u64,
    /// What is written.
    pub(crate) text: String,
}

impl Router {
    pub(crate) fn new(events: Arc<dyn Events>, spawn: Arc<dyn Spawn>, closed: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            events,
            spawn,
            calls: Mutex::default(),
            questions: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_QUESTIONS)),
            bytes: Arc::new(Semaphore::new(MAX_QUESTION_BYTES)),
            side: Arc::new(Semaphore::new(MAX_SIDE_REPLIES)),
            next_id: AtomicU64::new(1),
            closed,
        })
    }

    /// Begins a request, whichever way it goes.
    pub(crate) fn begin(
        &self,
        voice: &Voice,
        method: &str,
        params: Option<&RawValue>,
        options: &RequestOptions,
    ) -> Result<Begun, RequestError> {
        if options.cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        self.check_open()?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let text = voice.request(id, method, params, options.progress.is_some(), options.capabilities.as_deref());
        Ok(Begun { id, text })
    }

    /// Whether anything can be sent.
    pub(crate) fn check_open(&self) -> Result<(), RequestError> {
        if self.closed.is_cancelled() {
            return Err(RequestError::NotSent("the connection has ended".to_owned()));
        }
        Ok(())
    }

    /// Fires when the connection has ended.
    pub(crate) const fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Runs a task of the connection.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn.spawn(Box::pin(task));
    }

    /// Expects an answer, or progress.
    pub(crate) fn expect(&self, id: u64, call: Call) -> Result<(), RequestError> {
        let mut calls = self.calls.lock();
        if let Some(why) = &calls.ended {
            return Err(RequestError::NotSent(why.clone()));
        }
        calls.open.insert(id, call);
        Ok(())
    }

    /// Says that a request is being written. `false`: nobody waits for it any more, so it need not be.
    pub(crate) fn start(&self, id: u64) -> bool {
        self.calls.lock().open.get_mut(&id).map(|call| call.started = true).is_some()
    }

    /// Expects nothing any more. `None`: the answer was there.
    pub(crate) fn forget(&self, id: u64) -> Option<Call> {
        self.calls.lock().open.remove(&id)
    }

    /// Ends the connection: whoever waits hears why.
    pub(crate) fn end(&self, why: &str) {
        let open = {
            let mut calls = self.calls.lock();
            calls.ended.get_or_insert_with(|| why.to_owned());
            std::mem::take(&mut calls.open)
        };
        for call in open.into_values() {
            let Some(answer) = call.answer else { continue };
            let error = if call.started { RequestError::Lost } else { RequestError::NotSent };
            let _ = answer.send(Err(error(why.to_owned())));
        }
        self.closed.cancel();
        self.questions.lock().clear();
    }

    /// Takes in one message. `replies` takes the answer if it asks.
    pub(crate) fn take(
        self: &Arc<Self>,
        message: Message,
        origin: &Origin,
        replies: impl FnOnce() -> Arc<dyn Replies>,
    ) {
        match message {
            Message::Response { id, outcome } => self.take_answer(id.as_ref(), outcome),
            Message::Notification { method, params } => self.take_notification(origin.tag, &method, params),
            Message::Request { id, method, params } => self.take_question(origin, id, method, params, replies()),
        }
    }

    fn take_answer(&self, id: Option<&RequestId>, outcome: Result<Raw, RpcError>) {
        let unread = matches!(&outcome, Err(error) if matches!(error.code, PARSE_ERROR | INVALID_REQUEST));
        let call = {
            let mut calls = self.calls.lock();
            let id = match id {
                Some(id) => id.as_number(),
                // The server could not read a message. If there is one request alone, it is that. No other error is without
                // an id, so such a one says nothing of it: it may be about a notification, or made up.
                None if unread && calls.open.len() == 1 => calls.open.keys().next().copied(),
                None => None,
            };
            // What is answered another way goes on, whatever is said here.
            let id = id.filter(|id| calls.open.get(id).is_some_and(|call| call.answer.is_some()));
            id.and_then(|id| calls.open.remove(&id))
        };
        match call.and_then(|call| call.answer) {
            Some(answer) => drop(answer.send(outcome.map_err(RequestError::Rpc))),
            None => tracing::debug!("an MCP server answered what nobody waits for"),
        }
    }

    /// Takes in what is known of a message that is too long: whoever waits for it hears so. One of which nothing is known
    /// is most likely none.
    pub(crate) fn take_too_long(self: &Arc<Self>, message: Outlined, replies: impl FnOnce() -> Arc<dyn Replies>) {
        let why = format!("it has more than {MAX_MESSAGE_BYTES} bytes");
        match message {
            Outlined::Response(id) => {
                let call = id.as_number().and_then(|id| self.forget(id));
                if let Some(answer) = call.and_then(|call| call.answer) {
                    let _ = answer.send(Err(RequestError::BadAnswer(why)));
                }
            }
            Outlined::Request(id) => self.reply_aside(id, Err(RpcError::new(INVALID_REQUEST, why)), replies()),
            Outlined::Other => {}
        }
    }

    fn take_notification(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) {
        match method {
            "notifications/progress" => self.take_progress(params.as_deref()),
            "notifications/cancelled" => self.take_cancel(params.as_deref()),
            _ => self.events.notification(tag, method, params),
        }
    }

    fn take_progress(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: RequestId,
            progress: f64,
            total: Option<f64>,
            message: Option<String>,
        }
        let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
        let Some(mut params) = params else { return };
        let hears = {
            let calls = self.calls.lock();
            let call = params.progress_token.as_number().and_then(|id| calls.open.get(&id));
            call.and_then(|call| call.progress.clone())
        };
        if let Some(message) = &mut params.message {
            cut(message, MAX_PROGRESS_BYTES);
        }
        if let Some(hears) = hears {
            hears(Progress { progress: params.progress, total: params.total, message: params.message });
        }
    }

    fn take_cancel(&self, params: Option<&RawValue>) {
        let Some(id) = params.and_then(|params| crate::fields::read_field::<RequestId>(params, "requestId")) else {
            return;
        };
        let question = self.questions.lock().remove(&id);
        match (question, id.as_number()) {
            (Some(question), _) => question.cancel(),
            (None, Some(number)) => self.end_subscription(number),
            (None, None) => {}
        }
    }

    /// A server without session ends a subscription by cancelling it, which is a request of ours. All other ids that a
    /// server cancels are those of its own questions, which may long have been answered: they say nothing of our requests.
    fn end_subscription(&self, id: u64) {
        let call = {
            let mut calls = self.calls.lock();
            if calls.open.get(&id).is_some_and(|call| call.server_may_end) { calls.open.remove(&id) } else { None }
        };
        if let Some(answer) = call.and_then(|call| call.answer) {
            let _ = answer.send(Err(RequestError::Lost("the server cancelled it".to_owned())));
        }
    }

    fn take_question(
        self: &Arc<Self>,
        origin: &Origin,
        id: RequestId,
        method: String,
        params: Option<Raw>,
        replies: Arc<dyn Replies>,
    ) {
        if method == "ping" {
            return self.reply_aside(id, Ok(empty_object()), replies);
        }
        let Some(place) = self.place(params.as_deref()) else {
            let busy = RpcError::new(INTERNAL_ERROR, "too many questions at the same time");
            return self.reply_aside(id, Err(busy), replies);
        };
        let withdrawn = origin.until.child_token();
        let tag = origin.tag;
        self.questions.lock().insert(id.clone(), withdrawn.clone());
        let router = Arc::clone(self);
        self.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = withdrawn.cancelled() => None,
                outcome = router.events.request(tag, &method, params) => Some(outcome),
            };
            router.questions.lock().remove(&id);
            if let Some(outcome) = outcome {
                tokio::select! {
                    () = router.closed.cancelled() => {}
                    () = replies.reply(Message::Response { id: Some(id), outcome }) => {}
                }
            }
            drop(place);
        });
    }

    /// Room for one more question, in number and in bytes.
    fn place(&self, params: Option<&RawValue>) -> Option<[OwnedSemaphorePermit; 2]> {
        let bytes = params.map_or(0, |params| params.get().len()).min(MAX_QUESTION_BYTES);
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()?;
        Some([room, bytes])
    }

    /// Sends an answer that nobody had to be asked for, unless too many of them wait already.
    fn reply_aside(self: &Arc<Self>, id: RequestId, outcome: Result<Raw, RpcError>, replies: Arc<dyn Replies>) {
        let Ok(place) = Arc::clone(&self.side).try_acquire_owned() else {
            return tracing::debug!("an MCP server that reads no answers gets no more of them");
        };
        let router = Arc::clone(self);
        self.spawn(async move {
            tokio::select! {
                () = router.closed.cancelled() => {}
                () = replies.reply(Message::Response { id: Some(id), outcome }) => {}
            }
            drop(place);
        });
    }
}

/// `{}`
pub(crate) fn empty_object() -> Raw {
    crate::Fields::new().to_raw()
}
