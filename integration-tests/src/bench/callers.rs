//! Callers of what is measured and of what it is compared with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::Result;
use crate::api::Api;

/// How a relayed call says that it succeeded.
const SUCCEEDED: &str = r#""isError":false"#;

/// A call under way.
pub(super) type Pending = BoxFuture<'static, Result<()>>;

/// What an answer must be, so that no failure is measured as if it were a quick success.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// So many bytes.
    Echo(usize),
    /// A call that succeeded, with at least so many bytes.
    Relayed(usize),
}

impl Answer {
    fn check(self, body: &str) -> Result<()> {
        let fits = match self {
            Self::Echo(bytes) => body.len() == bytes,
            // It stands at the end: the whole of a large result is not searched for it.
            Self::Relayed(bytes) => body.len() >= bytes && body.get(bytes..).is_some_and(|end| end.contains(SUCCEEDED)),
        };
        if fits { Ok(()) } else { Err(format!("no {self:?}: {}", body.chars().take(200).collect::<String>()).into()) }
    }
}

/// A request that is made again and again.
#[derive(Debug, Clone)]
pub(super) struct Post {
    api: Api,
    path: String,
    body: String,
    answer: Answer,
    /// Makes the next key, where calls have keys.
    keys: Option<Arc<Keys>>,
}

/// Keys that nobody used before.
#[derive(Debug)]
struct Keys {
    prefix: u64,
    next: AtomicU64,
}

impl Post {
    /// A request to an absolute path, without a key.
    pub(super) fn new(api: &Api, path: &str, body: &str, answer: Answer) -> Self {
        Self { api: api.clone(), path: path.to_owned(), body: body.to_owned(), answer, keys: None }
    }

    /// The same with a new key each time.
    #[must_use]
    pub(super) fn keyed(self) -> Self {
        let keys = Keys { prefix: fastrand::u64(..), next: AtomicU64::default() };
        Self { keys: Some(Arc::new(keys)), ..self }
    }

    /// A caller.
    pub(super) fn caller(&self) -> impl FnMut() -> Pending + Send + use<> {
        let post = self.clone();
        move || Box::pin(post.clone().call())
    }

    /// One call.
    ///
    /// # Errors
    /// When there is no answer, or not the right one.
    pub(super) async fn call(self) -> Result<()> {
        let Self { api, path, body, answer, keys } = self;
        let mut request = api.request(Method::POST, &path).header("content-type", "application/json").body(body);
        if let Some(keys) = keys {
            let number = keys.next.fetch_add(1, Ordering::Relaxed);
            request = request.header("idempotency-key", format!("{:x}-{number}", keys.prefix));
        }
        let response = request.send().await?;
        let status = response.status();
        let bytes = response.bytes().await?;
        let text = std::str::from_utf8(&bytes)?;
        if status.is_success() { answer.check(text) } else { Err(format!("{status}: {text}").into()) }
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// One WebSocket that many callers share, as the calls of a foot share one. Answers come in the order of the questions.
#[derive(Debug)]
pub(super) struct EchoSocket {
    sender: Arc<Mutex<Sender>>,
    /// Ends with the socket.
    _receiver: JoinSet<()>,
}

#[derive(Debug)]
struct Sender {
    sink: SplitSink<Socket, Message>,
    waiting: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl EchoSocket {
    /// Connects to a bare server.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let (socket, _) = tokio_tungstenite::connect_async_with_config(url, None, true).await?;
        let (sink, stream) = socket.split();
        let (waiting, asked) = mpsc::unbounded_channel();
        let mut receiver = JoinSet::new();
        receiver.spawn(deliver(stream, asked));
        Ok(Self { sender: Arc::new(Mutex::new(Sender { sink, waiting })), _receiver: receiver })
    }

    /// A caller that sends a text and waits for its answer.
    pub(super) fn caller(&self, text: &str) -> impl FnMut() -> Pending + Send + use<> {
        let (sender, text) = (self.sender.clone(), text.to_owned());
        move || {
            let (sender, message) = (sender.clone(), Message::text(text.clone()));
            Box::pin(async move {
                let (done, answer) = oneshot::channel();
                {
                    let mut sender = sender.lock().await;
                    sender.waiting.send(done)?;
                    sender.sink.send(message).await?;
                }
                Ok(answer.await?)
            })
        }
    }
}

async fn deliver(mut stream: SplitStream<Socket>, mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    while let Some(Ok(message)) = stream.next().await {
        if message.is_text()
            && let Some(done) = asked.recv().await
        {
            // A caller that gave up has said so already.
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_is_not_measured() {
        let relayed = Answer::Relayed(10);
        assert!(relayed.check(r#"{"text":"xxxxxxxxxx","isError":false}"#).is_ok());
        assert!(relayed.check(r#"{"text":"xxxxxxxxxx","isError":true}"#).is_err());
        assert!(relayed.check(r#"{"isError":false}"#).is_err(), "nothing came back");
        assert!(Answer::Echo(3).check("abc").is_ok());
        assert!(Answer::Echo(3).check("ab").is_err());
    }
}
