//! Runs one call against its limits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use footbridge_shared::{ErrorCode, Outcome};

use super::Dispatcher;
use crate::domain::arguments::Arguments;
use crate::domain::call::{CallContext, Expired};
use crate::domain::failure::Failure;
use crate::domain::listener::{CallEnd, CallListener};
use crate::domain::output::ToolOutput;
use crate::domain::tool::{Tool, Via};

/// How long a handler that was told to stop has to say what became of its work.
pub(super) const CANCEL_GRACE: Duration = Duration::from_millis(1_500);

impl Dispatcher {
    /// Runs a tool whose gates and arguments have passed, until its result, a limit, or a cancel.
    pub(super) async fn run(
        &self,
        tool: &Arc<Tool>,
        arguments: Arguments,
        ctx: &CallContext,
        via: Option<Via>,
    ) -> Result<ToolOutput, Failure> {
        // A token of its own: a limit of this call stops this call's work, not its caller's.
        let ctx = &ctx.stoppable();
        let delegate = via == Some(Via::Delegate);
        for listener in &self.listeners {
            if delegate { listener.before_delegate(ctx, tool) } else { listener.before(ctx, tool) }
        }
        let mut watched =
            Watched { listeners: &self.listeners, ctx, tool, delegate, started: Instant::now(), end: None };
        let result = limited(tool, arguments, ctx).await;
        watched.end = Some(call_end(&result));
        drop(watched);
        if let Err(Failure { code, cause: Some(cause), .. }) = &result {
            tracing::warn!(call = %ctx.call, tool = %tool.spec.name, %code, %cause, "a call failed");
        }
        result
    }
}

async fn limited(tool: &Tool, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
    let mut work = tool.handler.invoke(arguments, ctx);
    let stopped = tokio::select! {
        biased;
        result = &mut work => return result,
        () = ctx.cancel.cancelled() => Failure::new(ErrorCode::Cancelled, Outcome::Unknown, "the call was cancelled"),
        expired = ctx.clock.expired() => {
            ctx.cancel.cancel();
            exceeded(expired)
        }
    };
    match tokio::time::timeout(CANCEL_GRACE, work).await {
        // It had finished after all: what it did is done, so its caller may as well know.
        Ok(Ok(output)) => Ok(output),
        // The handler knows what became of the work, and perhaps what would have spared it that; this function knows why it
        // was stopped.
        Ok(Err(Failure { code: ErrorCode::Cancelled, outcome, hint, .. })) => {
            let hint = hint.or_else(|| stopped.hint.clone());
            Err(Failure { outcome, hint, ..stopped })
        }
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(stopped),
    }
}

fn exceeded(expired: Expired) -> Failure {
    let (message, hint) = match expired {
        Expired::Idle(idle) => (
            format!("the tool gave no sign of life for {} ms", idle.as_millis()),
            "the tool's `timeoutMs` is its idle time; progress resets it",
        ),
        Expired::Hard => (
            "the call reached its hard limit".to_owned(),
            "the tool's `maxTimeoutMs`, or the limit of the call around it",
        ),
    };
    Failure::new(ErrorCode::DeadlineExceeded, Outcome::Unknown, message).hint(hint)
}

/// The answer to a call that was running when the hub went down for good.
pub(super) fn stopped() -> Failure {
    Failure::new(ErrorCode::Draining, Outcome::Unknown, "the hub went down while the call ran")
}

/// The answer to a call whose handler broke off: a defect of the hub.
pub(super) fn broken() -> Failure {
    Failure::new(ErrorCode::Internal, Outcome::Unknown, "the tool broke off").hint("the hub's log has the cause")
}

/// The error, if it was one, and what is known of the work.
fn call_end(result: &Result<ToolOutput, Failure>) -> (Option<ErrorCode>, Outcome) {
    match result {
        Ok(output) if output.is_error => (Some(output.code.unwrap_or(ErrorCode::ToolFailed)), Outcome::Completed),
        Ok(_) => (None, Outcome::Completed),
        Err(failure) => (Some(failure.code), failure.outcome),
    }
}

/// Tells the listeners of the end of a call, also of one whose future was dropped before it had one.
struct Watched<'a> {
    listeners: &'a [Arc<dyn CallListener>],
    ctx: &'a CallContext,
    tool: &'a Arc<Tool>,
    delegate: bool,
    started: Instant,
    end: Option<(Option<ErrorCode>, Outcome)>,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let (error, outcome) = self.end.unwrap_or((Some(ErrorCode::Cancelled), Outcome::Unknown));
        let end = CallEnd { elapsed: self.started.elapsed(), error, outcome };
        for listener in self.listeners {
            if self.delegate {
                listener.after_delegate(self.ctx, self.tool, end);
            } else {
                listener.after(self.ctx, self.tool, end);
            }
        }
    }
}
