//! Scripts in real worker processes.

mod limits;
mod nesting;
mod processes;
mod results;
mod stage;
