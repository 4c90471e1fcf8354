//! One direction of a connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::link::{Link, Pace};

/// Chunks under way at once: more than any link here holds.
const CHUNKS_UNDER_WAY: usize = 256;

/// What a direction does with what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Flow {
    /// Passes it on.
    #[default]
    Pass,
    /// Passes it on, this much later.
    Late(Duration),
    /// Reads nothing.
    Hold,
    /// Passes on half of it, and then no more.
    Halve,
    /// Tells the receiver that this was all, and throws away what still comes.
    Shut,
}

/// Why a direction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The sender closed; the receiver was told.
    Finished,
    /// One of the sides broke off.
    Broken,
    /// [`Flow::Halve`] was done.
    Truncated,
}

/// Moves bytes until the direction ends.
pub(super) async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    flow: watch::Receiver<Flow>,
    link: Link,
) -> Ended {
    let (queue, mut arriving) = mpsc::channel(CHUNKS_UNDER_WAY);
    let reading = read(&mut from, flow, queue, link);
    let writing = async {
        while let Some(Chunk { due, bytes }) = arriving.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return false;
            }
        }
        // The receiver may be gone: then it knows.
        let _ = to.shutdown().await;
        true
    };
    tokio::pin!(reading, writing);
    tokio::select! {
        ended = &mut reading => if writing.await { ended } else { Ended::Broken },
        done = &mut writing => if done { reading.await } else { Ended::Broken },
    }
}

struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

async fn read(
    from: &mut ReadHalf<'_>,
    mut flow: watch::Receiver<Flow>,
    queue: mpsc::Sender<Chunk>,
    link: Link,
) -> Ended {
    let mut queue = Some(queue);
    let mut pace = Pace::new(link);
    let mut buffer = vec![0; link.chunk_bytes()];
    loop {
        let now = *flow.borrow_and_update();
        if now == Flow::Shut {
            queue = None;
        }
        let count = tokio::select! {
            biased;
            changed = flow.changed() => match changed {
                Ok(()) => continue,
                // The connection is being ended.
                Err(_) => return Ended::Broken,
            },
            count = from.read(&mut buffer), if now != Flow::Hold => match count {
                Ok(0) => return Ended::Finished,
                Ok(count) => count,
                Err(_) => return Ended::Broken,
            },
        };
        let Some(queue) = &queue else { continue };
        let (kept, late) = match now {
            // A chunk ends where a frame does, as a rule; half of it ends within one.
            Flow::Halve => (count.div_ceil(2), Duration::ZERO),
            Flow::Late(late) => (count, late),
            _ => (count, Duration::ZERO),
        };
        let due = pace.send(kept) + late;
        if queue.send(Chunk { due, bytes: buffer[..kept].to_vec() }).await.is_err() {
            return Ended::Broken;
        }
        if now == Flow::Halve {
            return Ended::Truncated;
        }
        pace.ready().await;
    }
}
