//! The MCP conformance suite.

use integration_tests::conformance::{Report, Way, client, servers};

use crate::TestResult;

fn holds(report: &Report) -> TestResult {
    if report.breaches().is_empty() { Ok(()) } else { Err(report.breaches().join("\n").into()) }
}

#[tokio::test]
async fn what_passes_directly_passes_through_hub_and_foot() -> TestResult {
    holds(&servers(&Way::ALL).await?)
}

#[tokio::test]
async fn the_hubs_client_passes_the_scenarios_for_clients() -> TestResult {
    holds(&client().await?)
}
