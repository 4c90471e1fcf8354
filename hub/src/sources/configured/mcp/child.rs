//! Servers that the hub starts: which programs it may start, what they inherit, and their end.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_launcher::{Hold, Launcher, MARK, NotStarted, Order, Process, Report, Reports, end_leftovers};
use footbridge_mcp::{ConnectError, Connection, KnowsDiscovery, Open};
use footbridge_shared::ErrorCode;
use tokio::net::unix::pipe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::config::Program;
use super::dial::{Dial, Dialed, Unavailable};
use super::noise::Noise;
use super::redact::Redactor;
use crate::clock::random_id;
use crate::lifecycle;

/// Children of one hub at a time.
const MAX_CHILDREN: usize = 256;
/// How long what a program wrote is waited for that has ended too soon.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a new child waits for the end of an idle one that makes room for it.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Which programs documents may have started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedPrograms {
    /// Any: whoever may write documents is whoever started the hub.
    Any,
    /// These: names that are looked for in the hub's `PATH`, or absolute paths.
    Listed(Vec<String>),
}

/// How children are started.
#[derive(Debug, Clone)]
pub struct ChildSettings {
    /// Starts them.
    pub launcher: Launcher,
    /// Which there may be.
    pub allowed: AllowedPrograms,
    /// Which variables documents may set for programs that are listed: names, perhaps with a `*` at the end.
    pub variables: Vec<String>,
    /// What they inherit of the hub's environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Starts children, a bounded number.
pub(super) struct Children {
    settings: ChildSettings,
    lifecycle: lifecycle::Lifecycle,
    room: Arc<Semaphore>,
}

impl Children {
    pub(super) fn new(settings: ChildSettings, lifecycle: lifecycle::Lifecycle) -> Self {
        Self { settings, lifecycle, room: Arc::new(Semaphore::new(MAX_CHILDREN)) }
    }

    /// Whether another child has to wait for room.
    pub(super) fn are_full(&self) -> bool {
        self.room.available_permits() == 0
    }

    fn path(&self) -> Option<&OsStr> {
        self.settings.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
    }

    /// The file that a command means, if the operator allows it.
    fn program(&self, program: &Program) -> Result<PathBuf, Unavailable> {
        let shown = footbridge_shared::text::clean_and_cut(&program.command, 200);
        let found = find(&program.command, self.path());
        if let AllowedPrograms::Listed(allowed) = &self.settings.allowed {
            let is_allowed =
                |entry: &String| *entry == program.command || (found.is_some() && find(entry, self.path()) == found);
            if !allowed.iter().any(is_allowed) {
                let message =
                    format!("the operator of the hub does not allow the command `{shown}` (setting `mcpCommands`)");
                return Err(Unavailable::lasting(ErrorCode::CommandNotAllowed, message));
            }
            // Many a variable makes another program of an allowed one (LD_PRELOAD, NODE_OPTIONS, GIT_SSH_COMMAND, PATH), and
            // nobody knows all of them: so those are allowed that are listed.
            if let Some((name, _)) = program.env.iter().find(|(name, _)| !self.may_be_set(name)) {
                let name = footbridge_shared::text::clean_and_cut(name, 200);
                let message = format!(
                    "the operator of the hub does not allow the variable `{name}` under `env`; where it changes nothing of \
                     what the program runs, allow it in the setting `mcpVariables`"
                );
                return Err(Unavailable::lasting(ErrorCode::CommandNotAllowed, message));
            }
        }
        found.ok_or_else(|| Unavailable::now(format!("there is no program `{shown}` on the hub's machine")))
    }

    fn may_be_set(&self, name: &str) -> bool {
        self.settings.variables.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == allowed,
        })
    }

    async fn start(&self, program: &Program, noise: &Arc<Noise>) -> Result<Started, Unavailable> {
        let file = self.program(program)?;
        let room = tokio::time::timeout(ROOM_TIMEOUT, self.room.clone().acquire_owned()).await;
        let Ok(Ok(room)) = room else {
            let message = format!("the hub runs {MAX_CHILDREN} programs of MCP servers already");
            return Err(Unavailable { code: ErrorCode::Overloaded, ..Unavailable::now(message) });
        };
        let job = random_id();
        let temporary = std::env::temp_dir().join(format!("footbridge-{job}"));
        let order = self.order(program, file, &job, &temporary);
        let failed = |error: std::io::Error| Unavailable::now(format!("no program can be started: {error}"));
        let Process { mut reports, hold, input, output, error } =
            self.settings.launcher.start(&order, true).await.map_err(failed)?;
        match reports.next().await {
            Some(Report::Started) => {}
            Some(Report::NotStarted(why)) => return Err(not_started(why)),
            Some(Report::Ended(_)) | None => return Err(Unavailable::now("the launcher of the program broke")),
        }
        let input = input.ok_or_else(|| Unavailable::now("the program has no input"))?;
        let noise = noise.clone();
        let silent = CancellationToken::new();
        let read = silent.clone().drop_guard();
        self.lifecycle.spawn("errors of an MCP server", async move {
            noise.read("stderr", error).await;
            drop(read);
        });
        self.lifecycle.spawn("launcher of an MCP server", watch(reports, room, job, temporary));
        Ok(Started { child: Child { _hold: hold }, input, output, silent })
    }

    fn order(&self, program: &Program, file: PathBuf, job: &str, temporary: &Path) -> Order {
        let mut environment = self.settings.environment.clone();
        for (name, value) in &program.env {
            environment.retain(|(known, _)| known != OsStr::new(name));
            environment.push((name.into(), value.into()));
        }
        environment.push((MARK.into(), job.into()));
        Order {
            program: file.into(),
            argv: std::iter::once(&program.command).chain(&program.args).map(Into::into).collect(),
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: program.cwd.clone().map_or_else(own_folder, PathBuf::from).into(),
            temporary: temporary.into(),
            grants: None,
        }
    }
}

struct Started {
    child: Child,
    input: pipe::Sender,
    output: pipe::Receiver,
    /// Fires when all that it wrote beside messages was read.
    silent: CancellationToken,
}

/// A program that runs. Dropped, it ends with all that it started.
pub(super) struct Child {
    _hold: Hold,
}

/// Looks after a launcher to its end, whoever has given up on it meanwhile. Then there is room for another.
async fn watch(mut reports: Reports, room: OwnedSemaphorePermit, job: String, temporary: PathBuf) {
    let ended = loop {
        match reports.next().await {
            Some(Report::Ended(_)) => break true,
            Some(_) => {}
            None => break false,
        }
    };
    reports.gone().await;
    if !ended {
        // Somebody killed it: what it looked after is still there.
        let _ = tokio::task::spawn_blocking(move || end_leftovers(&job, &temporary)).await;
    }
    drop(room);
}

/// Starts a program for each connection.
pub(super) struct StdioDial {
    program: Program,
    redactor: Redactor,
    noise: Arc<Noise>,
    children: Arc<Children>,
    knows_discovery: KnowsDiscovery,
}

/// Why a program is not connected.
enum NotConnected {
    /// It was not started.
    Unavailable(Unavailable),
    /// It is there, and there is no connection.
    Connect(ConnectError),
}

impl StdioDial {
    pub(super) fn new(program: Program, redactor: Redactor, noise: Noise, children: Arc<Children>) -> Self {
        Self { program, redactor, noise: Arc::new(noise), children, knows_discovery: KnowsDiscovery::default() }
    }

    /// Starts the program and shakes hands with it.
    async fn start(&self, open: Open) -> Result<Dialed, NotConnected> {
        self.noise.begin();
        let Started { child, input, output, silent } =
            self.children.start(&self.program, &self.noise).await.map_err(NotConnected::Unavailable)?;
        let noise = self.noise.clone();
        let noise = Arc::new(move |line: &str| noise.line("stdout", line));
        let connected = Connection::over_streams(output, input, noise, open).await;
        let error = match connected {
            Ok(connection) => return Ok(Dialed { connection, process: Some(child) }),
            Err(error) => error,
        };
        drop(child);
        let _ = tokio::time::timeout(LAST_WORDS, silent.cancelled()).await;
        Err(NotConnected::Connect(error))
    }
}

#[async_trait]
impl Dial for StdioDial {
    async fn dial(&self, open: Open) -> Result<Dialed, Unavailable> {
        let ended_over_it =
            |error: &NotConnected| matches!(error, NotConnected::Connect(ConnectError::EndedAtDiscovery));
        let error = match self.knows_discovery.open(open, |open| self.start(open), ended_over_it).await {
            Ok(dialed) => return Ok(dialed),
            Err(NotConnected::Unavailable(unavailable)) => return Err(unavailable),
            Err(NotConnected::Connect(error)) => error,
        };
        let mut unavailable = Unavailable::of(&error, &self.redactor);
        let last = self.noise.last();
        if !last.is_empty() {
            unavailable.message = format!("{}; the last that the program wrote: {last}", unavailable.message);
        }
        Err(unavailable)
    }
}

/// The file that a command means: what lies at its absolute path, or the first of that name in `path` that may be executed.
fn find(command: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let executable = |file: &Path| {
        std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|file| file.is_absolute() && executable(file));
    }
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(command)).find(|file| executable(file))
}

fn own_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

fn not_started(why: NotStarted) -> Unavailable {
    Unavailable::now(match why {
        NotStarted::NoProgram => "there is no such program, or what interprets it is missing".to_owned(),
        NotStarted::Denied => "the system does not let the program be executed".to_owned(),
        NotStarted::TooLong => "its arguments and its environment are more than the system takes".to_owned(),
        NotStarted::Unconfined(why) | NotStarted::Broken(why) => format!("the program was not started: {why}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(allowed: &[&str]) -> Children {
        let settings = ChildSettings {
            launcher: Launcher::of_this_program(),
            allowed: AllowedPrograms::Listed(allowed.iter().map(|name| (*name).to_owned()).collect()),
            variables: vec!["API_TOKEN".to_owned(), "SHOP_*".to_owned()],
            environment: vec![("PATH".into(), "relative:/none/such:/usr/bin:/bin".into())],
        };
        Children::new(settings, lifecycle::Lifecycle::new())
    }

    fn judged(allowed: &[&str], command: &str, env: &[&str]) -> Result<PathBuf, ErrorCode> {
        let env = env.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let program = Program { command: command.to_owned(), args: Vec::new(), cwd: None, env };
        children(allowed).program(&program).map_err(|unavailable| unavailable.code)
    }

    #[test]
    fn only_what_the_operator_lists_is_started() {
        let sh = judged(&["sh"], "sh", &[]).unwrap();
        assert!(sh.is_absolute());
        let path = sh.to_str().unwrap();
        assert_eq!(judged(&[path], "sh", &[]), Ok(sh.clone()), "the name of what is listed by its path");
        assert_eq!(judged(&["sh"], path, &[]), Ok(sh.clone()), "the path of what is listed by its name");
        for (allowed, command) in
            [(&[][..], "sh"), (&["env"], "sh"), (&["sh"], "/tmp/sh"), (&["sh"], "./sh"), (&[""], "sh")]
        {
            assert_eq!(judged(allowed, command, &[]), Err(ErrorCode::CommandNotAllowed), "{allowed:?} {command}");
        }
        for name in
            ["LD_PRELOAD", "ENV", "BASH_ENV", "NODE_OPTIONS", "PATH", "API_TOKEN2", "api_token", "SHOP", "XSHOP_A"]
        {
            assert_eq!(judged(&["sh"], "sh", &["API_TOKEN", name]), Err(ErrorCode::CommandNotAllowed), "{name}");
        }
        assert_eq!(judged(&["sh"], "sh", &["API_TOKEN", "SHOP_URL"]), Ok(sh));
        assert_eq!(judged(&["no-such-program"], "no-such-program", &[]), Err(ErrorCode::ServerUnavailable));
    }
}
