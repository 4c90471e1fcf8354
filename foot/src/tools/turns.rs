//! One writer at a time for each file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::CallContext;
use crate::failure::Failure;

/// How often a call that waits looks whether it was stopped.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// Real paths that are being changed. It belongs to the process and not to a set of tools: while settings change, calls of
/// the old set and of the new one work on the same files.
static BUSY: LazyLock<(Mutex<HashSet<PathBuf>>, Condvar)> = LazyLock::new(Default::default);

/// The right to change a file. Others wait until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(PathBuf);

impl Turn {
    /// Waits until no other call changes the file at a real path. A call takes one turn and no second: none waits for
    /// itself.
    ///
    /// # Errors
    /// `cancelled`, when the call is stopped meanwhile.
    pub(super) fn take(real: &Path, ctx: &CallContext) -> Result<Self, Failure> {
        let mut busy = busy();
        while !busy.insert(real.to_owned()) {
            ctx.check()?;
            busy = BUSY.1.wait_timeout(busy, LOOK_AROUND).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(Self(real.to_owned()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        busy().remove(&self.0);
        BUSY.1.notify_all();
    }
}

fn busy() -> MutexGuard<'static, HashSet<PathBuf>> {
    BUSY.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::context::detached;
    use footbridge_shared::ErrorCode;

    #[test]
    fn a_file_has_one_writer_and_another_file_another() {
        let (ctx, _told, cancel) = detached();
        let turn = Turn::take(Path::new("/turns/a"), &ctx).unwrap();
        assert!(Turn::take(Path::new("/turns/b"), &ctx).is_ok());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Turn::take(Path::new("/turns/a"), &ctx).map(drop));
            drop(turn);
            assert!(waiting.join().unwrap().is_ok());
        });
        let _turn = Turn::take(Path::new("/turns/a"), &ctx).unwrap();
        cancel.cancel();
        assert_eq!(Turn::take(Path::new("/turns/a"), &ctx).unwrap_err().code, ErrorCode::Cancelled);
    }
}
