//! The `footbridge` binary: the hub and its command line, and, started again by itself, its foot, the launchers of what
//! foot and hub start, and script workers.

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
        // Launchers are the running program, whichever one that is.
        Some(word) if word == footbridge_launcher::COMMAND => footbridge_launcher::main(),
        Some(word) if word == worker::ARGUMENT => worker::main(),
        word => cli::main(program.into_iter().chain(word).chain(arguments)),
    }
}

/// Is a foot; the arguments are those of the `foot` binary, without its name.
fn foot(arguments: Vec<OsString>) -> ExitCode {
    footbridge_foot::cli_main(arguments)
}
