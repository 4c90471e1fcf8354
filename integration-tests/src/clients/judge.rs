//! The official clients, run as their users would run them: a script that lists the tools of an endpoint, calls those that it
//! is told to, and prints what came. `integration-tests/run` installs them, and the servers that come with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::Result;
use crate::eventually::PATIENCE;
use crate::foot::write_private;

/// Who judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The official TypeScript client: sessions.
    TypeScript,
    /// The official Python client, which tries first without a session.
    Python,
    /// The official Python client with a session.
    PythonWithSession,
}

impl Judge {
    /// All.
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Python, Self::PythonWithSession];
}

/// What a client saw.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    /// The version that was agreed on.
    pub protocol: String,
    /// The tools, in the order of the list.
    pub listed: Vec<String>,
    /// What each call came to.
    pub results: BTreeMap<String, Seen>,
    /// What it was asked by the server, in order.
    pub asked: Vec<String>,
}

/// What a call came to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Seen {
    /// The tool says that it failed.
    pub is_error: bool,
    /// The kinds of the content blocks.
    pub kinds: Vec<String>,
    /// Whether there is a structured result.
    pub structured: bool,
    /// All texts.
    pub text: String,
    /// Why there is no result.
    pub error: Option<String>,
}

/// Where a set of clients and servers is installed.
///
/// # Errors
/// When it is not.
fn installed(set: &str) -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let folder = workspace.join("target").join(set);
    if folder.join("installed").is_file() {
        Ok(folder)
    } else {
        Err(format!("{} is not there: integration-tests/run installs it", folder.display()).into())
    }
}

/// A program of the set from npm.
///
/// # Errors
/// When it is not installed.
pub fn node_program(name: &str) -> Result<String> {
    program(&installed("node-clients")?.join("node_modules/.bin").join(name))
}

/// A program of the set from PyPI.
///
/// # Errors
/// When it is not installed.
pub fn python_program(name: &str) -> Result<String> {
    program(&installed("python-clients")?.join("bin").join(name))
}

fn program(path: &Path) -> Result<String> {
    if path.is_file() { Ok(path.to_string_lossy().into_owned()) } else { Err(format!("no {}", path.display()).into()) }
}

/// Lists the tools of an endpoint, and makes these calls.
///
/// # Errors
/// When the client is not installed, or fails.
pub async fn judge(judge: Judge, url: &str, token: &str, calls: &[(String, Value)]) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    let task = folder.path().join("task.json");
    let mode = if judge == Judge::Python { "auto" } else { "legacy" };
    write_private(&task, &json!({ "url": url, "token": token, "mode": mode, "calls": calls }).to_string())?;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = match judge {
        Judge::TypeScript => {
            // A script on stdin finds its packages from the working folder.
            let mut node = Command::new("node");
            node.args(["--input-type=module", "-"]).current_dir(installed("node-clients")?);
            node.stdin(std::fs::File::open(scripts.join("node-clients/call-all.mjs"))?);
            node
        }
        Judge::Python | Judge::PythonWithSession => {
            let mut python = Command::new(python_program("python")?);
            python.arg(scripts.join("python/call_all.py")).stdin(Stdio::null());
            python
        }
    };
    let output = command.arg(&task).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, output).await.map_err(|_| format!("{judge:?} does not end"))??;
    let said = String::from_utf8_lossy(&output.stdout);
    let report = said.lines().find_map(|line| serde_json::from_str(line).ok()).filter(|_| output.status.success());
    report.ok_or_else(|| format!("{judge:?}: {said}{}", String::from_utf8_lossy(&output.stderr)).into())
}
