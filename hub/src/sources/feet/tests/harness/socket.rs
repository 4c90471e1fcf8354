//! A socket that is a pair of pipes.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::channel::mpsc;
use futures::{Sink, SinkExt as _, Stream, StreamExt as _};

use crate::sources::feet::{Frame, SocketError};

/// The hub's end of a socket.
pub(super) struct Pipe {
    pub(super) from_foot: mpsc::Receiver<Result<Frame, SocketError>>,
    pub(super) to_foot: mpsc::Sender<Frame>,
}

fn broken(error: mpsc::SendError) -> SocketError {
    SocketError::Broken(error.to_string())
}

impl Stream for Pipe {
    type Item = Result<Frame, SocketError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.from_foot.poll_next_unpin(cx)
    }
}

impl Sink<Frame> for Pipe {
    type Error = SocketError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.to_foot.poll_ready_unpin(cx).map_err(broken)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Frame) -> Result<(), SocketError> {
        self.to_foot.start_send_unpin(frame).map_err(broken)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.to_foot.poll_flush_unpin(cx).map_err(broken)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.to_foot.poll_close_unpin(cx).map_err(broken)
    }
}
