//! Starting the command: confined, in a process group of its own, with nothing of this process but its streams.

use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;

use crate::order::{NotStarted, Order, Standard};
use crate::sandbox::{self, Bytes};

/// A folder for its owner alone.
const PRIVATE: u32 = 0o700;

/// Makes the folder for temporary files; it must not be there yet.
pub(crate) fn folder(path: &Path) -> Result<(), NotStarted> {
    let made = std::fs::DirBuilder::new().mode(PRIVATE).create(path);
    made.map_err(|error| NotStarted::Broken(format!("no folder for temporary files: {error}")))
}

/// Removes it with all that is in it. Links in it are removed and not followed.
pub(crate) fn remove(path: &Path) {
    // A command can take away the right to do so; what is left lies where temporary files are cleaned up.
    let _ = std::fs::remove_dir_all(path);
}

/// Starts the command from a thread that confines itself: the command inherits that, and this process stays free to look
/// after it.
pub(crate) fn command(order: Order, standard: Standard) -> Result<Pid, NotStarted> {
    let thread = std::thread::Builder::new().spawn(move || confined(order, standard));
    let thread = thread.map_err(|error| NotStarted::Broken(error.to_string()))?;
    thread.join().unwrap_or_else(|_| Err(NotStarted::Broken("the launcher broke".to_owned())))
}

fn confined(order: Order, standard: Standard) -> Result<Pid, NotStarted> {
    if let Some(grants) = &order.grants {
        sandbox::restrict_for_command(grants).map_err(|error| NotStarted::Unconfined(error.to_string()))?;
    }
    let mut argv = order.argv.into_iter().map(Bytes::into_os);
    let mut command = Command::new(order.program.into_os());
    if let Some(name) = argv.next() {
        command.arg0(name);
    }
    command
        .args(argv)
        .env_clear()
        .envs(order.environment.into_iter().map(|(name, value)| (name.into_os(), value.into_os())))
        .current_dir(order.cwd.into_os())
        .stdin(standard.input)
        .stdout(standard.output)
        .stderr(standard.error)
        // A signal to its whole group is meant for itself.
        .process_group(0);
    match command.spawn() {
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(error) => Err(not_started(&error)),
    }
}

fn not_started(error: &io::Error) -> NotStarted {
    match error.kind() {
        ErrorKind::NotFound => NotStarted::NoProgram,
        ErrorKind::PermissionDenied => NotStarted::Denied,
        ErrorKind::ArgumentListTooLong => NotStarted::TooLong,
        _ => NotStarted::Broken(error.to_string()),
    }
}
