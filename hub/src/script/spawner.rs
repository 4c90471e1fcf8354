//! Starts worker processes, from a thread of its own.
//!
//! A worker asks Linux to kill it when its parent dies, and for Linux the parent is a thread. The runtime's threads come
//! and go; this one lives as long as the pool.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::pool::PoolConfig;
use super::worker::ALLOW_UNSANDBOXED;

/// Time zone of every script: the same everywhere, and found without a file.
const TIME_ZONE: &str = "UTC0";
/// The running program, whatever has become of the file that it was started from.
#[cfg(target_os = "linux")]
const RUNNING: &str = "/proc/self/exe";

/// A handle of the thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Spawner(mpsc::Sender<oneshot::Sender<io::Result<Child>>>);

impl Spawner {
    /// Starts the thread. Its processes belong to the current runtime.
    pub(super) fn start(config: &PoolConfig) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel::<oneshot::Sender<io::Result<Child>>>();
        let (config, runtime) = (config.clone(), Handle::current());
        let program = lasting(&config.program);
        std::thread::Builder::new().name("script-spawner".to_owned()).spawn(move || {
            let _runtime = runtime.enter();
            while let Ok(reply) = queue.recv() {
                // A caller that left takes the process with it: it is killed when dropped.
                let _ = reply.send(command(&program, &config).spawn());
            }
        })?;
        Ok(Self(requests))
    }

    /// Starts one process.
    pub(super) async fn spawn(&self) -> io::Result<Child> {
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts workers ended");
        self.0.send(reply).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

/// How to start a program for as long as the pool lives. An upgrade replaces the file of a running hub, and a worker of the
/// new one may speak another language.
#[cfg(target_os = "linux")]
fn lasting(program: &Path) -> PathBuf {
    let is_running = std::env::current_exe().is_ok_and(|running| running == program);
    if is_running { PathBuf::from(RUNNING) } else { program.to_owned() }
}

/// This system has no name for a program that runs.
#[cfg(not(target_os = "linux"))]
fn lasting(program: &Path) -> PathBuf {
    program.to_owned()
}

fn command(program: &Path, config: &PoolConfig) -> Command {
    let mut command = Command::new(program);
    command
        .arg0(&config.program)
        .args(&config.args)
        .env_clear()
        .env("TZ", TIME_ZONE)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A script that breaks out of the engine must not speak to the operator's terminal.
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    if config.allow_unsandboxed {
        command.arg(ALLOW_UNSANDBOXED);
    }
    command
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    async fn said_by(script: &str) -> String {
        let config = PoolConfig { args: vec!["-c".into(), script.into()], ..PoolConfig::new("/bin/sh") };
        let child = Spawner::start(&config).unwrap().spawn().await.unwrap();
        String::from_utf8(child.wait_with_output().await.unwrap().stdout).unwrap()
    }

    #[tokio::test]
    async fn a_worker_has_no_way_to_the_terminal() {
        // Standard output is the pipe that is read here.
        assert_eq!(said_by("readlink /proc/$$/fd/2").await, "/dev/null\n");
    }

    #[test]
    fn the_running_program_is_started_whatever_lies_at_its_path() {
        let running = std::env::current_exe().unwrap();
        assert_eq!(lasting(&running), Path::new("/proc/self/exe"));
        assert_eq!(lasting(Path::new("/bin/sh")), Path::new("/bin/sh"));
    }
}
