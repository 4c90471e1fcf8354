//! How a server is reached: its program is started here, or its address is dialled.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use footbridge_launcher::{Hold, Launcher, Order, Process, Report, Reports};
use footbridge_mcp::{ConnectError, Connection, HttpTarget, KnowsDiscovery, Open};
use footbridge_shared::ErrorCode;
use footbridge_shared::text::clean_and_cut;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::settings::Target;
use super::tasks::Tasks;
use super::unreached::Unreached;
use crate::exec::Orders;
use crate::failure::Failure;

/// Longest line of a server that is logged, in characters.
const MAX_LINE_CHARS: usize = 500;
/// Longest line that is kept in memory, in bytes; the rest of it counts as the next one.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// Lines on standard error that are kept for whoever wants to know why a server does not start.
const LAST_LINES: usize = 5;
/// What is said of a program that PATH does not have.
const NOT_IN_PATH: &str = "; write its whole path as `command`: folders of PATH that are relative, or in a root, are not \
                           looked in, and what it needs of them `env` can name";
/// How long the last words of a server that did not start are waited for.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Opens connections to one server.
#[derive(Debug)]
pub(super) struct Opener {
    launcher: Launcher,
    orders: Arc<Orders>,
    http: reqwest::Client,
    pub(super) tasks: Tasks,
    knows_discovery: KnowsDiscovery,
}

impl Opener {
    pub(super) fn new(launcher: Launcher, orders: Arc<Orders>, http: reqwest::Client, tasks: Tasks) -> Self {
        Self { launcher, orders, http, tasks, knows_discovery: KnowsDiscovery::default() }
    }

    /// Opens one.
    ///
    /// # Errors
    /// [`Unreached`].
    pub(super) async fn open(&self, name: &str, target: &Target, open: Open) -> Result<Connection, Unreached> {
        match target {
            Target::Program { command, args, env, cwd, confine } => {
                let program = Program { command, args, env, cwd: cwd.as_ref(), confine: *confine };
                let ended_over_it = |unreached: &Unreached| {
                    matches!(
                        unreached,
                        Unreached::Connect(ConnectError::EndedAtDiscovery)
                            | Unreached::Program(ConnectError::EndedAtDiscovery, _)
                    )
                };
                self.knows_discovery.open(open, |open| self.program(name, &program, open), ended_over_it).await
            }
            Target::Http { url, headers, sse } => {
                let target = HttpTarget { url: url.clone(), headers: headers.clone(), client: self.http.clone() };
                if *sse {
                    return Ok(Connection::over_sse(target, open).await?);
                }
                let first = match Connection::over_http(target.clone(), open.clone()).await {
                    Err(first @ ConnectError::Status(400 | 404 | 405)) => first,
                    other => return Ok(other?),
                };
                match Connection::over_sse(target, open).await {
                    // There is no server of the older kind either: what was said first says what is wrong.
                    Err(ConnectError::Status(_) | ConnectError::Transport(_)) => Err(first.into()),
                    other => Ok(other?),
                }
            }
        }
    }

    async fn program(&self, name: &str, program: &Program<'_>, open: Open) -> Result<Connection, Unreached> {
        let order = program.order(&self.orders).await?;
        let mark = crate::random::id();
        let order = marked(order, &mark);
        let broken = |error: std::io::Error| Unreached::NotStarted(error.to_string());
        let Process { mut reports, hold, input, output, error } =
            self.launcher.start(&order, true).await.map_err(broken)?;
        match reports.next().await {
            Some(Report::Started) => {}
            Some(Report::NotStarted(why)) => return Err(why.into()),
            Some(Report::Ended(_)) | None => {
                self.tasks.run(clean_up(mark, order));
                return Err(Unreached::NotStarted("the process that starts it was killed".to_owned()));
            }
        }
        let words = Arc::new(LastWords::default());
        self.tasks.run(listen(name.to_owned(), error, words.clone()));
        let closed = CancellationToken::new();
        let kept = Kept { reports, hold, mark, order };
        let Some(input) = input else { return Err(Unreached::NotStarted("it has no input".to_owned())) };
        let noisy = name.to_owned();
        let noise = Arc::new(move |line: &str| {
            let line = clean_and_cut(line, MAX_LINE_CHARS);
            tracing::debug!(server = noisy, line, "a server wrote what is no message");
        });
        match Connection::over_streams(output, input, noise, open).await {
            Ok(connection) => {
                self.tasks.run(kept.until(connection.closed().clone()));
                Ok(connection)
            }
            Err(error) => {
                closed.cancel();
                self.tasks.run(kept.until(closed));
                tokio::time::sleep(LAST_WORDS).await;
                let words = words.text();
                Err(if words.is_empty() { error.into() } else { Unreached::Program(error, words) })
            }
        }
    }
}

/// A program as the settings say it.
struct Program<'a> {
    command: &'a str,
    args: &'a [String],
    env: &'a BTreeMap<String, String>,
    cwd: Option<&'a PathBuf>,
    confine: bool,
}

impl Program<'_> {
    async fn order(&self, orders: &Arc<Orders>) -> Result<Order, Unreached> {
        let (orders, command, args) = (orders.clone(), self.command.to_owned(), self.args.to_vec());
        let (env, cwd, confine) = (self.env.clone(), self.cwd.cloned(), self.confine);
        let made = tokio::task::spawn_blocking(move || {
            let order = orders.of_owner((&command, &args), &env, cwd.as_deref(), confine)?;
            let folder = order.cwd.to_path();
            if !folder.is_dir() {
                let message = format!("there is no folder `{}` for it to start in; see `cwd`", folder.display());
                return Err(Failure::not_run(ErrorCode::InvalidArguments, message));
            }
            Ok(order)
        });
        let made = made.await.map_err(|error| Unreached::NotStarted(error.to_string()))?;
        made.map_err(|failure| {
            let cause = failure.cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
            let advice = if failure.code == ErrorCode::NotFound { NOT_IN_PATH } else { "" };
            Unreached::NotStarted(format!("{}{cause}{advice}", failure.message))
        })
    }
}

fn marked(mut order: Order, mark: &str) -> Order {
    order.environment.push((footbridge_launcher::MARK.into(), mark.into()));
    order
}

/// A program that runs.
struct Kept {
    reports: Reports,
    hold: Hold,
    mark: String,
    order: Order,
}

impl Kept {
    /// Looks after it until its connection has ended, or it has; then nothing of it is left.
    async fn until(self, closed: CancellationToken) {
        let Self { mut reports, hold, mark, order } = self;
        let mut ended = tokio::select! {
            () = closed.cancelled() => false,
            report = reports.next() => matches!(report, Some(Report::Ended(_))),
        };
        drop(hold);
        ended |= matches!(reports.next().await, Some(Report::Ended(_)));
        reports.gone().await;
        if !ended {
            clean_up(mark, order).await;
        }
    }
}

/// Does what the launcher would have done, had it not been killed.
async fn clean_up(mark: String, order: Order) {
    tracing::warn!("the launcher of a local server was killed; what is left of the server is ended");
    let done = tokio::task::spawn_blocking(move || {
        footbridge_launcher::end_leftovers(&mark, &order.temporary.to_path());
    });
    if done.await.is_err() {
        tracing::error!("the end of a local server broke off");
    }
}

/// The last lines of a program's standard error.
#[derive(Debug, Default)]
struct LastWords(Mutex<VecDeque<String>>);

impl LastWords {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" / ")
    }
}

/// Reads what a program complains of, as long as it does.
async fn listen(server: String, error: pipe::Receiver, words: Arc<LastWords>) {
    let mut reader = BufReader::new(error);
    let mut line = Vec::new();
    loop {
        let mut limited = (&mut reader).take(MAX_LINE_BYTES as u64);
        line.clear();
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = clean_and_cut(String::from_utf8_lossy(&line).trim_end(), MAX_LINE_CHARS);
        if !text.is_empty() {
            tracing::debug!(server, line = text, "a server wrote to standard error");
            words.push(text);
        }
    }
}
