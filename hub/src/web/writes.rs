//! A connection whose other side has to read: writing that stands still for too long ends it. Without that an answer that
//! nobody reads would be held for as long as its client likes.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// How long writing may stand still. A kernel says that there is room again only once about a third of what it holds for a
/// connection, some MiB, was read: at 16 KiB/s, which is what bodies on their way in have to keep up too, that takes 90 s.
pub(super) const WRITE_LIMIT: Duration = Duration::from_secs(120);
/// The same from the soft end of the hub on: shorter than [`DRAIN_TIMEOUT`](crate::lifecycle::DRAIN_TIMEOUT).
pub(super) const WRITE_LIMIT_AT_THE_END: Duration = Duration::from_secs(15);

/// A connection with such limits.
pub(super) struct Writes<S> {
    inner: S,
    soft: CancellationToken,
    /// Ready when writing has stood still for too long. There is none while it moves.
    still: Option<BoxFuture<'static, ()>>,
}

impl<S> Writes<S> {
    /// `soft` is the soft end of the hub.
    pub(super) fn new(inner: S, soft: CancellationToken) -> Self {
        Self { inner, soft, still: None }
    }

    /// Looks at how long writing stands still.
    fn watched<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.still = None;
            return written;
        }
        let soft = &self.soft;
        let still = self.still.get_or_insert_with(|| too_long(soft.clone()).boxed());
        match Pin::new(still).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side does not read")))
            }
        }
    }
}

async fn too_long(soft: CancellationToken) {
    let at_the_end = async {
        soft.cancelled().await;
        tokio::time::sleep(WRITE_LIMIT_AT_THE_END).await;
    };
    tokio::select! {
        () = tokio::time::sleep(WRITE_LIMIT) => {}
        () = at_the_end => {}
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Writes<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Writes<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watched(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watched(cx, written)
    }

    /// Without it the pieces of an answer would be copied into one before they are written.
    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        if self.still.is_none() { flushed } else { self.watched(cx, flushed) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    const ROOM: usize = 16;

    #[tokio::test(start_paused = true)]
    async fn writing_that_stands_still_ends() {
        for (soft, after) in [(false, WRITE_LIMIT), (true, WRITE_LIMIT_AT_THE_END)] {
            let (ours, _theirs) = tokio::io::duplex(ROOM);
            let end = CancellationToken::new();
            if soft {
                end.cancel();
            }
            let begun = Instant::now();
            let mut ours = Writes::new(ours, end);
            assert_eq!(ours.write_all(&[0; 2 * ROOM]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert_eq!(begun.elapsed(), after);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_slowly_reads_all() {
        let (ours, mut theirs) = tokio::io::duplex(ROOM);
        let mut ours = Writes::new(ours, CancellationToken::new());
        let reads = async {
            let mut piece = [0; ROOM];
            for _ in 0..8 {
                tokio::time::sleep(WRITE_LIMIT - Duration::from_secs(1)).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(ours.write_all(&[0; 8 * ROOM]), reads);
        written.unwrap();
        // Silence is no standstill.
        tokio::time::sleep(10 * WRITE_LIMIT).await;
        ours.write_all(&[0; ROOM]).await.unwrap();
    }
}
