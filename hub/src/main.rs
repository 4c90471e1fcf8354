//! The `footbridge` binary: the hub and its command line, and, started again by itself, its foot, the launchers of the
//! foot's commands, and script workers.

use std::ffi::OsString;
use std::process::ExitCode;

use footbridge_hub::cli;
use footbridge_hub::script::worker;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    match arguments.next() {
        // These are no commands of people: they are met before the command line is read.
        Some(word) if word == cli::FOOT_COMMAND => foot(arguments.collect()),
        // The foot starts the running program, without knowing which one that is.
        Some(word) if word == footbridge_foot::JOB_COMMAND => footbridge_foot::job_main(),
        Some(word) if word == worker::ARGUMENT => worker::main(),
        word => cli::main(program.into_iter().chain(word).chain(arguments)),
    }
}

/// Is a foot; the arguments are those of the `foot` binary, without its name.
fn foot(arguments: Vec<OsString>) -> ExitCode {
    footbridge_foot::cli_main(arguments)
}
