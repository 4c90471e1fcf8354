//! One foot's socket: writes what the outbox holds, reads what comes, and notices when neither goes on.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::time::{Instant, Sleep};

use super::config::FeetConfig;
use super::frame::{Ending, Frame, SocketError};
use super::outbox::{Outbox, Waiting};

/// A socket of feet: frames in both directions. Whatever library carries them stays behind this.
pub trait FootSocket:
    Stream<Item = Result<Frame, SocketError>> + Sink<Frame, Error = SocketError> + Send + Unpin + 'static
{
}

impl<S> FootSocket for S where
    S: Stream<Item = Result<Frame, SocketError>> + Sink<Frame, Error = SocketError> + Send + Unpin + 'static
{
}

/// What happened on a socket.
#[derive(Debug)]
pub(super) enum Event {
    /// A frame came.
    Frame(Frame),
    /// The outbox was told to end the connection.
    Ended(Ending),
    /// The socket is gone, or refuses to take what is written.
    Lost(String),
}

/// See the module.
pub(super) struct Wire<S> {
    socket: S,
    outbox: Arc<Outbox>,
    unflushed: bool,
    write_timeout: Duration,
    /// Runs while the socket refuses to take more.
    stalled: Alarm,
    ack_delay: Duration,
    /// Runs while acknowledgements wait for company.
    acks: Alarm,
    linger: Duration,
}

impl<S: FootSocket> Wire<S> {
    pub(super) fn new(socket: S, outbox: Arc<Outbox>, config: &FeetConfig) -> Self {
        Self {
            socket,
            outbox,
            unflushed: false,
            write_timeout: config.write_timeout,
            stalled: Alarm::default(),
            ack_delay: config.ack_delay,
            acks: Alarm::default(),
            linger: config.close_linger,
        }
    }

    /// What waits to be written.
    pub(super) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Writes as much as goes, then reads a frame. Reading never waits for writing: two sides that both only write
    /// would wait for ever.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        self.outbox.register(cx.waker());
        if let Some(ending) = self.outbox.take_ending() {
            return Poll::Ready(Event::Ended(ending));
        }
        if let Err(error) = self.poll_write(cx) {
            return Poll::Ready(Event::Lost(error.to_string()));
        }
        if self.stalled.poll(cx) {
            return Poll::Ready(Event::Lost("the socket takes no more".to_owned()));
        }
        self.socket.poll_next_unpin(cx).map(|next| match next {
            Some(Ok(frame)) => Event::Frame(frame),
            Some(Err(SocketError::TooBig)) => Event::Ended(Ending::too_big()),
            Some(Err(error)) => Event::Lost(error.to_string()),
            None => Event::Lost("the foot closed the connection".to_owned()),
        })
    }

    /// The next event.
    pub(super) async fn next(&mut self) -> Event {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), SocketError> {
        if self.outbox.waiting() == Waiting::Acks {
            self.acks.set_once(self.ack_delay);
            if !self.acks.poll(cx) {
                return self.poll_flush(cx);
            }
            self.acks.clear();
        }
        while self.outbox.waiting() != Waiting::Nothing {
            match self.socket.poll_ready_unpin(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    self.stall();
                    return Ok(());
                }
            }
            self.stalled.clear();
            if let Some(frame) = self.outbox.pop() {
                self.socket.start_send_unpin(frame)?;
                self.unflushed = true;
            }
        }
        // An alarm that is set goes on, also when what it was set for has travelled with another frame: setting it anew for
        // each call would wake the runtime's timer each time.
        self.poll_flush(cx)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), SocketError> {
        if self.unflushed {
            match self.socket.poll_flush_unpin(cx) {
                Poll::Ready(flushed) => {
                    flushed?;
                    self.unflushed = false;
                    self.stalled.clear();
                }
                Poll::Pending => self.stall(),
            }
        }
        Ok(())
    }

    /// The socket takes no more for now. A foot that returns bulk reads, however slow its link is.
    fn stall(&mut self) {
        if self.outbox.take_progress() {
            self.stalled.clear();
        }
        self.stalled.set_once(self.write_timeout);
    }

    /// Says the last words, closes, and gives the other side a moment to read them.
    pub(super) async fn close(mut self, ending: Ending) {
        let Ending { farewell, close } = ending;
        let speaking = async {
            while let Some(frame) = self.outbox.pop_control() {
                self.socket.feed(frame).await?;
            }
            if let Some(farewell) = farewell {
                self.socket.feed(farewell).await?;
            }
            self.socket.send(Frame::Close(close)).await
        };
        let Ok(said) = tokio::time::timeout(self.linger, speaking).await else {
            return tracing::debug!("a foot does not read the close of its connection");
        };
        if let Err(error) = said {
            tracing::debug!(%error, "a foot's connection was gone before it could be closed");
        }
        // Dropping a socket with unread data resets it, and the last words would be lost.
        let reading = async { while let Some(Ok(_)) = self.socket.next().await {} };
        if tokio::time::timeout(self.linger, reading).await.is_err() {
            tracing::debug!("a foot does not answer the close of its connection");
        }
    }
}

/// A timer that is mostly not set.
#[derive(Debug, Default)]
struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    set: bool,
}

impl Alarm {
    fn set_once(&mut self, after: Duration) {
        if self.set {
            return;
        }
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(Instant::now() + after),
            None => self.sleep = Some(Box::pin(tokio::time::sleep(after))),
        }
        self.set = true;
    }

    fn clear(&mut self) {
        self.set = false;
    }

    /// Whether it has gone off. Wakes the task when it does.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.set && self.sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
    }
}
