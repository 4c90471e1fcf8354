//! What the help shows works as it stands there.

use std::process::Command;

use integration_tests::binaries;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;

use crate::TestResult;

/// The examples of `footbridge call --help` that call a tool which every foot has.
fn examples() -> TestResult<Vec<String>> {
    let help = Command::new(binaries::footbridge()?).args(["call", "--help"]).output()?;
    let help = String::from_utf8(help.stdout)?;
    let lines = help.lines().map(str::trim).filter(|line| line.starts_with("footbridge call file_"));
    Ok(lines.map(str::to_owned).collect())
}

#[tokio::test]
async fn the_examples_of_a_call_are_not_refused() -> TestResult {
    let hub = TestHub::start().await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("README.md"), "# Hello\n")?;
    std::fs::write(folder.path().join("main.rs"), "// TODO: all of it\n")?;
    let _foot = TestFoot::start(&hub, "ann", "dev", folder.path(), &[]).await?;
    let token = hub.token("ann", &["engine", "viewer"]).await?;
    let binary = binaries::footbridge()?;
    let programs = binary.parent().ok_or("no folder")?;
    let examples = examples()?;
    assert!(examples.len() > 1, "{examples:?}");
    for example in examples {
        // As a shell reads it, quotes and all.
        let output = Command::new("/bin/sh")
            .args(["-c", &example])
            .env("PATH", programs)
            .env("HOME", folder.path())
            .env("FOOTBRIDGE_URL", &hub.url)
            .env("FOOTBRIDGE_TOKEN", &token)
            .env("FOOTBRIDGE_TENANT", "local")
            .env("FOOTBRIDGE_PROJECT", "main")
            .output()?;
        let (said, complaint) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        assert!(output.status.success(), "{example}: {said}{complaint}");
        assert!(said.contains("Hello") || said.contains("TODO"), "{example}: {said}{complaint}");
    }
    Ok(())
}
