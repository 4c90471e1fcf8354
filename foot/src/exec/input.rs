//! More to read for a command that runs.

use footbridge_shared::{ErrorCode, Outcome};
use tokio::io::AsyncWriteExt as _;

use super::job::{Job, Status};
use crate::failure::Failure;
use crate::tools::CallContext;

/// Writes to a command's input, and ends it with `close`. Waits until there was room for all of it.
///
/// # Errors
/// `not_found`: its input is closed, or it never had any; `tool_failed`: it reads no more, and may have read a part;
/// `cancelled`: the call was stopped meanwhile.
pub(crate) async fn write_input(job: &Job, data: &[u8], close: bool, ctx: &CallContext) -> Result<(), Failure> {
    let write = async {
        let mut input = job.input.lock().await;
        let Some(pipe) = input.as_mut() else {
            let failure = Failure::not_run(ErrorCode::NotFound, "this command's input is closed, or it never had any");
            return Err(failure.hint("start it with `stdin`, if only an empty text, and `waitMs`"));
        };
        if pipe.write_all(data).await.is_err() {
            *input = None;
            return Err(no_more());
        }
        if close {
            *input = None;
        }
        Ok(())
    };
    if job.status() != Status::Running {
        return Err(Failure::not_run(ErrorCode::NotFound, "this command has ended"));
    }
    tokio::select! {
        biased;
        written = write => written,
        () = job.ended() => Err(no_more()),
        () = ctx.cancelled() => {
            Err(Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "stopped while the command did not read"))
        }
    }
}

fn no_more() -> Failure {
    Failure::new(ErrorCode::ToolFailed, Outcome::Unknown, "the command reads no more; it may have read a part of this")
}
