//! How much a client wants to hear of logs.

use footbridge_mcp::Raw;
use serde::Deserialize;

/// How grave a log message is, as MCP has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// The level that the parameters of a `notifications/message` name.
pub(super) fn level_of(params: &Raw) -> Option<Level> {
    #[derive(Deserialize)]
    struct Message {
        level: Level,
    }
    serde_json::from_str::<Message>(params.get()).ok().map(|message| message.level)
}
