//! A connection over streamable HTTP. Each request is a POST of its own, made by its caller's task; the answer is one
//! message, or a stream of events that ends with it.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::message::Raw;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::client::opened::{Channel, Failed};
use crate::client::router::{Begun, Call, Origin, Replies, Router};
use crate::client::voice::Voice;
use crate::client::{HttpTarget, Open, RequestOptions};
use crate::error::RequestError;
use crate::message::{Message, write_call};
use crate::streams::cancelled;

mod client;
mod endpoint;
mod events;
mod follow;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use client::{HttpClientOptions, http_client};
pub(crate) use endpoint::{Endpoint, PostError, Posted, Refusal, Speech, reason};
pub(crate) use events::{EventStream, StreamError};
pub(crate) use follow::{Broken, Follow};

/// How long a message that nobody waits for may take: a cancellation, or an answer to the server.
pub(crate) const SIDE_MESSAGE_WAIT: Duration = Duration::from_secs(15);

/// How long the first request waits for the server's own stream. Some servers say nothing there until they have to.
const OWN_STREAM_WAIT: Duration = Duration::from_secs(1);

/// A channel over streamable HTTP.
pub(crate) struct Http {
    endpoint: Arc<Endpoint>,
    router: Arc<Router>,
}

/// Sends what the server asked for.
struct HttpReplies {
    endpoint: Arc<Endpoint>,
    speech: Speech,
}

impl Http {
    pub(crate) fn new(target: HttpTarget, open: &Open) -> Self {
        let router = Router::new(Arc::clone(&open.events), Arc::clone(&open.spawn), CancellationToken::new());
        Self { endpoint: Arc::new(Endpoint::new(target)), router }
    }

    fn replies(&self, voice: &Voice) -> Arc<dyn Replies> {
        Arc::new(HttpReplies { endpoint: Arc::clone(&self.endpoint), speech: Speech::of(voice.version) })
    }

    /// Sends a request, and reads until its answer.
    async fn exchange(
        &self,
        voice: &Voice,
        id: u64,
        text: String,
        speech: Speech,
        origin: &Origin,
    ) -> Result<Raw, Failed> {
        match self.endpoint.post(text, &speech).await {
            Err(error) => Err(self.failed(error)),
            Ok(Posted::Nothing) => Err(RequestError::BadAnswer("there is none".to_owned()).into()),
            Ok(Posted::Messages(messages)) => {
                let mut answer = None;
                let replies = || self.replies(voice);
                for message in messages {
                    match message {
                        Message::Response { id: whose, outcome } if is_answer(whose.as_ref(), id) => {
                            answer = answer.or(Some(outcome));
                        }
                        message => self.router.take(message, origin, replies),
                    }
                }
                match answer {
                    Some(outcome) => Ok(outcome.map_err(RequestError::Rpc)?),
                    None => Err(RequestError::BadAnswer("it is not for this request".to_owned()).into()),
                }
            }
            Ok(Posted::Stream(stream)) => {
                let speech = speech.without_names();
                let mut follow = Follow::answer(&self.endpoint, &speech, *stream);
                self.read_stream(voice, &mut follow, Some(id), origin).await
            }
        }
    }

    /// Reads a stream up to the answer, if one is awaited, else to its end.
    async fn read_stream(
        &self,
        voice: &Voice,
        follow: &mut Follow<'_>,
        awaited: Option<u64>,
        origin: &Origin,
    ) -> Result<Raw, Failed> {
        loop {
            let text = match follow.next().await {
                Ok(text) => text,
                Err(broken) => return Err(self.broken(broken).into()),
            };
            let Ok(messages) = Message::parse_all(&text) else {
                tracing::debug!("an MCP server sent an event that is no message");
                continue;
            };
            for message in messages {
                match message {
                    Message::Response { id, outcome }
                        if awaited.is_some_and(|awaited| is_answer(id.as_ref(), awaited)) =>
                    {
                        return Ok(outcome.map_err(RequestError::Rpc)?);
                    }
                    message => self.router.take(message, origin, || self.replies(voice)),
                }
            }
        }
    }

    /// What is known of a request after this.
    fn failed(&self, error: PostError) -> Failed {
        let error = match error {
            PostError::NotSent(why) => RequestError::NotSent(why),
            PostError::Lost(why) => RequestError::Lost(why),
            PostError::BadAnswer(why) => RequestError::BadAnswer(why),
            PostError::Unauthorized(Refusal { status, .. }) => RequestError::Unauthorized(status),
            PostError::Forgotten => {
                self.forget();
                RequestError::SessionExpired
            }
            PostError::Status(Refusal { status, .. }) => {
                let why = format!("HTTP {status}");
                // A proxy says these of a server that may be at it.
                let unknown = matches!(status, 502..=504);
                let error = if unknown { RequestError::Lost(why) } else { RequestError::BadAnswer(why) };
                return Failed { error, status: Some(status) };
            }
        };
        error.into()
    }

    /// Ends the connection because the server forgot its session.
    fn forget(&self) {
        self.endpoint.set_forgotten();
        self.closed().cancel();
    }

    /// Ends when the connection is closed here. Where the server forgot the session each request learns itself what
    /// became of it: most of them did not run, which is worth knowing.
    async fn closed_here(&self) {
        self.closed().cancelled().await;
        if self.endpoint.is_forgotten() {
            std::future::pending().await
        }
    }

    fn broken(&self, broken: Broken) -> RequestError {
        match broken {
            Broken::Lost(why) => RequestError::Lost(why),
            Broken::BadAnswer(why) => RequestError::BadAnswer(why),
            // The request itself was taken, so more is not known.
            Broken::Refused(status) => RequestError::Lost(format!("its stream cannot be resumed: HTTP {status}")),
            Broken::Forgotten => {
                self.forget();
                RequestError::Lost("the server forgot the session".to_owned())
            }
        }
    }
}

/// Whether an answer is that of a request. One without an id, to a POST, can be of no other.
fn is_answer(id: Option<&crate::message::RequestId>, awaited: u64) -> bool {
    id.is_none_or(|id| id.as_number() == Some(awaited))
}

impl Channel for Http {
    async fn request(
        &self,
        voice: &Voice,
        method: &str,
        params: Option<&RawValue>,
        options: RequestOptions,
    ) -> Result<Raw, Failed> {
        if self.endpoint.is_forgotten() {
            return Err(RequestError::SessionExpired.into());
        }
        let Begun { id, text } = self.router.begin(voice, method, params, &options)?;
        let speech = Speech::of(voice.version).with_names(method, params, options.param_headers.as_deref());
        let origin = Origin { tag: options.tag, until: self.closed().child_token() };
        let hears = options.progress.is_some();
        if hears {
            // The router is never ended: over HTTP each request hears for itself that the connection did.
            self.router
                .expect(id, Call { answer: None, progress: options.progress, started: true, server_may_end: false })?;
        }
        let mut abandon = Abandon { http: self, voice, id, hears, tells: true, origin: &origin };
        let outcome = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(RequestError::Cancelled.into()),
            () = self.closed_here() => Err(RequestError::Lost("the connection was closed".to_owned()).into()),
            outcome = self.exchange(voice, id, text, speech, &origin) => outcome,
        };
        abandon.tells = false;
        outcome
    }

    async fn notify(&self, voice: &Voice, method: &str, params: Option<&RawValue>) -> Result<(), RequestError> {
        let mut text = String::new();
        write_call(&mut text, None, method, params);
        let speech = Speech::of(voice.version).with_names(method, params, None);
        self.endpoint.post(text, &speech).await.map(drop).map_err(|error| self.failed(error).error)
    }

    async fn opened(&self, voice: &Voice) {
        // Without a session a server has nothing to say but in answers.
        if voice.is_stateless() {
            return;
        }
        let (router, endpoint) = (Arc::clone(&self.router), Arc::clone(&self.endpoint));
        let http = Self { endpoint, router };
        let voice = voice.clone();
        let (unheard, heard) = oneshot::channel();
        self.router.spawn(async move {
            let speech = Speech::of(voice.version);
            let origin = Origin { tag: None, until: http.closed().clone() };
            let mut follow = Follow::standalone(&http.endpoint, &speech).until_heard(unheard);
            tokio::select! {
                () = http.closed().cancelled() => {}
                ended = http.read_stream(&voice, &mut follow, None, &origin) => if let Err(failed) = ended {
                    tracing::debug!(why = %failed.error, "an MCP server has no stream of its own");
                },
            }
        });
        // What a server asks during a call, many ask on that stream; before it is open, they ask nobody.
        let _ = tokio::time::timeout(OWN_STREAM_WAIT, heard).await;
    }

    fn closed(&self) -> &CancellationToken {
        self.router.closed()
    }

    async fn close(&self, voice: &Voice, _: Duration) {
        self.endpoint.delete(&Speech::of(voice.version)).await;
    }
}

/// Ends what belongs to a request. Dropped before its answer in a session, the server is told; without one, the end of
/// the response's stream says so.
struct Abandon<'a> {
    http: &'a Http,
    voice: &'a Voice,
    id: u64,
    hears: bool,
    tells: bool,
    origin: &'a Origin,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if self.hears {
            self.http.router.forget(self.id);
        }
        if !self.tells {
            return;
        }
        self.origin.until.cancel();
        // Before it is agreed on how to speak, a server need not know how a request is cancelled.
        if self.voice.version.is_some() && !self.voice.is_stateless() {
            let endpoint = Arc::clone(&self.http.endpoint);
            let (speech, text) = (Speech::of(self.voice.version), cancelled(self.id));
            let closed = self.http.closed().clone();
            self.http.router.spawn(async move {
                let told = tokio::time::timeout(SIDE_MESSAGE_WAIT, endpoint.post(text, &speech));
                tokio::select! {
                    () = closed.cancelled() => {}
                    _ = told => {}
                }
            });
        }
    }
}

impl Replies for HttpReplies {
    fn reply(self: Arc<Self>, message: Message) -> BoxFuture<'static, ()> {
        async move {
            let sent = self.endpoint.post(message.to_text(), &self.speech);
            let sent = tokio::time::timeout(SIDE_MESSAGE_WAIT, sent).await;
            if !matches!(sent, Ok(Ok(_))) {
                tracing::debug!("an answer did not reach an MCP server");
            }
        }
        .boxed()
    }
}
