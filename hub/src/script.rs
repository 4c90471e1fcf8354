//! The script sandbox: QuickJS in reusable worker processes.
//!
//! A process, because the engine's native code hears no interrupt: what runs past its deadline is killed from outside.
//! Reusable, because starting one takes milliseconds and running a script takes microseconds. Each script gets a fresh
//! engine in it, and nothing of one script is left for the next.
//!
//! - `pool`: the door. `gate` says who may run, `workers` keeps the processes (`spawner`, `process`), `session` attends one
//!   run, `answers` serves `vance.*`, `report` says how it ended.
//! - `worker`: the process. `sandbox` locks it in, `engine` runs one script under the eyes of `watch`, `host` is `vance`,
//!   `input` and `output` (and `number`) turn JSON into values and back, `thrown` reads exceptions.
//! - `frame`: what both say to each other; `deadline`: until when, for both.

mod answers;
mod deadline;
mod engine;
mod frame;
mod gate;
mod host;
mod input;
pub mod limits;
mod number;
mod output;
mod pool;
mod process;
mod report;
mod sandbox;
mod session;
mod spawner;
mod thrown;
mod watch;
pub mod worker;
mod workers;

pub use pool::{Pool, PoolConfig};
