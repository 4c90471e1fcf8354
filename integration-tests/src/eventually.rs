//! Waiting for something to become true, without guessing how long it takes.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::Result;

/// How long a condition may take on a slow, busy machine. A passing test waits only as long as it must.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` answers `Some`.
///
/// # Errors
/// Names `what` when it does not come true within [`PATIENCE`], and what the last look failed with.
pub async fn eventually<T, F, Fut>(what: &str, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    let end = Instant::now() + PATIENCE;
    loop {
        let last = match look().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => "not yet".to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= end {
            return Err(format!("{what}: {last} after {PATIENCE:?}").into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
