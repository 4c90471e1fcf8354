//! A real foot on a folder.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::api::Api;
use crate::eventually::eventually;
use crate::hub::TestHub;
use crate::process::Process;
use crate::{Result, binaries};

/// A foot that runs `foot run` in `local/main`.
pub struct TestFoot {
    /// Its name.
    pub name: String,
    /// The process.
    pub process: Process,
    state: TempDir,
}

impl TestFoot {
    /// Starts a foot on `root` and waits until its owner can see it connected.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn start(hub: &TestHub, subject: &str, name: &str, root: &Path, more: &[&str]) -> Result<Self> {
        let token = hub.token(subject, &["foot", "viewer"]).await?;
        let state = tempfile::tempdir()?;
        let token_file = state.path().join("token");
        write_private(&token_file, &token)?;
        let mut command = Command::new(binaries::foot()?);
        command.args(["run", "--hub", &hub.url, "--tenant", "local", "--project", "main", "--name", name]);
        command.arg("--token-file").arg(&token_file).arg("--root").arg(root).arg("--state").arg(state.path());
        command.args(more);
        let foot = Self { name: name.to_owned(), process: Process::spawn(&mut command)?, state };
        let api = Api::new(&hub.url, Some(&token))?;
        eventually(&format!("foot {name} connects: {}", foot.process.output()), || async {
            let feet = api.get("feet").await?.json();
            let here = feet["feet"].as_array().is_some_and(|feet| {
                feet.iter().any(|f| {
                    f["name"] == name
                        && f["own"] == true
                        && f["state"] == "connected"
                        && f["tools"].as_array().is_some_and(|t| !t.is_empty())
                })
            });
            Ok(here.then_some(()))
        })
        .await?;
        Ok(foot)
    }

    /// Where its key lies.
    pub fn state(&self) -> &Path {
        self.state.path()
    }
}

/// Writes a file that only its owner reads.
///
/// # Errors
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}
