//! The one seam through which audit, usage, metrics and progress watch calls.

use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::{ErrorCode, Outcome};

use super::call::{CallContext, Caller};
use super::failure::Failure;
use super::scope::Scope;
use super::tool::Tool;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// How long it took.
    pub elapsed: Duration,
    /// `None`: the tool succeeded.
    pub error: Option<ErrorCode>,
    /// What is known of a call that failed; `Completed` for one that gave a result.
    pub outcome: Outcome,
}

/// Watches calls. Must be quick and must not fail: a call never waits for it and never fails by it.
///
/// The delegate half of a wrapper (`invoke_tool` → the tool) comes through hooks of its own, which by default act like the
/// ordinary ones; a counter silences them, since one demand is not two.
pub trait CallListener: Send + Sync {
    /// Before a tool runs, when its arguments have passed.
    fn before(&self, _ctx: &CallContext, _tool: &Arc<Tool>) {}

    /// After it ended.
    fn after(&self, _ctx: &CallContext, _tool: &Arc<Tool>, _end: CallEnd) {}

    /// A call that was refused before anything ran: no such tool, arguments that do not fit, no room.
    fn refused(&self, _scope: &Scope, _caller: &Caller, _name: &str, _failure: &Failure) {}

    /// Before the delegated half of a wrapper call.
    fn before_delegate(&self, ctx: &CallContext, tool: &Arc<Tool>) {
        self.before(ctx, tool);
    }

    /// After the delegated half of a wrapper call.
    fn after_delegate(&self, ctx: &CallContext, tool: &Arc<Tool>, end: CallEnd) {
        self.after(ctx, tool, end);
    }
}
