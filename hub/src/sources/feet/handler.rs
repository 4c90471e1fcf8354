//! Runs a foot's tool: the call goes out over whatever connection the foot has now.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use footbridge_shared::id::{FootName, ToolName};

use super::foot::Foot;
use super::pending::unavailable;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::journal::FootTarget;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

/// Handler of one tool of one foot.
#[derive(Debug)]
pub(super) struct FootHandler {
    /// Weak: the foot keeps its tools.
    foot: Weak<Foot>,
    name: FootName,
    public: ToolName,
    local: ToolName,
}

impl FootHandler {
    pub(super) fn new(foot: &Arc<Foot>, public: ToolName, local: ToolName) -> Self {
        Self { foot: Arc::downgrade(foot), name: foot.name.clone(), public, local }
    }
}

#[async_trait]
impl ToolHandler for FootHandler {
    async fn invoke(&self, arguments: Arguments, ctx: &CallContext) -> Result<ToolOutput, Failure> {
        let foot = self.foot.upgrade().ok_or_else(|| unavailable(&self.name))?;
        foot.begin(&self.public, &self.local, arguments, ctx)?.end(ctx).await
    }

    fn runs_on(&self) -> Option<FootTarget> {
        Some(self.foot.upgrade()?.target(&self.local))
    }
}
