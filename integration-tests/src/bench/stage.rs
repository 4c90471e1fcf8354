//! What is measured: a hub and a foot; and the servers that it is compared with.

use std::process::Command;

use tempfile::TempDir;

use crate::Result;
use crate::api::Api;
use crate::foot::TestFoot;
use crate::hub::TestHub;
use crate::process::Process;

/// A hub, a foot that echoes, and a client.
pub(super) struct Stage {
    /// The client.
    pub(super) api: Api,
    /// The hub.
    pub(super) hub: TestHub,
    _foot: TestFoot,
    _folder: TempDir,
}

impl Stage {
    /// Sets it up, with a foot that finds the hub at what `way` makes of its address.
    ///
    /// # Errors
    /// When any part does not come up.
    pub(super) async fn set<F: Future<Output = Result<String>>>(way: impl FnOnce(String) -> F) -> Result<Self> {
        let hub = TestHub::start().await?;
        let folder = tempfile::tempdir()?;
        let lines = folder.path().join("lines").to_string_lossy().into_owned();
        let more = ["--echo-append", lines.as_str(), "--max-concurrent", "1024"];
        let url = way(hub.url.clone()).await?;
        let foot = TestFoot::start_via(&hub, &url, "bench", "bench", folder.path(), &more).await?;
        let api = Api::new(&hub.url, Some(&hub.token("bench", &["engine"]).await?))?;
        Ok(Self { api, hub, _foot: foot, _folder: folder })
    }

    /// Sets it up with a foot right beside the hub.
    ///
    /// # Errors
    /// When any part does not come up.
    pub(super) async fn direct() -> Result<Self> {
        Self::set(|url| async { Ok(url) }).await
    }
}

/// A bare HTTP server and a bare WebSocket server, a process each.
pub(super) struct Comparison {
    /// A client of the HTTP server.
    pub(super) http: Api,
    /// Where the WebSocket server is.
    pub(super) socket_url: String,
    _processes: [Process; 2],
}

impl Comparison {
    /// Starts both.
    ///
    /// # Errors
    /// When one does not come up.
    pub(super) fn start() -> Result<Self> {
        let (http, http_url) = server("http-echo")?;
        let (socket, socket_url) = server("socket-echo")?;
        Ok(Self { http: Api::new(&http_url, None)?, socket_url, _processes: [http, socket] })
    }
}

/// Another process of this program, and where it listens.
///
/// # Errors
/// When it does not come up.
pub(super) fn server(part: &str) -> Result<(Process, String)> {
    let mut process = Process::spawn(Command::new(std::env::current_exe()?).arg(part))?;
    let line = process.line_with("listening on ")?;
    let url = line.rsplit(' ').next().ok_or("no address")?.to_owned();
    Ok((process, url))
}
