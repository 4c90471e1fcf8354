//! A connection to an MCP server, whichever way its messages go.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::message::Raw;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::error::{ConnectError, RequestError, RpcError};
use crate::headers::ParamHeaders;
use crate::version::{Lifecycle, Version};

pub(crate) mod discovery;
pub(crate) mod handshake;
pub(crate) mod opened;
pub(crate) mod router;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod voice;

/// What a server says of itself.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    /// The version in force.
    pub version: Version,
    /// Its `serverInfo`, as it came; an empty object if it gave none.
    pub info: Raw,
    /// Its capabilities, as they came.
    pub capabilities: Raw,
    /// How to use it.
    pub instructions: Option<String>,
}

/// Which lifecycle to open a connection with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preferred {
    /// The newest that both speak.
    Newest,
    /// This one if the server speaks it, else the other.
    Lifecycle(Lifecycle),
}

/// Names a request towards [`Events`]: chosen by whoever sends it.
pub type Tag = u64;

/// How far a request is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Counts up.
    pub progress: f64,
    /// To this.
    pub total: Option<f64>,
    /// What is done.
    pub message: Option<String>,
}

/// Hears how far a request is. Never waits.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// How a request is made.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// What names the request towards [`Events`].
    pub tag: Option<Tag>,
    /// Whether and whom to tell of progress: the request then has a progress token of its own.
    pub progress: Option<OnProgress>,
    /// Cancels it: the server is told, and the request ends with [`RequestError::Cancelled`].
    pub cancel: CancellationToken,
    /// Without a session: the capabilities of the client on whose behalf it is made; none by default.
    pub capabilities: Option<Raw>,
    /// Over HTTP without a session: which arguments the called tool wants in headers. See [`ParamHeaders::of`].
    pub param_headers: Option<Arc<ParamHeaders>>,
}

/// What a server says by itself.
#[async_trait]
pub trait Events: Send + Sync {
    /// The server asks. `tag` names the request that it asks because of, where the transport tells; else it is `None`.
    async fn request(&self, tag: Option<Tag>, method: &str, params: Option<Raw>) -> Result<Raw, RpcError>;

    /// The server tells something; progress comes by [`RequestOptions::progress`] instead. Never waits.
    fn notification(&self, tag: Option<Tag>, method: &str, params: Option<Raw>);
}

/// An open connection to a server. Cheap to clone; it ends with [`Connection::close`], or when the server ends it.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<dyn Wire>,
}

/// What every kind of connection can do.
#[async_trait]
pub(crate) trait Wire: Send + Sync {
    fn server(&self) -> Arc<ServerDescription>;
    async fn request(&self, method: &str, params: Option<Raw>, options: RequestOptions) -> Result<Raw, RequestError>;
    async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), RequestError>;
    fn closed(&self) -> &CancellationToken;
    async fn close(&self, within: Duration);
}

impl Connection {
    /// What the server says of itself.
    pub fn server(&self) -> Arc<ServerDescription> {
        self.inner.server()
    }

    /// Asks. `params` go as they are, `_meta` included; only what the connection itself needs there (progress token, protocol
    /// version and the like) is put in.
    ///
    /// # Errors
    /// [`RequestError`] says what is known of the request.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Raw>,
        options: RequestOptions,
    ) -> Result<Raw, RequestError> {
        self.inner.request(method, params, options).await
    }

    /// Tells.
    ///
    /// # Errors
    /// It did not reach the server.
    pub async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), RequestError> {
        self.inner.notify(method, params).await
    }

    /// Fires when the connection has ended, whoever ended it.
    pub fn closed(&self) -> &CancellationToken {
        self.inner.closed()
    }

    /// Ends it in order.
    pub async fn close(&self, within: Duration) {
        self.inner.close(within).await;
    }
}

/// Owns the tasks of connections.
pub trait Spawn: Send + Sync {
    /// Runs a task to its end.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// How a connection is opened.
#[derive(Clone)]
pub struct Open {
    /// Which lifecycle to try first.
    pub preferred: Preferred,
    /// Who connects: `clientInfo`, a JSON object.
    pub client_info: Raw,
    /// What the server may ask for: client capabilities, a JSON object.
    pub capabilities: Raw,
    /// How long the handshake may take.
    pub timeout: Duration,
    /// Who hears what the server says by itself.
    pub events: Arc<dyn Events>,
    /// Who owns the connection's tasks.
    pub spawn: Arc<dyn Spawn>,
}

/// Where a server is, on HTTP.
#[derive(Clone)]
pub struct HttpTarget {
    /// Its endpoint.
    pub url: reqwest::Url,
    /// Sent with every request, to its origin alone. May hold credentials.
    pub headers: http::HeaderMap,
    /// Sends them. Without redirects: a credential goes nowhere else.
    pub client: reqwest::Client,
}

impl Connection {
    /// Connects over two byte streams, one message a line. A line that is none is handed to `noise`, and nothing is answered.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn over_streams(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        noise: Arc<dyn Fn(&str) + Send + Sync>,
        open: Open,
    ) -> Result<Self, ConnectError> {
        let channel = crate::streams::Streams::start(reader, writer, noise, &open);
        Ok(Self { inner: opened::open(channel, open).await? })
    }

    /// Connects over streamable HTTP.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn over_http(target: HttpTarget, open: Open) -> Result<Self, ConnectError> {
        let channel = crate::streamable::Http::new(target, &open);
        Ok(Self { inner: opened::open(channel, open).await? })
    }

    /// Connects over HTTP with server-sent events, as servers of 2024-11-05 want it.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn over_sse(target: HttpTarget, open: Open) -> Result<Self, ConnectError> {
        let began = tokio::time::Instant::now();
        let channel = crate::legacy::Legacy::start(target, &open).await?;
        let timeout = open.timeout.saturating_sub(began.elapsed());
        // Such a server knows sessions only.
        let open = Open { preferred: Preferred::Lifecycle(Lifecycle::Session), timeout, ..open };
        Ok(Self { inner: opened::open(channel, open).await? })
    }
}
