//! The one owner of a socket: it writes what the outbox holds and reads what comes, in turn, without waiting for either.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use footbridge_shared::id::CallId;
use footbridge_shared::limits::WRITE_TIMEOUT;
use footbridge_shared::message::{Credit, PartsFrom};
use footbridge_shared::part::PartsId;
use futures::{Sink, SinkExt as _, StreamExt as _};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes};

use super::outbox::Outbox;
use crate::connection::Socket;
use crate::frame::Frame;

/// How long the last frames and the close may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the other side may take to read them, and to close as well.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(3);

/// What comes from the other side.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A text frame.
    Text(Utf8Bytes),
    /// A binary frame.
    Binary(Bytes),
    /// A sign of life of the socket itself.
    Life,
    /// It was closed.
    Closed(Option<CloseFrame>),
    /// It broke.
    Broken(String),
}

/// A socket and what waits to be written to it.
pub(super) struct Wire {
    socket: Socket,
    outbox: Outbox,
    unflushed: bool,
    /// Since when the socket takes nothing.
    stuck: Option<Instant>,
}

impl Wire {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, outbox: Outbox::default(), unflushed: false, stuck: None }
    }

    pub(super) fn push(&mut self, frame: Frame) {
        self.outbox.push(frame);
    }

    pub(super) fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    /// Whether all that was pushed has left.
    pub(super) fn is_drained(&self) -> bool {
        self.outbox.is_drained() && !self.unflushed
    }

    /// What the hub accepts in one text frame.
    pub(super) fn set_frame_bytes(&mut self, bytes: usize) {
        self.outbox.set_frame_bytes(bytes);
    }

    /// The hub said something that is no `partsFrom`: parts may go out.
    pub(super) const fn open(&mut self) {
        self.outbox.open();
    }

    /// The hub returns bulk: it reads, however slow the link is.
    pub(super) fn credit(&mut self, credit: &Credit) {
        self.outbox.credit(credit);
        self.stuck = self.stuck.map(|_| Instant::now());
    }

    /// The hub wants the parts of a message from some place on.
    pub(super) fn parts_from(&mut self, wanted: &PartsFrom) {
        self.outbox.parts_from(wanted);
    }

    /// The hub has the answer to a call.
    pub(super) fn settled(&mut self, call: &CallId) {
        self.outbox.settled(call);
    }

    /// A frame of the hub was taken in: returns the bulk that must be returned by now.
    pub(super) fn took(&mut self, id: PartsId, bytes: usize) {
        self.outbox.owe(id, bytes);
        self.outbox.repay();
    }

    /// The same for the end of a message in parts, or for one that is to wait with its rest: returned at once.
    pub(super) fn took_last(&mut self, id: PartsId, bytes: usize, hold: bool) {
        self.outbox.owe(id, bytes);
        self.outbox.repay_now(id, hold);
    }

    /// Whether the other side has not read for too long.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.is_some_and(|since| since.elapsed() >= WRITE_TIMEOUT)
    }

    /// Writes while it waits for the next frame to come. Losing this future loses nothing.
    pub(super) async fn turn(&mut self) -> Incoming {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Incoming> {
        if let Err(error) = self.write(cx) {
            return Poll::Ready(Incoming::Broken(error.to_string()));
        }
        if !self.outbox.may_read() {
            return Poll::Pending;
        }
        let incoming = match ready!(self.socket.poll_next_unpin(cx)) {
            Some(Ok(Message::Text(text))) => Incoming::Text(text),
            Some(Ok(Message::Binary(bytes))) => Incoming::Binary(bytes),
            Some(Ok(Message::Close(frame))) => Incoming::Closed(frame),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Incoming::Life,
            Some(Err(error)) => Incoming::Broken(error.to_string()),
            None => Incoming::Closed(None),
        };
        Poll::Ready(incoming)
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let mut socket = Pin::new(&mut self.socket);
        while self.outbox.is_ready() {
            let Poll::Ready(taken) = socket.as_mut().poll_ready(cx) else { break };
            taken?;
            self.stuck = None;
            if let Some(message) = self.outbox.pop() {
                socket.as_mut().start_send(message)?;
                self.unflushed = true;
            }
        }
        if self.unflushed {
            match socket.poll_flush(cx) {
                Poll::Ready(flushed) => {
                    flushed?;
                    (self.unflushed, self.stuck) = (false, None);
                }
                Poll::Pending => _ = self.stuck.get_or_insert_with(Instant::now),
            }
        }
        Ok(())
    }

    /// Writes all that waits but bulk, which needs a hub that still reads, and then closes, within a short while; whether
    /// the other side hears it or not.
    ///
    /// It reads on until the other side closes, too: a socket that is dropped with something unread is reset, and a reset
    /// takes with it what the hub has not read yet.
    pub(super) async fn close(mut self, code: u16, reason: &str) {
        self.outbox.drop_bulk();
        let closing = async {
            while let Some(message) = self.outbox.pop() {
                self.socket.feed(message).await?;
            }
            let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
            self.socket.close(Some(frame)).await
        };
        match timeout(CLOSE_TIMEOUT, closing).await {
            Ok(Ok(())) => {
                let farewell = async { while let Some(Ok(_)) = self.socket.next().await {} };
                if timeout(FAREWELL_TIMEOUT, farewell).await.is_err() {
                    tracing::debug!("the hub did not close in time");
                }
            }
            Ok(Err(error)) => tracing::debug!(%error, "the connection ended before it was closed"),
            Err(_) => tracing::debug!("the hub did not take the close in time"),
        }
    }
}
