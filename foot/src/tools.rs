//! Tools, and the set of them that a foot offers. One file a tool.

pub(crate) mod arguments;
mod blocking;
pub(crate) mod context;
mod file_find;
mod file_grep;
mod file_list;
mod file_read;
mod file_stat;
mod output;
mod set;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
mod walk;

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;

pub(crate) use arguments::Arguments;
pub(crate) use context::CallContext;
pub(crate) use output::ToolOutput;
pub(crate) use output::raw;
pub(crate) use set::{Announcer, Registered, Snapshot, ToolSet};

use crate::failure::Failure;
use crate::policy::Policy;

/// Label of tools that change nothing. The journal and the permissions go by it, for the foot's own tools alone.
pub(crate) const READ_ONLY: &str = "read-only";

/// Something that a foot can do.
#[async_trait]
pub(crate) trait Tool: Send + Sync {
    /// What is told of it: name, description, schema, labels. The same each time for the same tool.
    fn entry(&self) -> ToolEntry;

    /// Runs it to its end, with arguments that fit its schema.
    ///
    /// When `ctx.cancelled()` fires (cancel, deadline, idle limit, end of the foot) the work stops soon: what is still
    /// running a short while later is answered for, with an unknown outcome.
    async fn run(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure>;
}

/// The tools that work on files, within a policy. All of them only read.
pub(crate) fn file_tools(policy: &Arc<Policy>) -> Vec<Arc<dyn Tool>> {
    vec![
        blocking::tool::<file_find::FileFind>(policy),
        blocking::tool::<file_grep::FileGrep>(policy),
        blocking::tool::<file_list::FileList>(policy),
        blocking::tool::<file_read::FileRead>(policy),
        blocking::tool::<file_stat::FileStat>(policy),
    ]
}
