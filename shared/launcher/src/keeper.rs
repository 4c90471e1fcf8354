//! The launcher of a command: this very program, started again for one command.
//!
//! It starts the command, confined, waits for its end, and leaves nothing of it behind: neither when the command ends, nor
//! when whoever ordered it asks for it, nor when that one is killed. All of these it learns from one socket. Whatever the command
//! starts stays its descendant: orphans come to the launcher, and it goes when it has none left.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::order::{COMMAND, Report};
pub(crate) use crate::socket::hand_over;
use crate::tree::Tree;
use crate::{socket, start};

/// How long processes may take to end once they are asked to, before they are killed.
const TERM_GRACE: Duration = Duration::from_secs(1);

/// Longest time between two looks for orphans that have ended.
const REAP_INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// First descriptor behind the standard streams.
const FIRST_OTHER: i32 = 3;

/// Whether the words behind a program's name make it a launcher: then it calls [`main`], before it does anything else.
pub fn is_meant(words: &[impl AsRef<OsStr>]) -> bool {
    words.first().is_some_and(|word| word.as_ref() == COMMAND)
}

/// Runs one command, as standard input, a socket, orders it. A program calls this before it does anything else.
pub fn main() -> ExitCode {
    match stand_aside().and_then(|()| serve(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))) {
        Ok(()) => ExitCode::SUCCESS,
        // Who ordered it is gone, or nobody did: nobody is left to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Leaves the terminal and the process group of whoever started it, and takes in orphans.
fn stand_aside() -> io::Result<()> {
    // Whoever started this program may have left files open in it, which no path would lead a command to.
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    // It leads a session already if whoever started it saw to that.
    let _ = rustix::process::setsid();
    // A name of its own: `pkill foot` means a foot, and leaves somebody here to clean up after it.
    let _ = rustix::thread::set_name(c"job-keeper");
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

fn serve(socket: UnixStream) -> io::Result<()> {
    let (order, standard) = socket::receive(&socket)?;
    let temporary = order.temporary.to_path();
    let started = start::folder(&temporary).and_then(|()| start::command(order, standard));
    let main = match started {
        Ok(main) => main,
        Err(why) => {
            start::remove(&temporary);
            return socket::report(&socket, &Report::NotStarted(why));
        }
    };
    // From here on there is something to clean up, whether or not anybody listens.
    let _ = socket::report(&socket, &Report::Started);
    let mut tree = Tree::of(main);
    let watched = watch(&socket, main, &mut tree);
    tree.end(TERM_GRACE);
    start::remove(&temporary);
    let told = tree.ending().map_or(Ok(()), |ending| socket::report(&socket, &Report::Ended(ending)));
    watched.and(told)
}

/// Waits until the command has ended, or nobody wants it any more.
fn watch(socket: &UnixStream, main: Pid, tree: &mut Tree) -> io::Result<()> {
    // It is not waited for yet, so this is it and no other.
    let exit = pidfd_open(main, PidfdFlags::empty())?;
    loop {
        if !tree.reap() || tree.ending().is_some() {
            return Ok(());
        }
        let mut events = [PollFd::new(socket, PollFlags::IN | PollFlags::RDHUP), PollFd::new(&exit, PollFlags::IN)];
        match poll(&mut events, Some(&REAP_INTERVAL)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Nothing more is to be said to a launcher: whatever comes is the end.
        if !events[0].revents().is_empty() {
            return Ok(());
        }
    }
}
