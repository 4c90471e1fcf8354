//! Stories told by the real binaries, a file each.

mod architecture;
mod bad_input;
mod bench;
mod calls;
mod cascade;
mod config_paths;
mod conformance;
mod crash;
mod discovery;
mod documents;
mod exec;
mod faults;
mod foot_servers;
mod help;
mod hostile_foot;
mod isolation;
mod keyed;
mod load;
mod long_calls;
mod mcp_calls;
mod mcp_catalog;
mod mcp_children;
mod mcp_fake;
mod mcp_heartbeat;
mod mcp_http;
mod mcp_lossless;
mod mcp_names;
mod mcp_one_tool;
mod mcp_pages;
mod mcp_questions;
mod mcp_real_servers;
mod mcp_sessions;
mod mcp_stdio;
mod mcp_surface;
mod ownership;
mod parts;
mod permissions;
mod scripts;
mod slow_link;
mod specification;
mod takeover;
mod up;
mod writing;

/// What a test answers: any error fails it.
type TestResult<T = ()> = integration_tests::Result<T>;
