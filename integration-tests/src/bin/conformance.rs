//! Runs the MCP conformance suite and prints a table for each revision: the fixture directly, and on every way through
//! Footbridge; and one for the hub's own client. Run it with `integration-tests/conformance`. The words `direct`, `http`,
//! `stdio`, `foot` and `client` choose some of it. Fails unless all holds.

use std::process::ExitCode;

use integration_tests::Result;
use integration_tests::bench::say;
use integration_tests::conformance::{Way, client, servers};

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("conformance: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether all holds.
async fn run(words: Vec<String>) -> Result<bool> {
    let mut ways = Vec::new();
    let mut of_client = words.is_empty();
    for word in &words {
        match word.as_str() {
            "direct" => ways.push(Way::Direct),
            "http" => ways.push(Way::Http),
            "stdio" => ways.push(Way::Stdio),
            "foot" => ways.push(Way::Foot),
            "client" => of_client = true,
            other => return Err(format!("`{other}` is none of direct, http, stdio, foot, client").into()),
        }
    }
    if words.is_empty() {
        ways.extend(Way::ALL);
    }
    let mut good = true;
    if !ways.is_empty() {
        let report = servers(&ways).await?;
        report.print();
        good &= report.breaches().is_empty();
    }
    if of_client {
        let report = client().await?;
        report.print();
        good &= report.breaches().is_empty();
    }
    Ok(good)
}
