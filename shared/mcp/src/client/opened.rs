//! An open connection over any transport: what they have in common.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::message::Raw;
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::handshake::shake_hands;
use super::voice::Voice;
use super::{Open, RequestOptions, ServerDescription, Wire};
use crate::error::{ConnectError, RequestError};

/// Why a request has no result, and the HTTP status if there was nothing else.
pub(crate) struct Failed {
    pub(crate) error: RequestError,
    pub(crate) status: Option<u16>,
}

impl From<RequestError> for Failed {
    fn from(error: RequestError) -> Self {
        Self { error, status: None }
    }
}

/// A way to a server.
pub(crate) trait Channel: Send + Sync + 'static {
    /// Asks.
    fn request(
        &self,
        voice: &Voice,
        method: &str,
        params: Option<&RawValue>,
        options: RequestOptions,
    ) -> impl Future<Output = Result<Raw, Failed>> + Send;

    /// Tells.
    fn notify(
        &self,
        voice: &Voice,
        method: &str,
        params: Option<&RawValue>,
    ) -> impl Future<Output = Result<(), RequestError>> + Send;

    /// The handshake is done. Ends when the server can be heard.
    fn opened(&self, voice: &Voice) -> impl Future<Output = ()> + Send {
        let _ = voice;
        std::future::ready(())
    }

    /// Fires when it has ended. Fired, everything of it ends.
    fn closed(&self) -> &CancellationToken;

    /// Ends it in order. `closed` is fired afterwards.
    fn close(&self, voice: &Voice, within: Duration) -> impl Future<Output = ()> + Send;
}

struct Opened<C> {
    channel: C,
    voice: Voice,
    server: Arc<ServerDescription>,
    /// Ends it with the last clone of the connection.
    _end: DropGuard,
}

/// Shakes hands over a channel. If that fails, the channel is ended.
pub(crate) async fn open<C: Channel>(channel: C, open: Open) -> Result<Arc<dyn Wire>, ConnectError> {
    let end = channel.closed().clone().drop_guard();
    let (voice, server) = shake_hands(&channel, &open).await?;
    channel.opened(&voice).await;
    Ok(Arc::new(Opened { channel, voice, server: Arc::new(server), _end: end }))
}

#[async_trait]
impl<C: Channel> Wire for Opened<C> {
    fn server(&self) -> Arc<ServerDescription> {
        Arc::clone(&self.server)
    }

    async fn request(&self, method: &str, params: Option<Raw>, options: RequestOptions) -> Result<Raw, RequestError> {
        self.channel.request(&self.voice, method, params.as_deref(), options).await.map_err(|failed| failed.error)
    }

    async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), RequestError> {
        self.channel.notify(&self.voice, method, params.as_deref()).await
    }

    fn closed(&self) -> &CancellationToken {
        self.channel.closed()
    }

    async fn close(&self, within: Duration) {
        if !self.closed().is_cancelled() {
            let _ = tokio::time::timeout(within, self.channel.close(&self.voice, within)).await;
        }
        self.closed().cancel();
    }
}
