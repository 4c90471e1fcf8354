//! The least that a durable write can cost: many writers share one append and one sync.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;

use tokio::sync::oneshot;

use super::callers::Pending;
use crate::Result;

/// Bytes of one write: a key, a digest, ids.
const WRITE_BYTES: usize = 256;

type Written = oneshot::Sender<std::io::Result<()>>;

/// A file that a thread writes for all.
#[derive(Debug, Clone)]
pub(super) struct GroupCommit(mpsc::Sender<Written>);

impl GroupCommit {
    /// Opens a new file; its thread ends with the last handle.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::create(path)?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || write_all(&file, &receiver));
        Ok(Self(sender))
    }

    /// A caller that makes `writes` durable writes, one after the other.
    pub(super) fn caller(&self, writes: usize) -> impl FnMut() -> Pending + Send + use<> {
        let sender = self.0.clone();
        move || {
            let sender = sender.clone();
            Box::pin(async move {
                for _ in 0..writes {
                    let (done, written) = oneshot::channel();
                    sender.send(done)?;
                    written.await??;
                }
                Ok(())
            })
        }
    }
}

fn write_all(mut file: &File, receiver: &mpsc::Receiver<Written>) {
    while let Ok(first) = receiver.recv() {
        let group: Vec<Written> = std::iter::once(first).chain(receiver.try_iter()).collect();
        let bytes = vec![b'x'; group.len() * WRITE_BYTES];
        let outcome = file.write_all(&bytes).and_then(|()| file.sync_data());
        for done in group {
            let told = outcome.as_ref().map_err(|error| std::io::Error::from(error.kind())).copied();
            // A caller that gave up has said so already.
            let _ = done.send(told);
        }
    }
}
