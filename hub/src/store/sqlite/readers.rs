//! Connections that read, beside the one that writes. Under a write-ahead log neither waits for the other.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::unavailable;
use super::schema::{OpenError, open_reader};
use crate::store::StoreResult;

/// Reads at once; more wait for their turn.
const READERS: u32 = 4;

/// The connections, each lent to one blocking task at a time.
pub(super) struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    /// Opens all of them now, so that a full disk later cannot keep anybody from reading.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let idle: Vec<_> = (0..READERS).map(|_| open_reader(path)).collect::<Result<_, _>>()?;
        Ok(Self { idle: Arc::new(Mutex::new(idle)), turns: Arc::new(Semaphore::new(READERS as usize)) })
    }

    /// Runs a query where it may block.
    pub(super) async fn read<T, F>(&self, query: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| unavailable("the store is closed"))?;
        let idle = self.idle.clone();
        let task = tokio::task::spawn_blocking(move || {
            let loan = Loan::take(idle, turn)?;
            loan.connection.as_ref().map(query)
        });
        let answer = task.await.map_err(unavailable)?;
        answer.ok_or_else(|| unavailable("a reader was lost"))?.map_err(unavailable)
    }

    /// Waits for the reads that run, refuses new ones and lets go of the file.
    pub(super) async fn close(&self) {
        // Fails only if it was closed before, and then there is nothing left to do.
        if let Ok(_all) = self.turns.acquire_many(READERS).await {
            self.turns.close();
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// A connection that goes back when it is dropped, also when the query panicked or nobody waits for it any more.
struct Loan {
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Freed after the connection went back: fields are dropped after `drop` has run.
    _turn: OwnedSemaphorePermit,
}

impl Loan {
    fn take(idle: Arc<Mutex<Vec<Connection>>>, turn: OwnedSemaphorePermit) -> Option<Self> {
        let connection = idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Self { connection: Some(connection), idle, _turn: turn })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let connection = self.connection.take();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(connection);
    }
}
