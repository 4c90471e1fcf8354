//! `fake-mcp`: an MCP server that does what a script says, in the order that the script says it, and writes down what it
//! heard. It speaks raw JSON-RPC, over stdio or HTTP, and shares no code with what is tested: what it sends is the text
//! of the script.

pub mod http;
pub mod log;
pub mod message;
pub mod script;
mod server;
pub mod stdio;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Result;
use crate::binaries;
use crate::eventually::eventually;
use crate::process::Process;
use log::Entry;
use script::Script;

/// A scripted server in a folder of its own: the script, its log, and the gates that a test opens.
pub struct FakeMcp {
    folder: TempDir,
    process: Option<Process>,
    url: Option<String>,
    seen: AtomicUsize,
}

impl FakeMcp {
    /// Writes a script down, for a hub or a foot to start.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn new(script: &Script) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("script.json"), serde_json::to_string(script)?)?;
        std::fs::write(folder.path().join("log"), "")?;
        Ok(Self { folder, process: None, url: None, seen: AtomicUsize::default() })
    }

    /// Starts it as an HTTP server.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn over_http(script: &Script) -> Result<Self> {
        let mut fake = Self::new(script)?;
        fake.start_http("127.0.0.1:0")?;
        Ok(fake)
    }

    /// Starts the HTTP server at an address.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start_http(&mut self, address: &str) -> Result<()> {
        let mut command = Command::new(binaries::own("fake-mcp")?);
        let mut process = Process::spawn(command.args(self.args()).args(["--http", address]))?;
        let line = process.line_with("listening on ")?;
        self.url = line.rsplit(' ').next().map(str::to_owned);
        self.process = Some(process);
        Ok(())
    }

    /// Ends the HTTP server.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop_http(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), |mut process| process.kill())
    }

    /// Where its endpoint is on HTTP.
    ///
    /// # Errors
    /// When it was not started so.
    pub fn url(&self) -> Result<&str> {
        Ok(self.url.as_deref().ok_or("it is not on HTTP")?)
    }

    /// Its program.
    ///
    /// # Errors
    /// When it is not built.
    pub fn command(&self) -> Result<String> {
        Ok(binaries::own("fake-mcp")?.to_string_lossy().into_owned())
    }

    /// The arguments of its program.
    pub fn args(&self) -> Vec<String> {
        vec!["--folder".to_owned(), self.folder.path().to_string_lossy().into_owned()]
    }

    /// `parameters` of a tool document that attaches it, with more of them.
    ///
    /// # Errors
    /// When it is not built.
    pub fn parameters(&self, more: Value) -> Result<Value> {
        let mut parameters = match &self.url {
            Some(url) => json!({ "url": url }),
            None => json!({ "command": self.command()?, "args": self.args() }),
        };
        if let (Some(all), Value::Object(more)) = (parameters.as_object_mut(), more) {
            all.extend(more);
        }
        Ok(parameters)
    }

    /// The tool document that attaches it as a pack, as JSON.
    ///
    /// # Errors
    /// When it is not built.
    pub fn document(&self, more: Value) -> Result<String> {
        let parameters = self.parameters(more)?;
        Ok(json!({ "type": "mcp_server", "description": "Scripted", "parameters": parameters }).to_string())
    }

    /// Its folder: every process of it names the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a gate that a script waits at.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn open_gate(&self, name: &str) -> Result<()> {
        Ok(std::fs::write(self.gate(name), "")?)
    }

    fn gate(&self, name: &str) -> PathBuf {
        script::gate(self.folder.path(), name)
    }

    /// What it wrote down so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<Vec<Entry>> {
        log::read(&self.folder.path().join("log"))
    }

    /// What it wrote down since this was asked for the last time.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn news(&self) -> Result<Vec<Entry>> {
        let all = self.log()?;
        let seen = self.seen.swap(all.len(), Ordering::Relaxed);
        Ok(all.into_iter().skip(seen).collect())
    }

    /// The messages with a method that it received, in their order.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn received(&self, method: &str) -> Result<Vec<Entry>> {
        Ok(self.log()?.into_iter().filter(|entry| entry.method() == Some(method)).collect())
    }

    /// The calls of a tool that it received.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn calls_of(&self, tool: &str) -> Result<Vec<Entry>> {
        let calls = self.received("tools/call")?;
        Ok(calls.into_iter().filter(|call| call.json()["params"]["name"] == tool).collect())
    }

    /// Waits for a message with a method, and answers the first.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn heard(&self, method: &str) -> Result<Entry> {
        eventually(&format!("the server hears {method}"), || async { Ok(self.received(method)?.into_iter().next()) })
            .await
    }

    /// Waits for a call of a tool, and answers the first.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn called(&self, tool: &str) -> Result<Entry> {
        eventually(&format!("the server's {tool} is called"), || async { Ok(self.calls_of(tool)?.into_iter().next()) })
            .await
    }

    /// How often it was started.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn starts(&self) -> Result<usize> {
        Ok(self.log()?.iter().filter(|entry| entry.event == log::STARTED).count())
    }
}
