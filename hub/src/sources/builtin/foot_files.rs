//! What the tools share that move documents to a foot's files and back: they call that foot's own file tools, under all
//! the rules of a call, and compare what arrived with what was sent.

use std::sync::Arc;

use footbridge_shared::id::FootName;
use footbridge_shared::{ErrorCode, Outcome};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::feet::FootDirectory;
use crate::domain::output::ToolOutput;
use crate::domain::tool::{Origin, Tool, Via};

/// A tool of one foot.
pub(super) struct FootTool {
    /// The foot, as the caller addresses it.
    pub(super) foot: FootName,
    tool: Arc<Tool>,
}

impl FootTool {
    /// Finds the tool `local` of a foot; without a name, of the only foot that offers it.
    ///
    /// # Errors
    /// `not_found`, in the same words for a foot that is not there, one that is not the caller's, and one that does not
    /// offer the tool; `invalid_arguments` when a name is needed.
    pub(super) async fn find(
        feet: &dyn FootDirectory,
        wanted: Option<&str>,
        local: &str,
        ctx: &CallContext,
    ) -> Result<Self, Failure> {
        let callable = ctx.tools.list(ctx).await?;
        let mut offering = Vec::new();
        for summary in feet.feet(&ctx.scope, &ctx.caller.subject) {
            let of_foot = |tool: &&Arc<Tool>| {
                matches!(&tool.spec.origin, Origin::Foot { foot, owner, local: name }
                    if *foot == summary.bound_name && *owner == summary.owner && name.as_str() == local)
            };
            // One name is as good as the other: both lead to the same tool.
            if let Some(tool) =
                callable.iter().find(of_foot).filter(|_| wanted.is_none_or(|name| summary.name.as_str() == name))
            {
                offering.push(Self { foot: summary.name, tool: tool.clone() });
            }
        }
        match offering.pop() {
            Some(only) if offering.is_empty() => Ok(only),
            Some(last) => {
                offering.push(last);
                let names: Vec<&str> = offering.iter().map(|found| found.foot.as_str()).collect();
                let message = format!("/foot: several feet offer `{local}`: {}", names.join(", "));
                Err(Failure::not_run(ErrorCode::InvalidArguments, message).hint("say which one"))
            }
            None => {
                let foot = wanted.map_or_else(String::new, |name| {
                    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
                    format!(" `{shown}`")
                });
                Err(Failure::not_run(
                    ErrorCode::NotFound,
                    format!("there is no foot{foot} for you here that offers `{local}`"),
                )
                .hint("`foot_list` names the feet and their tools; a foot writes only if its owner started it so"))
            }
        }
    }

    /// Calls it. What fails on the foot fails here, as it was told there.
    pub(super) async fn call(&self, arguments: &Value, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let raw = to_raw_value(arguments).map_err(|error| {
            Failure::not_run(ErrorCode::Internal, "the call to the foot could not be written").cause(error)
        })?;
        ctx.tools.call(ctx, self.tool.spec.name.as_str(), Arguments::new(raw), Via::Delegate).await
    }

    /// Reads its structured answer.
    ///
    /// # Errors
    /// `tool_failed`, with this outcome: it is another tool than the one of that name that we know.
    pub(super) fn answer<T: DeserializeOwned>(&self, output: &ToolOutput, outcome: Outcome) -> Result<T, Failure> {
        let structured = output.structured.as_ref().map_or("null", |raw| raw.get());
        serde_json::from_str(structured).map_err(|error| {
            let Self { foot, tool } = self;
            let message = format!("`{}` of the foot `{foot}` did not answer as it should", tool.spec.name);
            Failure::new(ErrorCode::ToolFailed, outcome, message).hint("its version may not fit this hub").cause(error)
        })
    }
}

#[cfg(test)]
mod tests;
