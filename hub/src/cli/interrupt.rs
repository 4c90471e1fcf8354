//! Ctrl-C, and its sibling SIGTERM.

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::signal::unix::{SignalKind, signal};

/// Hears Ctrl-C and SIGTERM from now on; without one of these, they end the process at once.
pub(super) struct Interrupts(BoxStream<'static, ()>);

impl Interrupts {
    /// Starts to listen.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub(super) fn listen() -> std::io::Result<Self> {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let interrupts = stream::poll_fn(move |cx| interrupt.poll_recv(cx));
        let terminations = stream::poll_fn(move |cx| terminate.poll_recv(cx));
        Ok(Self(stream::select(interrupts, terminations).boxed()))
    }

    /// Hears what a test says.
    #[cfg(test)]
    pub(super) fn of(said: impl futures::Stream<Item = ()> + Send + 'static) -> Self {
        Self(said.boxed())
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        if self.0.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
