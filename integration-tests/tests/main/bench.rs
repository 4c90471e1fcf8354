//! The benchmark runs and prints its table. What it measures is not looked at here: this machine may be busy.

use std::process::Command;

use crate::TestResult;

#[test]
fn the_relay_benchmark_prints_every_row() -> TestResult {
    let output =
        Command::new(env!("CARGO_BIN_EXE_relay-bench")).args(["relay", "--calls", "64", "--rounds", "1"]).output()?;
    let (said, complaint) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success(), "{said}{complaint}");
    let rows: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    assert_eq!(
        rows,
        [
            "what",
            "1 KiB, 1 caller(s), p50",
            "1 KiB, 1 caller(s), p99",
            "1 KiB, 64 caller(s), p50",
            "1 KiB, 64 caller(s), p99",
            "1 KiB, 64 caller(s), throughput (slower of the two)",
            "32 KiB, 1 caller(s), p50",
            "32 KiB, 1 caller(s), p99",
            "32 KiB, 64 caller(s), p50",
            "32 KiB, 64 caller(s), p99",
            "32 KiB, 64 caller(s), throughput (slower of the two)",
        ]
    );
    Ok(())
}
