//! How fast a link is, and how long it takes.

use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::time::Instant;

/// Socket buffers before a slow link, in bytes. What waits in them has left the control of its sender, as in the queue of a
/// router; larger ones would make the test one of the kernel's patience. Linux doubles the number.
const SLOW_BUFFER_BYTES: u32 = 32 * 1024;
/// What is read at once from a slow link, in bytes: one packet.
const SLOW_CHUNK_BYTES: usize = 1_460;
/// The same where speed does not matter.
const FAST_CHUNK_BYTES: usize = 16 * 1024;

/// A link, the same in both directions. The default is as fast as the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Bits a second, each way; `None`: no limit.
    pub rate: Option<u64>,
    /// How long a byte is under way.
    pub latency: Duration,
}

impl Link {
    /// A slow link.
    pub const fn slow(rate: u64, latency: Duration) -> Self {
        Self { rate: Some(rate), latency }
    }

    pub(super) fn limit_buffers(self, socket: &TcpSocket) -> std::io::Result<()> {
        socket.set_nodelay(true)?;
        if self.rate.is_some() {
            socket.set_recv_buffer_size(SLOW_BUFFER_BYTES)?;
            socket.set_send_buffer_size(SLOW_BUFFER_BYTES)?;
        }
        Ok(())
    }

    pub(super) const fn chunk_bytes(self) -> usize {
        if self.rate.is_some() { SLOW_CHUNK_BYTES } else { FAST_CHUNK_BYTES }
    }
}

/// One direction of a link: when the next byte may go, and when it arrives.
#[derive(Debug)]
pub(super) struct Pace {
    link: Link,
    free_at: Instant,
}

impl Pace {
    pub(super) fn new(link: Link) -> Self {
        Self { link, free_at: Instant::now() }
    }

    /// Puts bytes on the link; returns when they arrive.
    pub(super) fn send(&mut self, bytes: usize) -> Instant {
        let start = self.free_at.max(Instant::now());
        let time = self.link.rate.map_or(0.0, |rate| bytes as f64 * 8.0 / rate as f64);
        self.free_at = start + Duration::from_secs_f64(time);
        self.free_at + self.link.latency
    }

    /// Waits until the link takes more.
    pub(super) async fn ready(&self) {
        if self.link.rate.is_some() {
            tokio::time::sleep_until(self.free_at).await;
        }
    }
}
