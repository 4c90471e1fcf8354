//! Where tools come from. Each source stands alone: none imports another.

pub mod builtin;
pub mod configured;
pub mod feet;
