//! The MCP conformance suite.

use integration_tests::conformance::{Way, servers};

use crate::TestResult;

#[tokio::test]
async fn the_fixture_passes_every_scenario() -> TestResult {
    let report = servers(&[Way::Direct]).await?;
    assert!(report.breaches().is_empty(), "{}", report.breaches().join("\n"));
    Ok(())
}
