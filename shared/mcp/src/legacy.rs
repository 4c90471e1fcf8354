//! A connection over HTTP with server-sent events, as servers of 2024-11-05 speak: one stream of all that the server says,
//! whose first event tells where to POST.

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
use crate::error::{ConnectError, RequestError};
use crate::message::{Message, RequestId, write_call};
use crate::streamable::{Endpoint, EventStream, PostError, Posted, Refusal, SIDE_MESSAGE_WAIT, Speech, StreamError};
use crate::streams::cancelled;

#[cfg(test)]
mod tests;

/// A channel over one stream and POSTs.
pub(crate) struct Legacy {
    poster: Arc<Poster>,
}

/// Sends messages, and takes in what comes back with them.
struct Poster {
    endpoint: Endpoint,
    router: Arc<Router>,
    origin: Origin,
}

impl Legacy {
    /// Opens the stream, and waits for the address that it tells.
    pub(crate) async fn start(target: HttpTarget, open: &Open) -> Result<Self, ConnectError> {
        let closed = CancellationToken::new();
        let router = Router::new(Arc::clone(&open.events), Arc::clone(&open.spawn), closed.clone());
        let opening = async {
            let mut stream =
                Endpoint::new(target.clone()).get(&Speech::default(), None).await.map_err(connect_error)?;
            let url = post_address(&target, &mut stream).await?;
            Ok((stream, Endpoint::new(HttpTarget { url, ..target })))
        };
        let (stream, endpoint) =
            tokio::time::timeout(open.timeout, opening).await.unwrap_or(Err(ConnectError::Timeout(open.timeout)))?;
        let origin = Origin { tag: None, until: closed.clone() };
        let poster = Arc::new(Poster { endpoint, router: Arc::clone(&router), origin });
        let reads = Arc::clone(&poster);
        router.spawn(async move {
            let why = tokio::select! {
                () = closed.cancelled() => "the connection was closed".to_owned(),
                why = reads.read(stream) => why,
            };
            reads.router.end(&why);
        });
        Ok(Self { poster })
    }

    fn router(&self) -> &Router {
        &self.poster.router
    }
}

impl Poster {
    /// Takes in what the server says, until it says no more; returns why.
    async fn read(self: &Arc<Self>, mut stream: EventStream) -> String {
        loop {
            match stream.next().await {
                Ok(Some(event)) if event.is_message() => {
                    match Message::parse_all(event.data.as_deref().unwrap_or_default()) {
                        Ok(messages) => self.take(messages),
                        Err(_) => tracing::debug!("an MCP server sent an event that is no message"),
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return "the server ended its stream".to_owned(),
                Err(StreamError::Broke(why)) => return why,
                Err(StreamError::TooLarge(why)) => {
                    // There is no other stream to be had in this session.
                    tracing::warn!(%why, "the connection to an MCP server is ended");
                    return why;
                }
            }
        }
    }

    fn take(self: &Arc<Self>, messages: Vec<Message>) {
        for message in messages {
            self.router.take(message, &self.origin, || Arc::clone(self) as Arc<dyn Replies>);
        }
    }

    /// Sends a message: the request of this id, or another one.
    async fn send(self: &Arc<Self>, text: String, id: Option<u64>) -> Result<(), Failed> {
        match self.endpoint.post(text, &Speech::default()).await {
            // Some answer at once. An answer without an id, to this POST, is to this request.
            Ok(Posted::Messages(mut messages)) => {
                for message in &mut messages {
                    if let (Message::Response { id: whose @ None, .. }, Some(id)) = (message, id) {
                        *whose = Some(RequestId::number(id));
                    }
                }
                self.take(messages);
            }
            Ok(Posted::Nothing | Posted::Stream(_)) | Err(PostError::BadAnswer(_)) => {}
            Err(PostError::NotSent(why)) => return Err(RequestError::NotSent(why).into()),
            Err(PostError::Lost(why)) => return Err(RequestError::Lost(why).into()),
            Err(PostError::Unauthorized(Refusal { status, .. })) => {
                return Err(RequestError::Unauthorized(status).into());
            }
            Err(PostError::Forgotten) => return Err(RequestError::SessionExpired.into()),
            Err(PostError::Status(Refusal { status, .. })) => {
                return Err(Failed { error: RequestError::BadAnswer(format!("HTTP {status}")), status: Some(status) });
            }
        }
        Ok(())
    }

    /// Sends what nobody waits for.
    async fn send_aside(self: Arc<Self>, text: String) {
        let sent = tokio::time::timeout(SIDE_MESSAGE_WAIT, self.send(text, None));
        tokio::select! {
            () = self.router.closed().cancelled() => {}
            sent = sent => if !matches!(sent, Ok(Ok(()))) {
                tracing::debug!("a message did not reach an MCP server");
            },
        }
    }
}

impl Replies for Poster {
    fn reply(self: Arc<Self>, message: Message) -> BoxFuture<'static, ()> {
        self.send_aside(message.to_text()).boxed()
    }
}

/// Reads the address to POST to. It has to be of the stream's origin: credentials go nowhere else.
async fn post_address(target: &HttpTarget, stream: &mut EventStream) -> Result<reqwest::Url, ConnectError> {
    let failed = |why: &str| ConnectError::Transport(why.to_owned());
    loop {
        match stream.next().await {
            Ok(Some(event)) if event.name.as_deref() == Some("endpoint") => {
                let data = event.data.unwrap_or_default();
                let url = target.url.join(data.trim()).map_err(|_| failed("the server tells no address to POST to"))?;
                return match url.origin() == target.url.origin() {
                    true => Ok(url),
                    false => Err(failed("the server tells an address of another origin to POST to")),
                };
            }
            Ok(Some(_)) => {}
            Ok(None) => return Err(failed("the server's stream ended before it told an address to POST to")),
            Err(StreamError::Broke(why) | StreamError::TooLarge(why)) => return Err(ConnectError::Transport(why)),
        }
    }
}

fn connect_error(error: PostError) -> ConnectError {
    match error {
        PostError::NotSent(why) | PostError::Lost(why) | PostError::BadAnswer(why) => ConnectError::Transport(why),
        PostError::Unauthorized(Refusal { status, .. }) => ConnectError::Unauthorized(status),
        PostError::Status(Refusal { status, .. }) => ConnectError::Status(status),
        PostError::Forgotten => ConnectError::Status(404),
    }
}

impl Channel for Legacy {
    async fn request(
        &self,
        voice: &Voice,
        method: &str,
        params: Option<&RawValue>,
        options: RequestOptions,
    ) -> Result<Raw, Failed> {
        let Begun { id, text } = self.router().begin(voice, method, params, &options)?;
        let (answers, mut answer) = oneshot::channel();
        // It may be at the server from the first byte on.
        self.router().expect(
            id,
            Call { answer: Some(answers), progress: options.progress, started: true, server_may_end: false },
        )?;
        let mut abandon = Abandon { legacy: self, id, tells: voice.version.is_some() };
        let exchange = async {
            let lost = |_| Err(RequestError::Lost("the connection has ended".to_owned()));
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer.unwrap_or_else(lost)?),
                sent = self.poster.send(text, Some(id)) => sent?,
            }
            Ok(answer.await.unwrap_or_else(lost)?)
        };
        let outcome = tokio::select! {
            biased;
            outcome = exchange => outcome,
            () = options.cancel.cancelled() => return Err(RequestError::Cancelled.into()),
        };
        abandon.tells = false;
        outcome
    }

    async fn notify(&self, _: &Voice, method: &str, params: Option<&RawValue>) -> Result<(), RequestError> {
        self.router().check_open()?;
        let mut text = String::new();
        write_call(&mut text, None, method, params);
        self.poster.send(text, None).await.map_err(|failed| failed.error)
    }

    fn closed(&self) -> &CancellationToken {
        self.poster.router.closed()
    }

    async fn close(&self, _: &Voice, _: Duration) {
        // The end of the stream is all that there is.
    }
}

/// Ends a request that nobody waits for any more: dropped before the answer, the server is told.
struct Abandon<'a> {
    legacy: &'a Legacy,
    id: u64,
    tells: bool,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let waits = self.legacy.router().forget(self.id).is_some();
        if waits && self.tells {
            let poster = Arc::clone(&self.legacy.poster);
            self.legacy.router().spawn(poster.send_aside(cancelled(self.id)));
        }
    }
}
