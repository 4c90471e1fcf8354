//! Tools that work on files: they block, so each call has a thread of its own for a while.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::message::ToolEntry;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::output::raw;
use super::threads::FileThreads;
use super::{Arguments, CallContext, Plan, READ_ONLY, Tool, ToolOutput, WRITE};
use crate::failure::Failure;
use crate::permissions::{Access, Action};
use crate::policy::{Gate, Policy};

/// A tool that works on files, within a policy.
pub(super) trait FileTool: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// A name for people.
    const TITLE: &'static str;
    /// What it does, for a model.
    const DESCRIPTION: &'static str;
    /// In the manifest from the start.
    const PRIMARY: bool;
    /// What it does to the file.
    const ACCESS: Access = Access::Read;
    /// Whether a second call like the first one changes nothing more.
    const IDEMPOTENT: bool = true;
    /// Its arguments; the same as [`Self::properties`] says.
    type Arguments: DeserializeOwned + Send + 'static;

    /// JSON Schema of each argument.
    fn properties() -> Value;
    /// Arguments that must be there.
    fn required() -> &'static [&'static str];
    /// The path that it works on, as it was given.
    fn path(arguments: &Self::Arguments) -> &str;
    /// Where [`Self::path`] really leads, if that is served.
    fn resolve(gate: &Gate, arguments: &Self::Arguments) -> Result<PathBuf, Failure> {
        gate.resolve(Self::path(arguments))
    }
    /// Does it, at the real path of [`Self::resolve`].
    fn run(gate: &Gate, real: &Path, arguments: Self::Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure>;
}

/// What file tools work with.
pub(super) struct Files {
    policy: Arc<Policy>,
    threads: FileThreads,
}

impl Files {
    /// Within a policy. With `write` its threads may change files.
    pub(super) fn new(policy: &Arc<Policy>, write: bool) -> Arc<Self> {
        Self::on(policy, FileThreads::new(policy.roots().to_vec(), write))
    }

    fn on(policy: &Arc<Policy>, threads: FileThreads) -> Arc<Self> {
        Arc::new(Self { policy: policy.clone(), threads })
    }

    /// Makes a file tool one that a foot can offer.
    pub(super) fn tool<T: FileTool>(self: &Arc<Self>) -> Arc<dyn Tool> {
        Arc::new(Blocking::<T> { files: self.clone(), kind: PhantomData })
    }
}

struct Blocking<T> {
    files: Arc<Files>,
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
        let mut annotations = json!({ "title": T::TITLE, "readOnlyHint": self.is_read_only(), "openWorldHint": false });
        if let Some(hints) = annotations.as_object_mut().filter(|_| !self.is_read_only()) {
            // Each of them can take away what was there.
            hints.insert("destructiveHint".to_owned(), true.into());
            hints.insert("idempotentHint".to_owned(), T::IDEMPOTENT.into());
        }
        let kind = if self.is_read_only() { READ_ONLY } else { WRITE };
        ToolEntry {
            title: Some(T::TITLE.to_owned()),
            annotations: Some(raw(&annotations)),
            labels: vec!["files".to_owned(), kind.to_owned()],
            primary: T::PRIMARY,
            ..ToolEntry::new(T::NAME, T::DESCRIPTION, raw(&schema))
        }
    }

    fn is_read_only(&self) -> bool {
        T::ACCESS == Access::Read
    }

    async fn plan(&self, arguments: Arguments, _: &CallContext) -> Result<Plan, Failure> {
        let files = self.files.clone();
        let judge = move || {
            let arguments: T::Arguments = arguments.parse()?;
            let gate = files.policy.gate_for(T::NAME);
            let real = T::resolve(&gate, &arguments)?;
            Ok((gate.granting(&real), real, arguments))
        };
        let (gate, real, arguments) = self.files.threads.run(judge).await?;
        let action = Action::File { access: T::ACCESS, path: real.clone() };
        let files = self.files.clone();
        Ok(Plan::new(action, async move |ctx| files.threads.run(move || T::run(&gate, &real, arguments, &ctx)).await))
    }
}

#[cfg(test)]
mod tests;
