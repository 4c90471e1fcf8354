//! Tools, and the set of them that a foot offers. One file a tool.

pub(crate) mod arguments;
mod blocking;
mod command;
pub(crate) mod context;
mod digest;
mod exec_entry;
mod exec_input;
mod exec_kill;
mod exec_run;
mod exec_status;
mod exec_tail;
mod file_delete;
mod file_edit;
mod file_find;
mod file_grep;
mod file_list;
mod file_read;
mod file_stat;
mod file_write;
mod output;
mod set;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
mod threads;
mod turns;
mod walk;

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use futures::FutureExt as _;
use futures::future::BoxFuture;

pub(crate) use arguments::Arguments;
pub(crate) use context::CallContext;
pub(crate) use output::ToolOutput;
pub(crate) use output::raw;
pub(crate) use set::{Announcer, Registered, Snapshot, ToolSet, ToolSetError};
pub(crate) use threads::tell_of_confinement;

use crate::exec::Executor;
use crate::failure::Failure;
use crate::permissions::{Action, Permissions};

/// Label of tools that change nothing. The journal and the permissions go by it, for the foot's own tools alone.
pub(crate) const READ_ONLY: &str = "read-only";

/// Label of tools that change something that stays.
pub(crate) const WRITE: &str = "write";

/// Something that a foot can do.
#[async_trait]
pub(crate) trait Tool: Send + Sync {
    /// What is told of it: name, description, schema, labels. The same each time for the same tool.
    fn entry(&self) -> ToolEntry;

    /// Whether it changes nothing, whatever its arguments. The journal skips such calls: to run one twice harms nobody.
    /// It goes by this, never by what an entry says of itself.
    fn is_read_only(&self) -> bool;

    /// Says what a call would do, on real paths and parsed words; its arguments fit the schema. Nothing is done yet: the
    /// permissions and the journal come before [`Plan::run`].
    async fn plan(&self, arguments: Arguments, ctx: &CallContext) -> Result<Plan, Failure>;
}

/// What a call would do, and how.
pub(crate) struct Plan {
    action: Action,
    work: Box<dyn FnOnce(CallContext) -> BoxFuture<'static, Result<ToolOutput, Failure>> + Send>,
}

impl Plan {
    /// `work` does just what `action` says, on the very paths that stand there.
    ///
    /// When `ctx.cancelled()` fires (cancel, deadline, idle limit, end of the foot) the work stops soon: what is still
    /// running a short while later is answered for, with an unknown outcome.
    pub(crate) fn new<F>(action: Action, work: impl FnOnce(CallContext) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<ToolOutput, Failure>> + Send + 'static,
    {
        Self { action, work: Box::new(move |ctx| work(ctx).boxed()) }
    }

    /// What it would do.
    pub(crate) fn action(&self) -> &Action {
        &self.action
    }

    /// Does it, to its end.
    pub(crate) async fn run(self, ctx: CallContext) -> Result<ToolOutput, Failure> {
        (self.work)(ctx).await
    }
}

/// The tools that work on files, within what is permitted.
pub(crate) fn file_tools(permissions: &Arc<Permissions>) -> Vec<Arc<dyn Tool>> {
    let write = permissions.offers_write();
    let files = blocking::Files::new(permissions.policy(), write);
    let mut tools = vec![
        files.tool::<file_find::FileFind>(),
        files.tool::<file_grep::FileGrep>(),
        files.tool::<file_list::FileList>(),
        files.tool::<file_read::FileRead>(),
        files.tool::<file_stat::FileStat>(),
    ];
    if write {
        tools.extend([
            files.tool::<file_delete::FileDelete>(),
            files.tool::<file_edit::FileEdit>(),
            files.tool::<file_write::FileWrite>(),
        ]);
    }
    tools
}

/// The tools that the owner made of commands, and, where callers may come up with their own, those that run them and look
/// after them.
pub(crate) fn exec_tools(executor: &Arc<Executor>) -> Vec<Arc<dyn Tool>> {
    let owned = || executor.clone();
    let commands = executor.commands().iter().cloned();
    let mut tools: Vec<Arc<dyn Tool>> = commands
        .map(|checked| Arc::new(command::ConfiguredCommand { executor: owned(), checked }) as Arc<dyn Tool>)
        .collect();
    if executor.runs_any() {
        tools.extend([
            Arc::new(exec_run::ExecRun { executor: owned() }) as Arc<dyn Tool>,
            Arc::new(exec_status::ExecStatus { executor: owned() }),
            Arc::new(exec_tail::ExecTail { executor: owned() }),
            Arc::new(exec_input::ExecInput { executor: owned() }),
            Arc::new(exec_kill::ExecKill { executor: owned() }),
        ]);
    }
    tools
}
