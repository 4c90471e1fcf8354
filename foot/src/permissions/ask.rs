//! Who is asked about what no rule decides.

pub(super) mod client;
mod terminal;

use async_trait::async_trait;

pub(crate) use terminal::Terminal;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// Who called.
    pub(crate) subject: String,
    /// For which of their processes.
    pub(crate) process: Option<String>,
    /// The tool.
    pub(crate) tool: String,
    /// What it would do, a line for each part, fit to be shown.
    pub(crate) lines: Vec<String>,
    /// Why it is asked.
    pub(crate) because: String,
    /// How long an answer is waited for, in seconds.
    pub(crate) seconds: u64,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Whether it may go on.
    pub(crate) allow: bool,
    /// Whether that holds for this very action from now on.
    pub(crate) always: bool,
}

/// Somebody who can be asked.
#[async_trait]
pub(crate) trait Asker: Send + Sync + std::fmt::Debug {
    /// Whether there is anybody.
    fn is_there(&self) -> bool;

    /// Asks, one question after the other. To lose this future is to withdraw the question. `None`: nobody is there any
    /// more.
    async fn ask(&self, question: Question) -> Option<Reply>;
}

/// Nobody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Headless;

#[async_trait]
impl Asker for Headless {
    fn is_there(&self) -> bool {
        false
    }

    async fn ask(&self, _: Question) -> Option<Reply> {
        None
    }
}
