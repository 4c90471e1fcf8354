//! A real hub in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{Api, send};
use crate::process::Process;
use crate::{Result, binaries};

/// What is special about a hub.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A documents folder.
    pub documents: Option<PathBuf>,
    /// Further environment variables.
    pub env: Vec<(String, String)>,
}

/// A hub that runs `footbridge serve`.
pub struct TestHub {
    /// Where it listens.
    pub url: String,
    /// A token that may do everything.
    pub admin: String,
    /// The process.
    pub process: Process,
    options: Options,
    folder: TempDir,
}

impl TestHub {
    /// Starts a hub with the tenant `local` and its projects `main` and `other`.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start() -> Result<Self> {
        Self::start_with(Options::default()).await
    }

    /// Starts a special hub.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_with(options: Options) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Self::start_on(folder, options).await
    }

    /// Starts a hub on data that a test prepared: the folder `data` in `folder`.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start_on(folder: TempDir, options: Options) -> Result<Self> {
        let admin = first_token(&folder.path().join("data"))?;
        let (process, url) = serve(&folder.path().join("data"), "127.0.0.1:0", &options)?;
        let hub = Self { url, admin, process, options, folder };
        hub.put_tenant("local", &["main", "other"]).await?;
        Ok(hub)
    }

    /// Where its data lies.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A folder that ends with the hub.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the hub as a power cut would, and starts it anew on the same data and address.
    ///
    /// # Errors
    /// When it does not come up again.
    pub fn kill_and_restart(&mut self) -> Result<()> {
        self.process.kill()?;
        let address = self.url.trim_start_matches("http://").to_owned();
        (self.process, self.url) = serve(&self.data(), &address, &self.options)?;
        Ok(())
    }

    /// A client with all rights.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn api(&self) -> Result<Api> {
        Api::new(&self.url, Some(&self.admin))
    }

    /// Makes a token for `local`.
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn token(&self, subject: &str, roles: &[&str]) -> Result<String> {
        self.token_with(json!({ "subject": subject, "roles": roles, "tenant": "local" })).await
    }

    /// Makes a token from a whole body.
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn token_with(&self, body: Value) -> Result<String> {
        let answer = send(self.api()?.request(Method::POST, "/v1/tokens").json(&body)).await?.ok()?;
        Ok(answer.json()["token"].as_str().ok_or("no token")?.to_owned())
    }

    /// Makes a tenant with projects.
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn put_tenant(&self, name: &str, projects: &[&str]) -> Result<()> {
        let request = self.api()?.request(Method::PUT, &format!("/v1/tenants/{name}"));
        send(request.json(&json!({ "projects": projects }))).await?.ok()?;
        Ok(())
    }
}

fn serve(data: &Path, listen: &str, options: &Options) -> Result<(Process, String)> {
    let mut command = Command::new(binaries::footbridge()?);
    command.args(["serve", "--listen", listen, "--data"]).arg(data);
    if let Some(documents) = &options.documents {
        command.arg("--documents").arg(documents);
    }
    command.envs(options.env.iter().cloned());
    let mut process = Process::spawn(&mut command)?;
    let line = process.line_with("listening on http://")?;
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).ok_or("no address")?;
    Ok((process, url.to_owned()))
}

/// The first token, made on the stopped hub as an operator would.
///
/// # Errors
/// When the command fails.
pub fn first_token(data: &Path) -> Result<String> {
    let mut command = Command::new(binaries::footbridge()?);
    command.args(["token", "create", "--subject", "root", "--role", "admin", "--json", "--data"]).arg(data);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    Ok(json["token"].as_str().ok_or("no token")?.to_owned())
}
