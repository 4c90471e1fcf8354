//! Stories of feet over in-process sockets. Time stands still unless everybody waits.

mod calls;
mod chaos;
mod ending;
mod greeting;
mod harness;
mod keyed;
mod limits;
mod liveness;
mod load;
mod naming;
mod offering;
mod parts;
mod questions;
mod requests;
mod resume;
mod servers;
mod sharing;
mod takeover;
