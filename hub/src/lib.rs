//! The Footbridge hub: one tool surface from documents, built-in tools and feet.
//!
//! `ARCHITECTURE.md` at the top of the repository has the map and the rules between these modules.

pub mod access;
pub mod api;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dispatch;
pub mod documents;
pub mod domain;
pub mod lifecycle;
pub mod script;
pub mod sources;
pub mod store;
pub mod web;
pub mod yaml;
