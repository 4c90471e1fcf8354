//! Tools that work on files: they block, so each call has a thread of the blocking pool.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use footbridge_shared::{ErrorCode, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::output::raw;
use super::{Arguments, CallContext, Plan, READ_ONLY, Tool, ToolOutput};
use crate::failure::Failure;
use crate::permissions::{Access, Action};
use crate::policy::{Gate, Policy};

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
    type Arguments: DeserializeOwned + Send + 'static;

    /// JSON Schema of each argument.
    fn properties() -> Value;
    /// Arguments that must be there.
    fn required() -> &'static [&'static str];
    /// The path that it works on, as it was given.
    fn path(arguments: &Self::Arguments) -> &str;
    /// Does it, at the real path that [`Self::path`] leads to.
    fn run(gate: &Gate, real: &Path, arguments: Self::Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure>;
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

    fn is_read_only(&self) -> bool {
        true
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let policy = self.policy.clone();
        let (gate, real, arguments) = on_a_thread(move || {
            let arguments: T::Arguments = arguments.parse()?;
            let gate = policy.gate();
            let real = gate.resolve(T::path(&arguments))?;
            Ok((gate, real, arguments))
        })
        .await?;
        let action = Action::File { access: Access::Read, path: real.clone() };
        Ok(Plan::new(action, move |ctx| on_a_thread(move || T::run(&gate, &real, arguments, &ctx))))
    }
}

/// Does work that blocks.
async fn on_a_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(broken) => Err(Failure::new(ErrorCode::Internal, Outcome::Unknown, "the tool broke off").cause(broken)),
    }
}
