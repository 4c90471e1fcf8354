//! The scripted server on stdin and stdout.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::server::{From, Server, Tasks};
use crate::Result;

/// Runs until its input ends, unless its script says that it goes on.
///
/// # Errors
/// When there is no script.
pub async fn run(folder: PathBuf) -> Result<()> {
    let server = Arc::new(Server::new(folder.clone())?);
    // From the first moment: a signal may come early.
    let ignored = server.script.ignores_term.then(|| signal(SignalKind::terminate())).transpose()?;
    if server.script.grandchild {
        start_grandchild(&folder)?;
    }
    let (out, mut outgoing) = mpsc::unbounded_channel::<String>();
    for line in &server.script.noise {
        out.send(line.clone())?;
    }
    let mut general = server.general.subscribe();
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    let mut tasks = Tasks::new(server.clone());
    loop {
        tokio::select! {
            line = input.next_line() => {
                let Some(line) = line? else { break };
                if server.script.noise_each_message {
                    out.send(format!("INFO got {} bytes", line.len()))?;
                }
                tasks.handle(line, From::default(), out.clone());
            }
            Some(line) = outgoing.recv() => {
                output.write_all(format!("{line}\n").as_bytes()).await?;
                output.flush().await?;
            }
            Ok(line) = general.recv() => out.send(line)?,
        }
    }
    if server.script.ignores_end {
        std::future::pending::<()>().await;
    }
    drop(ignored);
    Ok(())
}

/// A process that is hard to get rid of. Its command line names the folder.
fn start_grandchild(folder: &std::path::Path) -> Result<()> {
    use std::os::unix::process::CommandExt as _;
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' TERM HUP; while :; do sleep 1; done", "grandchild"]).arg(folder);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    shell.spawn()?;
    Ok(())
}
