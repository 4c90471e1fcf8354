//! A connection over two byte streams: one message a line, as servers on stdio speak.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::limits::MAX_MESSAGE_BYTES;
use footbridge_shared::message::Raw;
use footbridge_shared::text::clean_and_cut;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use crate::client::opened::{Channel, Failed};
use crate::client::router::{Begun, Call, Origin, Replies, Router};
use crate::client::voice::Voice;
use crate::client::{Open, RequestOptions};
use crate::error::RequestError;
use crate::lines::{Line, Lines};
use crate::listen::LISTEN;
use crate::message::{Message, Outlined, write_call};

mod queue;
#[cfg(test)]
mod tests;

use queue::{Queue, write_lines};

/// Characters of a line that is no message that are handed on.
const MAX_NOISE_CHARS: usize = 1000;

/// Hears lines that are no messages.
type Noise = Arc<dyn Fn(&str) + Send + Sync>;

/// A channel over two byte streams.
pub(crate) struct Streams {
    router: Arc<Router>,
    queue: Queue,
    /// Fired, what is queued is written, and then the writer closed.
    finish: CancellationToken,
}

impl Streams {
    /// Starts its two tasks.
    pub(crate) fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        noise: Noise,
        open: &Open,
    ) -> Self {
        let closed = CancellationToken::new();
        let finish = CancellationToken::new();
        let router = Router::new(Arc::clone(&open.events), Arc::clone(&open.spawn), closed.clone());
        let (queue, lines) = Queue::new();
        let writing = write_lines(writer, lines, Arc::clone(&router), finish.clone());
        let ends = closed.clone();
        router.spawn(async move {
            tokio::select! {
                () = ends.cancelled() => {}
                failed = writing => if failed.is_err() { ends.cancel() },
            }
        });
        let replies: Arc<dyn Replies> = Arc::new(queue.clone());
        let routes = Arc::clone(&router);
        router.spawn(async move {
            tokio::select! {
                () = closed.cancelled() => routes.end("the connection was closed"),
                () = read(reader, &routes, &replies, &*noise) => routes.end("the server ended"),
            }
        });
        Self { router, queue, finish }
    }

    /// Waits for room in the queue for as long as the connection is open.
    async fn room(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, RequestError> {
        tokio::select! {
            biased;
            () = self.closed().cancelled() => self.router.check_open().map(|()| None),
            room = self.queue.room(bytes) => Ok(room),
        }
    }
}

async fn read(
    reader: impl AsyncRead + Send + Unpin,
    router: &Arc<Router>,
    replies: &Arc<dyn Replies>,
    noise: &(dyn Fn(&str) + Send + Sync),
) {
    let origin = Origin { tag: None, until: router.closed().clone() };
    let mut lines = Lines::new(reader, MAX_MESSAGE_BYTES);
    while let Some(line) = lines.next().await {
        match line {
            Line::Text(bytes) => {
                let messages = std::str::from_utf8(bytes).ok().and_then(|text| Message::parse_all(text).ok());
                match messages {
                    Some(messages) => {
                        messages.into_iter().for_each(|message| router.take(message, &origin, || Arc::clone(replies)))
                    }
                    None => noise(&readable(bytes)),
                }
            }
            Line::TooLong(outline) => {
                for message in Outlined::all(outline) {
                    router.take_too_long(message, || Arc::clone(replies));
                }
                noise(&format!("(a line of more than {MAX_MESSAGE_BYTES} bytes)"));
            }
        }
    }
}

/// What can be shown of a line.
fn readable(line: &[u8]) -> String {
    // No character has more than four bytes.
    let start = &line[..line.len().min(4 * MAX_NOISE_CHARS)];
    clean_and_cut(&String::from_utf8_lossy(start), MAX_NOISE_CHARS)
}

impl Channel for Streams {
    async fn request(
        &self,
        voice: &Voice,
        method: &str,
        params: Option<&RawValue>,
        options: RequestOptions,
    ) -> Result<Raw, Failed> {
        let Begun { id, text } = self.router.begin(voice, method, params, &options)?;
        let room = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(RequestError::Cancelled.into()),
            room = self.room(text.len()) => room?,
        };
        let (answers, answer) = oneshot::channel();
        self.router.expect(
            id,
            Call {
                answer: Some(answers),
                progress: options.progress,
                started: false,
                server_may_end: method == LISTEN,
            },
        )?;
        // Before it is agreed on how to speak, a server need not know how a request is cancelled.
        let abandon = Abandon { streams: self, id, tells: voice.version.is_some() && method != "server/discover" };
        self.queue.push(text, Some(id), room);
        let outcome = tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|_| Err(RequestError::Lost("the connection has ended".to_owned()))),
            () = options.cancel.cancelled() => Err(RequestError::Cancelled),
        };
        drop(abandon);
        Ok(outcome?)
    }

    async fn notify(&self, _: &Voice, method: &str, params: Option<&RawValue>) -> Result<(), RequestError> {
        let mut text = String::new();
        write_call(&mut text, None, method, params);
        let room = self.room(text.len()).await?;
        self.queue.push(text, None, room);
        Ok(())
    }

    fn closed(&self) -> &CancellationToken {
        self.router.closed()
    }

    async fn close(&self, _: &Voice, _: Duration) {
        self.finish.cancel();
        // A server ends when nothing can come any more.
        self.closed().cancelled().await;
    }
}

/// Ends a request that nobody waits for any more: dropped before the answer, the server is told.
struct Abandon<'a> {
    streams: &'a Streams,
    id: u64,
    tells: bool,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        let Some(call) = self.streams.router.forget(self.id) else { return };
        if call.started && self.tells {
            self.streams.queue.push_small(cancelled(self.id));
        }
    }
}

/// Says that a request need not be answered.
pub(crate) fn cancelled(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

impl Replies for Queue {
    fn reply(self: Arc<Self>, message: Message) -> BoxFuture<'static, ()> {
        async move {
            let text = message.to_text();
            let room = self.room(text.len()).await;
            self.push(text, None, room);
        }
        .boxed()
    }
}
