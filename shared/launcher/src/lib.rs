//! Programs as children of which nothing is left.
//!
//! Each has a launcher of its own: the running program, started again ([`COMMAND`], [`main`]). Nothing that it starts outlives
//! its end, the [`Hold`] on it, or the process that ordered it, however that ends. It may be confined by the kernel
//! ([`sandbox`]).

#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod keeper;
#[cfg(target_os = "linux")]
mod keeper;
mod leftovers;
mod order;
mod process;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(not(target_os = "linux"))]
#[path = "processes_elsewhere.rs"]
mod processes;
pub mod sandbox;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod tree;

pub use keeper::{is_meant, main};
pub use leftovers::{MARK, end as end_leftovers};
pub use order::{COMMAND, Ending, NotStarted, Order, Report};
pub use process::{Hold, Launcher, Process, Reports};
pub use sandbox::{Bytes, Grant, Right};
