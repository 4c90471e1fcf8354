//! What the hub talks about: scopes, documents, tools, calls and their results. Plain data and the traits between
//! the parts; imports nothing of the crate.

pub mod arguments;
pub mod call;
pub mod canonical;
pub mod changes;
pub mod document;
pub mod failure;
pub mod feet;
pub mod journal;
pub mod key;
pub mod listener;
pub mod mcp;
pub mod mcp_notes;
pub mod output;
pub mod principal;
pub mod scope;
pub mod script;
pub mod tool;
