//! Writes one log line a call, with who, what, and how it ended; never arguments or results.
//!
//! At the level DEBUG: a line costs more than relaying the call does, so it is for those who ask for it.

use std::sync::Arc;

use crate::domain::call::{CallContext, Caller};
use crate::domain::failure::Failure;
use crate::domain::listener::{CallEnd, CallListener};
use crate::domain::scope::Scope;
use crate::domain::tool::Tool;

/// The log target of these lines, for filters (`info,footbridge::audit=debug`).
pub const TARGET: &str = "footbridge::audit";

/// Logs the end of each call.
#[derive(Debug, Default)]
pub struct AuditLog;

impl CallListener for AuditLog {
    fn after(&self, ctx: &CallContext, tool: &Arc<Tool>, end: CallEnd) {
        tracing::debug!(
            target: TARGET,
            call = %ctx.call,
            scope = %ctx.scope,
            subject = %ctx.caller.subject,
            token = ctx.caller.token.as_deref(),
            process = ctx.caller.process.as_deref(),
            tool = %tool.spec.name,
            source = tool.spec.origin.kind().as_str(),
            depth = ctx.depth,
            elapsed_us = u64::try_from(end.elapsed.as_micros()).unwrap_or(u64::MAX),
            code = end.error.map(|code| code.as_str()),
            outcome = ?end.outcome,
            "call"
        );
    }

    fn refused(&self, scope: &Scope, caller: &Caller, name: &str, failure: &Failure) {
        tracing::debug!(
            target: TARGET,
            %scope,
            subject = %caller.subject,
            token = caller.token.as_deref(),
            process = caller.process.as_deref(),
            tool = name.chars().take(80).collect::<String>().escape_debug().to_string(),
            code = failure.code.as_str(),
            "refused"
        );
    }
}
