//! The foot of the current folder: this very program, started again as a child process.
//!
//! Its standard input is a pipe that nobody writes to. It ends when the hub does, also when that is killed, and then so
//! does the foot. It is in a process group of its own, so that Ctrl-C reaches the hub alone: calls that run on the foot
//! may then end before it does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use footbridge_shared::limits::{RECONNECT_MAX, RECONNECT_MIN};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

use super::Allowed;
use crate::api::feet::{FootList, FootView};
use crate::cli::FOOT_COMMAND;
use crate::cli::client::{At, Client};
use crate::cli::error::CliError;
use crate::cli::out::remark;
use crate::config::environment::TOKEN_VARIABLE;
use crate::config::state::HubFile;

/// How long a foot may take to register before the report is printed without it.
const REGISTER_PATIENCE: Duration = Duration::from_secs(15);
/// Time between two looks whether it has.
const REGISTER_PAUSE: Duration = Duration::from_millis(50);
/// How long a foot must have run for its next start to count as the first.
const STEADY: Duration = Duration::from_secs(60);
/// Exit code of a foot whose command line or configuration cannot be used.
pub(super) const UNUSABLE: i32 = 2;
/// How long a foot whose pipe closed may take to end.
const STOP_PATIENCE: Duration = Duration::from_secs(3);

/// How to start the foot.
#[derive(Debug)]
struct Recipe {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
}

/// The foot's process, restarted when it ends.
#[derive(Debug)]
pub(super) struct Foot {
    recipe: Recipe,
    child: Child,
    /// The foot ends when this is closed.
    pipe: Option<ChildStdin>,
    started: Instant,
    pause: Duration,
}

/// What became of the foot's start.
#[derive(Debug, Clone)]
pub(super) enum Registered {
    /// It is there.
    Yes(Box<FootView>),
    /// It is not, yet.
    NotYet,
    /// It ended.
    Ended(ExitStatus),
}

impl Foot {
    /// Starts it. `state` is a folder of this hub alone: feet are named after their folders, and another hub's folder may
    /// have the same name.
    pub(super) fn start(hub: &HubFile, token_file: &Path, state: &Path, allowed: Allowed) -> Result<Self, CliError> {
        let program = std::env::current_exe().map_err(not_started)?;
        let arguments = arguments(hub, token_file, state, allowed);
        Self::of(Recipe { program, arguments, folder: hub.folder.clone() }).map_err(not_started)
    }

    fn of(recipe: Recipe) -> std::io::Result<Self> {
        let mut child = spawn(&recipe)?;
        let pipe = child.stdin.take();
        Ok(Self { recipe, child, pipe, started: Instant::now(), pause: Duration::ZERO })
    }

    /// Waits until the hub lists it as connected, or it ended, or patience did.
    pub(super) async fn registered(&mut self, client: &Client) -> Registered {
        let folder = self.recipe.folder.clone();
        tokio::select! {
            found = listed(client, &folder) => Registered::Yes(Box::new(found)),
            ended = self.child.wait() => match ended {
                Ok(status) => Registered::Ended(status),
                Err(_) => Registered::NotYet,
            },
            () = sleep(REGISTER_PATIENCE) => Registered::NotYet,
        }
    }

    /// Starts it again whenever it ends, later each time. Never ends by itself, and can be dropped at any point.
    pub(super) async fn keep_running(&mut self) {
        loop {
            let told = match self.child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            self.pause = next_pause(self.pause, self.started.elapsed());
            remark(&format!("the foot ended ({told}); it starts again in {:.1} s", self.pause.as_secs_f64()));
            sleep(self.pause).await;
            self.started = Instant::now();
            match spawn(&self.recipe) {
                Ok(mut child) => {
                    self.pipe = child.stdin.take();
                    self.child = child;
                }
                // The ended child stays in its place: waiting for it again answers at once, and so this goes on.
                Err(error) => remark(&format!("the foot does not start: {error}")),
            }
        }
    }

    /// Closes its pipe and waits for its end; one that does not end in time is killed.
    pub(super) async fn stop(mut self) {
        drop(self.pipe.take());
        if timeout(STOP_PATIENCE, self.child.wait()).await.is_err() {
            // It may have ended just now.
            let _ = self.child.kill().await;
        }
    }
}

/// The command line of the foot.
fn arguments(hub: &HubFile, token_file: &Path, state: &Path, allowed: Allowed) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![FOOT_COMMAND.into(), "run".into()];
    arguments.extend(["--hub".into(), hub.url.clone().into(), "--token-file".into(), token_file.into()]);
    arguments.extend(["--tenant".into(), hub.tenant.clone().into()]);
    arguments.extend(["--project".into(), hub.project.clone().into(), "--state".into(), state.into()]);
    arguments.extend(["--root".into(), ".".into(), "--exit-with-stdin".into()]);
    let flags = [
        (allowed.write, "--allow-write"),
        (allowed.exec, "--allow-exec"),
        (!allowed.kernel_sandbox, "--no-kernel-sandbox"),
    ];
    arguments.extend(flags.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag.into()));
    arguments
}

/// Twice the last pause, unless the foot had run steadily; at least a short one.
fn next_pause(last: Duration, ran: Duration) -> Duration {
    if ran >= STEADY { RECONNECT_MIN } else { (last * 2).clamp(RECONNECT_MIN, RECONNECT_MAX) }
}

fn spawn(recipe: &Recipe) -> std::io::Result<Child> {
    Command::new(&recipe.program)
        .args(&recipe.arguments)
        .current_dir(&recipe.folder)
        // A token that may do everything is none of its business, nor of what it runs.
        .env_remove(TOKEN_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

fn not_started(source: std::io::Error) -> CliError {
    CliError::Hub { message: format!("the foot does not start: {source}"), hint: Some("see --no-foot".to_owned()) }
}

/// The foot that serves the folder, once the hub lists it.
async fn listed(client: &Client, folder: &Path) -> FootView {
    loop {
        if let Ok(list) = feet(client).await
            && let Some(found) = list.feet.into_iter().find(|foot| is_ours(foot, folder))
        {
            return found;
        }
        sleep(REGISTER_PAUSE).await;
    }
}

async fn feet(client: &Client) -> Result<FootList, CliError> {
    client.get(At::Scope(&["feet"]))?.json().await
}

fn is_ours(foot: &FootView, folder: &Path) -> bool {
    let same_folder = foot.cwd.as_deref().is_none_or(|cwd| Path::new(cwd) == folder);
    // Its tools come a moment after it.
    let has_tools = foot.tools.as_ref().is_some_and(|tools| !tools.is_empty());
    foot.own && foot.state == "connected" && same_folder && has_tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Foot {
        let arguments = vec!["-c".into(), script.into()];
        Foot::of(Recipe { program: "/bin/sh".into(), arguments, folder: "/".into() }).unwrap()
    }

    #[tokio::test]
    async fn the_foot_ends_with_its_pipe() {
        let mut foot = shell("cat");
        assert!(foot.child.try_wait().unwrap().is_none());
        drop(foot.pipe.take());
        assert!(foot.child.wait().await.unwrap().success());
        shell("cat").stop().await;
    }

    #[tokio::test]
    async fn a_foot_that_ended_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("starts");
        // The first run ends at once, the second one stays.
        let mut foot = shell(&format!("echo x >> '{0}'; [ $(wc -l < '{0}') -lt 2 ] || cat", log.display()));
        let first = foot.child.id();
        let second_start = async {
            while std::fs::read_to_string(&log).is_ok_and(|starts| starts.lines().count() < 2) || !log.exists() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = foot.keep_running() => {}
            () = second_start => {}
        }
        assert_ne!(foot.child.id(), first);
        foot.stop().await;
    }

    #[test]
    fn the_foot_keeps_its_state_where_its_hub_does() {
        let hub = HubFile {
            url: "http://127.0.0.1:1".to_owned(),
            tenant: "local".to_owned(),
            project: "main".to_owned(),
            token_file: "/s/token".into(),
            subject: "ada".to_owned(),
            pid: 1,
            folder: "/a/web".into(),
        };
        let arguments = |allowed| arguments(&hub, Path::new("/s/foot.token"), Path::new("/s/hubs/web-1/foot"), allowed);
        let words = arguments(Allowed { write: false, exec: false, kernel_sandbox: true });
        assert!(words.windows(2).any(|pair| pair == ["--state", "/s/hubs/web-1/foot"]), "{words:?}");
        let more = arguments(Allowed { write: true, exec: true, kernel_sandbox: false });
        assert_eq!(more[words.len()..], ["--allow-write", "--allow-exec", "--no-kernel-sandbox"]);
    }

    #[test]
    fn a_foot_that_keeps_ending_is_started_ever_later() {
        let mut pause = RECONNECT_MIN;
        for _ in 0..20 {
            pause = next_pause(pause, Duration::ZERO);
        }
        assert_eq!(pause, RECONNECT_MAX);
        assert_eq!(next_pause(pause, STEADY), RECONNECT_MIN);
    }
}
