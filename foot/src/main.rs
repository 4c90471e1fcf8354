//! The `foot` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    footbridge_foot::cli_main(std::env::args_os().skip(1))
}
