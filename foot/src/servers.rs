//! Local MCP servers: what the owner attaches to this foot, and the hub offers on.

mod settings;

pub(crate) use settings::{ServerSettings, ServerText, SessionMode, Target, Transport};
