//! A small tree of files, and the file tools on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{Arguments, Registered, ToolOutput, ToolSet, context, output};
use crate::failure::Failure;
use crate::permissions::{Defaults, Mode, Permissions};
use crate::policy::{Floor, Policy};

/// A root folder.
pub(crate) struct Tree {
    dir: tempfile::TempDir,
    tools: ToolSet,
}

impl Tree {
    /// With these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with_root("", files)
    }

    /// With these files, of which only those below a folder are served.
    pub(crate) fn with_root(root: &str, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(root);
        std::fs::create_dir_all(&root).unwrap();
        let policy = Policy::new(&[root], Floor::new(Some(Path::new("/home/nobody")))).unwrap();
        let permissions = Permissions::new(Arc::new(policy), Defaults { write: Mode::Allow, exec: Mode::Allow });
        let (tools, left_out) = ToolSet::new(super::file_tools(&permissions), &permissions);
        assert_eq!(left_out, []);
        let tree = Self { dir, tools };
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs a tool as a call would: checked arguments, on a thread of its own.
    pub(crate) fn run(&self, tool: &str, arguments: &Value) -> Result<ToolOutput, Failure> {
        let registered: Arc<Registered> = self.tools.get(tool).unwrap();
        let arguments = Arguments::new(output::raw(arguments));
        registered.schema.check(&arguments)?;
        let (ctx, _told, _cancel) = context::detached();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let plan = registered.tool.plan(arguments, &ctx).await?;
            registered.permissions.admit(tool, plan.action(), &ctx).await?;
            plan.run(ctx).await
        })
    }
}

/// The texts of all blocks.
pub(crate) fn texts(output: &ToolOutput) -> Vec<String> {
    let blocks: Vec<Value> = serde_json::from_str(output.content.get()).unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect()
}

/// The structured result.
pub(crate) fn structured(output: &ToolOutput) -> Value {
    serde_json::from_str(output.structured.as_ref().unwrap().get()).unwrap()
}
