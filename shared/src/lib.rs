//! The wire contract between a Footbridge hub and its feet: `footbridge.v1`.
//!
//! Only types, names, limits and version negotiation live here; no sockets, no runtime.

pub mod content;
pub mod error;
pub mod id;
pub mod limits;
pub mod message;
pub mod names;
pub mod part;
pub mod parts;
pub mod proof;
pub mod text;
pub mod version;

pub use error::{ErrorCode, Outcome};
