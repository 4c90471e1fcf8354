//! The worker process: the `footbridge` binary, started with [`ARGUMENT`]. One thread, blocking, two pipes.

use std::cell::RefCell;
use std::io::{self, StdinLock, StdoutLock};
use std::process::ExitCode;
use std::rc::Rc;

use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};

use super::engine::Engine;
use super::frame::{self, Ask, Confinement, Done, FromWorker, HostError, Level, Thrown, ToWorker};
use super::host::Host;
use super::limits::NICE;
use super::sandbox::confine;

/// First argument of a worker process. Not for people.
pub const ARGUMENT: &str = "script-worker";
/// Argument of a worker that may run where the kernel does not lock it in.
pub(super) const ALLOW_UNSANDBOXED: &str = "--allow-unsandboxed";

/// Runs scripts that come in on standard input until it ends. The program calls this before it does anything else.
pub fn main() -> ExitCode {
    let may_run_free = std::env::args_os().any(|argument| argument == ALLOW_UNSANDBOXED);
    match serve(may_run_free) {
        Ok(()) => ExitCode::SUCCESS,
        // The hub went away in the middle of something, or speaks another language: nobody is left to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Steps back behind the hub, leaves no memory image behind, and dies with it.
fn step_back() {
    // Where one of these is refused, scripts run all the same.
    let _ = rustix::process::nice(NICE);
    let _ = rustix::process::setrlimit(
        rustix::process::Resource::Core,
        rustix::process::Rlimit { current: Some(0), maximum: Some(0) },
    );
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

fn serve(may_run_free: bool) -> io::Result<()> {
    step_back();
    let pipe = Rc::new(Pipe { input: RefCell::new(io::stdin().lock()), output: RefCell::new(io::stdout().lock()) });
    let confinement = match confine() {
        Ok(confinement) => confinement,
        Err(_) if may_run_free => Confinement::None,
        Err(reason) => return pipe.say(&FromWorker::Refused(reason)),
    };
    loop {
        let engine = Engine::new();
        pipe.say(&FromWorker::Ready(confinement))?;
        let (deadline, run) = match pipe.hear()? {
            Some(ToWorker::Run(deadline, run)) => (deadline, run),
            Some(ToWorker::Answer(_)) => return Err(io::ErrorKind::InvalidData.into()),
            None => return Ok(()),
        };
        let done = match engine {
            Ok(engine) => engine.run(&run, deadline.here(), pipe.clone()),
            Err(_) => Done::Threw(Thrown::out_of_memory()),
        };
        pipe.say(&FromWorker::Done(done))?;
    }
}

/// The way to the hub and back.
struct Pipe {
    input: RefCell<StdinLock<'static>>,
    output: RefCell<StdoutLock<'static>>,
}

impl Pipe {
    fn say(&self, message: &FromWorker) -> io::Result<()> {
        frame::write(&mut *self.output.borrow_mut(), message)
    }

    fn hear(&self) -> io::Result<Option<ToWorker>> {
        frame::read(&mut *self.input.borrow_mut())
    }
}

impl Host for Pipe {
    fn ask(&self, ask: Ask) -> Result<Raw, HostError> {
        match self.say(&FromWorker::Ask(ask)).and_then(|()| self.hear()) {
            Ok(Some(ToWorker::Answer(answer))) => answer,
            // Nobody waits for this script any more.
            Ok(None) => std::process::exit(0),
            Ok(Some(ToWorker::Run(..))) | Err(_) => Err(HostError {
                code: ErrorCode::Internal,
                message: "the hub did not answer".to_owned(),
                hint: None,
                outcome: Outcome::Unknown,
            }),
        }
    }

    fn log(&self, level: Level, line: String) {
        // A line that does not get through is no reason to fail the script.
        let _ = self.say(&FromWorker::Log(level, line));
    }
}
