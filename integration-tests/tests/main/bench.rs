//! The benchmark runs and prints its table. What it measures is not looked at here: this machine may be busy.

use std::process::Command;

use crate::TestResult;

/// The rows of a part, without their figures.
fn rows_of(part: &str) -> TestResult<Vec<String>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relay-bench"));
    let output = command.args([part, "--calls", "64", "--rounds", "1"]).output()?;
    let (said, complaint) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success(), "{said}{complaint}");
    let rows = said.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    Ok(rows.filter(|row| *row != "what").map(str::to_owned).collect())
}

/// What one caller, and many, are measured by.
fn figures(what: &str, callers: usize) -> Vec<String> {
    let figures = ["p50", "p99", "throughput (slower of the two)"];
    let count = if callers > 1 { 3 } else { 2 };
    figures.iter().take(count).map(|figure| format!("{what}, {callers} caller(s), {figure}")).collect()
}

#[test]
fn the_relay_benchmark_prints_every_row() -> TestResult {
    let all = [("1 KiB", 1), ("1 KiB", 64), ("32 KiB", 1), ("32 KiB", 64)];
    assert_eq!(rows_of("relay")?, all.map(|(what, callers)| figures(what, callers)).concat());
    Ok(())
}

#[test]
fn the_benchmark_of_keys_prints_every_row() -> TestResult {
    let all = [("reading tool", 1), ("writing tool", 1), ("reading tool", 64), ("writing tool", 64)];
    assert_eq!(rows_of("keyed")?, all.map(|(what, callers)| figures(what, callers)).concat());
    Ok(())
}

#[test]
fn the_benchmark_of_large_results_prints_every_row() -> TestResult {
    let all = [("100 KiB", 1), ("100 KiB", 64), ("5 MiB", 1)];
    assert_eq!(rows_of("payloads")?, all.map(|(what, callers)| figures(what, callers)).concat());
    Ok(())
}

#[test]
fn the_benchmark_of_mcp_prints_every_row() -> TestResult {
    let mut rows = Vec::new();
    for (callers, more) in [(1, false), (32, true)] {
        for manner in ["with a session", "without"] {
            let what = |figure: &str| format!("{manner}, {callers} caller(s), {figure}");
            for figure in ["own tool, p50", "own tool, p99"] {
                rows.push(what(figure));
            }
            for figure in ["p50", "p99"] {
                rows.push(what(&format!("tool of a foot, {figure} (+ bare WebSocket echo)")));
            }
            if more {
                rows.push(what("own tool, throughput"));
                rows.push(what("tool of a foot, throughput (slower of the two)"));
            }
        }
    }
    for callers in [1, 32] {
        for manner in ["with a session", "without"] {
            for figure in ["added p50 (one hop)", "p50 (the server itself)", "calls a second (the server itself)"] {
                rows.push(format!("{manner}, {callers} caller(s), {figure}"));
            }
        }
    }
    for row in ["resident after, before", "resident after, allowed", "calls a second meanwhile"] {
        rows.push(row.to_owned());
    }
    assert_eq!(rows_of("mcp")?, rows);
    Ok(())
}

#[test]
fn the_benchmark_of_the_slow_link_prints_every_row() -> TestResult {
    assert_eq!(
        rows_of("slow-link")?,
        [
            "p50 of small calls (1 s + round trip)",
            "p99 of small calls (1 s + round trip)",
            "time of the large results (what the link needs)",
        ]
    );
    Ok(())
}
