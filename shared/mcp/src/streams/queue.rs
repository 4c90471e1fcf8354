//! What waits to be written. It is bounded in bytes; whoever has more waits for room.

use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::client::router::Router;

/// How many bytes may wait. A message that is larger waits until it is alone.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;

/// A line that waits.
pub(super) struct Waiting {
    text: String,
    /// The request that it is.
    call: Option<u64>,
    _room: Option<OwnedSemaphorePermit>,
}

/// The way to the writer. The channel itself has no bound, because its messages have: each brings its room, but for
/// those that end a request, of which there are no more than requests.
#[derive(Clone)]
pub(super) struct Queue {
    lines: UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
}

impl Queue {
    pub(super) fn new() -> (Self, UnboundedReceiver<Waiting>) {
        let (lines, waiting) = unbounded_channel();
        (Self { lines, room: Arc::new(Semaphore::new(QUEUE_BYTES)) }, waiting)
    }

    /// Waits for room for a text of so many bytes, and for what every line takes beside it: many that are short are much.
    pub(super) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = bytes.saturating_add(size_of::<Waiting>());
        let bytes = u32::try_from(bytes.min(QUEUE_BYTES)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        Arc::clone(&self.room).acquire_many_owned(bytes).await.ok()
    }

    /// Queues a line. If the writer has gone, nothing is written, and the end of the connection says so.
    pub(super) fn push(&self, text: String, call: Option<u64>, room: Option<OwnedSemaphorePermit>) {
        let _ = self.lines.send(Waiting { text, call, _room: room });
    }

    /// Queues the end of a request.
    pub(super) fn push_small(&self, text: String) {
        self.push(text, None, None);
    }
}

/// Writes what waits, until `finish` fires: then what still waits, and the end.
pub(super) async fn write_lines(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: UnboundedReceiver<Waiting>,
    router: Arc<Router>,
    finish: CancellationToken,
) -> std::io::Result<()> {
    loop {
        let next = match lines.try_recv() {
            Ok(line) => Some(line),
            Err(_) => {
                writer.flush().await?;
                tokio::select! {
                    biased;
                    line = lines.recv() => line,
                    () = finish.cancelled() => None,
                }
            }
        };
        let Some(Waiting { mut text, call, _room }) = next else { break };
        // One that was abandoned before it was written never was.
        if call.is_none_or(|call| router.start(call)) {
            text.push('\n');
            writer.write_all(text.as_bytes()).await?;
        }
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn lines_that_are_short_fill_the_queue_too() {
        let (queue, _waiting) = Queue::new();
        let mut lines = 0;
        while let Some(room) = queue.room(1).now_or_never() {
            queue.push("x".to_owned(), None, room);
            lines += 1;
        }
        assert!(lines > 0 && lines * size_of::<Waiting>() <= QUEUE_BYTES, "{lines}");
    }
}
