//! What the stories are told with: the real binaries in temporary folders, a client of the HTTP API, and patience.
//!
//! Everything a test starts ends with it: processes are killed when their handle is dropped.

pub mod api;
pub mod bench;
pub mod binaries;
pub mod clients;
pub mod conformance;
pub mod eventually;
pub mod fake_mcp;
pub mod fixture;
pub mod foot;
pub mod hub;
pub mod leftovers;
pub mod process;
pub mod proxy;
pub mod raw_foot;
pub mod scale;
pub mod watcher;

/// Any error fails a test.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
