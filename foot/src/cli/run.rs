//! `foot run`

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{BROKEN, SettingsArgs, block_on, complain};
use crate::config::{Environment, FootConfig, Resolved, TokenSource, open_to_others};
use crate::error::{Exit, FootError};
use crate::permissions::{Asker, Headless, Terminal};
use crate::reload::Source;

/// Options of `foot run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// End when standard input ends.
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

impl RunArgs {
    /// Whether it belongs to a program that started it.
    pub(super) fn has_parent(&self) -> bool {
        self.exit_with_stdin
    }
}

/// Runs until stopped; returns the exit code.
pub(super) fn run(args: RunArgs, environment: Environment, here: &Path) -> u8 {
    let RunArgs { settings, exit_with_stdin } = args;
    let here = here.to_owned();
    let read = move || {
        let Resolved { config, file, .. } = settings.clone().resolve(&environment, &here)?;
        // The program that started it keeps it a state of its own: one that runs there is its own, about to end.
        Ok::<_, FootError>((FootConfig { supersede: config.supersede || exit_with_stdin, ..config }, file))
    };
    let (config, file) = match read() {
        Ok(read) => read,
        Err(error) => {
            complain(&error);
            return error.code();
        }
    };
    if let TokenSource::File(path) = &config.token
        && let Some(mode) = open_to_others(path)
    {
        tracing::warn!(path = %path.display(), mode, "others can read the token; run chmod 600 on it");
    }
    let source = file.map(|file| Source { file, read: Arc::new(move || read().map(|(config, _)| config)) });
    // Under another program standard input is that program's, and so is the terminal.
    let terminal = if exit_with_stdin { None } else { Terminal::of_process() };
    let asker = terminal.map_or_else(|| Box::new(Headless) as Box<dyn Asker>, |terminal| Box::new(terminal));
    match block_on(until_stopped(config, asker, source, exit_with_stdin)) {
        Ok(Ok(exit)) => exit.code(),
        Ok(Err(error)) => {
            complain(&error);
            error.code()
        }
        Err(error) => {
            complain(&error);
            BROKEN
        }
    }
}

/// A first signal asks for an ordered end, a second one gets an end.
async fn until_stopped(
    config: FootConfig,
    asker: Box<dyn Asker>,
    source: Option<Source>,
    exit_with_stdin: bool,
) -> Result<Exit, FootError> {
    let shutdown = CancellationToken::new();
    let foot = crate::serve(config, asker, source, shutdown.clone());
    let asked = async {
        asked_to_stop(exit_with_stdin).await;
        shutdown.cancel();
        asked_to_stop(false).await;
    };
    tokio::select! {
        ended = foot => ended,
        () = asked => Ok(Exit::Stopped),
    }
}

async fn asked_to_stop(with_stdin: bool) {
    let received = async |kind| match signal(kind) {
        Ok(mut signals) => _ = signals.recv().await,
        // Without it the foot ends as any process does.
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = received(SignalKind::interrupt()) => {}
        () = received(SignalKind::terminate()) => {}
        () = stdin_ends(), if with_stdin => {}
    }
}

async fn stdin_ends() {
    let (mut stdin, mut buffer) = (tokio::io::stdin(), [0; 256]);
    while stdin.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}
