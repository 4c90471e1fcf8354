//! Tools that work on files: they block, so each call has a thread of the blocking pool.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use footbridge_shared::{ErrorCode, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::output::raw;
use super::{Arguments, CallContext, READ_ONLY, Tool, ToolOutput};
use crate::failure::Failure;
use crate::policy::Policy;

/// A tool that only reads files, within a policy.
pub(super) trait FileTool: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// A name for people.
    const TITLE: &'static str;
    /// What it does, for a model.
    const DESCRIPTION: &'static str;
    /// In the manifest from the start.
    const PRIMARY: bool;
    /// Its arguments; the same as [`Self::properties`] says.
    type Arguments: DeserializeOwned + Send;

    /// JSON Schema of each argument.
    fn properties() -> Value;
    /// Arguments that must be there.
    fn required() -> &'static [&'static str];
    /// Does it.
    fn run(policy: &Policy, arguments: Self::Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure>;
}

/// Makes a file tool one that a foot can offer.
pub(super) fn tool<T: FileTool>(policy: &Arc<Policy>) -> Arc<dyn Tool> {
    Arc::new(Blocking::<T> { policy: policy.clone(), kind: PhantomData })
}

struct Blocking<T> {
    policy: Arc<Policy>,
    kind: PhantomData<T>,
}

#[async_trait]
impl<T: FileTool> Tool for Blocking<T> {
    fn entry(&self) -> ToolEntry {
        let schema = json!({
            "type": "object",
            "required": T::required(),
            "properties": T::properties(),
            "additionalProperties": false,
        });
        ToolEntry {
            title: Some(T::TITLE.to_owned()),
            annotations: Some(raw(&json!({ "title": T::TITLE, "readOnlyHint": true, "openWorldHint": false }))),
            labels: vec!["files".to_owned(), READ_ONLY.to_owned()],
            primary: T::PRIMARY,
            ..ToolEntry::new(T::NAME, T::DESCRIPTION, raw(&schema))
        }
    }

    async fn run(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let (policy, ctx) = (self.policy.clone(), ctx.clone());
        match tokio::task::spawn_blocking(move || T::run(&policy, arguments.parse()?, &ctx)).await {
            Ok(result) => result,
            Err(broken) => Err(Failure::new(ErrorCode::Internal, Outcome::Unknown, "the tool broke off").cause(broken)),
        }
    }
}
