//! A real foot on a folder.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

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
    command: Command,
    /// What its owner sees.
    owner: Api,
    state: Arc<TempDir>,
}

impl TestFoot {
    /// Starts a foot on `root` and waits until its owner can see it connected.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn start(hub: &TestHub, subject: &str, name: &str, root: &Path, more: &[&str]) -> Result<Self> {
        Self::start_via(hub, &hub.url, subject, name, root, more).await
    }

    /// The same by a way of its own to the hub, for instance through a proxy.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn start_via(
        hub: &TestHub,
        url: &str,
        subject: &str,
        name: &str,
        root: &Path,
        more: &[&str],
    ) -> Result<Self> {
        let foot = Self::launch(hub, url, subject, name, root, more, Arc::new(tempfile::tempdir()?)).await?;
        foot.connected().await?;
        Ok(foot)
    }

    /// Starts a foot on a state folder that a test prepared, and does not wait for anything.
    ///
    /// # Errors
    /// When the process does not start.
    pub async fn launch(
        hub: &TestHub,
        url: &str,
        subject: &str,
        name: &str,
        root: &Path,
        more: &[&str],
        state: Arc<TempDir>,
    ) -> Result<Self> {
        let token = hub.token(subject, &["foot", "viewer"]).await?;
        let token_file = state.path().join("token");
        write_private(&token_file, &token)?;
        let mut command = Command::new(binaries::foot()?);
        command.args(["run", "--hub", url, "--tenant", "local", "--project", "main", "--name", name]);
        command.arg("--token-file").arg(&token_file).arg("--root").arg(root).arg("--state").arg(state.path());
        command.args(more);
        let process = Process::spawn(&mut command)?;
        let owner = Api::new(&hub.url, Some(&token))?;
        Ok(Self { name: name.to_owned(), process, command, owner, state })
    }

    /// Waits until its owner can see it connected, with tools.
    ///
    /// # Errors
    /// When it does not connect.
    pub async fn connected(&self) -> Result<()> {
        let name = self.name.as_str();
        let look = || async {
            let feet = self.owner.get("feet").await?.json();
            let here = feet["feet"].as_array().is_some_and(|feet| {
                feet.iter().any(|f| {
                    f["name"] == name
                        && f["own"] == true
                        && f["state"] == "connected"
                        && f["tools"].as_array().is_some_and(|t| !t.is_empty())
                })
            });
            Ok(here.then_some(()))
        };
        let connected = eventually(&format!("foot {name} connects"), look).await;
        connected.map_err(|error| format!("{error}\n{}", self.process.output()).into())
    }

    /// Kills it as a power cut would, and starts it anew on the same state. Does not wait until it is connected.
    ///
    /// # Errors
    /// When the process does not start.
    pub fn kill_and_restart(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process = Process::spawn(&mut self.command)?;
        Ok(())
    }

    /// Connections that this process had a welcome for.
    pub fn welcomes(&self) -> usize {
        self.process.output().lines().filter(|line| line.contains(" connected ")).count()
    }

    /// Where its key and its journal lie.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// The same, for another foot that shares it.
    pub fn shared_state(&self) -> Arc<TempDir> {
        self.state.clone()
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
