//! MCP clients of the stories: a raw one that shows every message as it came, and the official ones as judges.

pub mod exchange;
pub mod judge;
pub mod raw;
mod sse;
