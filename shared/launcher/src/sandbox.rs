//! What the kernel lets threads and programs reach: a mistake in the rules above it is still caught there.
//!
//! A thread restricts itself, for good, and everything it starts inherits that. Only what is granted can be opened; a path
//! is judged by where it leads, so links lead nowhere new. What a path is called, and whether it is there, stays visible.

#[cfg(target_os = "linux")]
mod capabilities;
mod grant;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::path::PathBuf;

pub use grant::{Bytes, Grant, Right};

/// Why a thread could not be restricted. Nothing may run on it then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The kernel has no such means, or too little of them.
    #[error("this system cannot confine them: it takes Linux 6.2 or newer with Landlock enabled")]
    Unsupported,
    /// The kernel refused.
    #[error("the kernel refused to confine them: {0}")]
    Refused(String),
}

/// What holds on a restricted thread beside the files, which always hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confined {
    /// Abstract sockets and processes outside of the sandbox are out of reach (Linux 6.12). Commands alone ask for it.
    pub scoped: bool,
    /// So are sockets that lie in the file system.
    pub sockets: bool,
}

/// Restricts the calling thread, for good, to what lies below the roots: to read it, and with `write` to change it. For
/// threads of file tools: they execute nothing, and what they start is restricted as they are.
///
/// # Errors
/// [`SandboxError`]; the thread must then not be used.
pub fn restrict_this_thread(roots: &[PathBuf], write: bool) -> Result<Confined, SandboxError> {
    let right = if write { Right::Change } else { Right::Read };
    let grants: Vec<Grant> = roots.iter().map(|root| Grant::new(root.clone(), right)).collect();
    apply(&grants, false)
}

/// Restricts the calling thread, and the command that it starts, to what is granted; other processes, and the sockets that
/// they listen on, are out of reach where the kernel knows how, and so are the limits of other processes. Of root's powers only those over files go through.
///
/// # Errors
/// As [`restrict_this_thread`].
pub fn restrict_for_command(grants: &[Grant]) -> Result<Confined, SandboxError> {
    apply(grants, true)
}

/// What this system can do. Looks by restricting a thread that ends at once.
///
/// # Errors
/// As [`restrict_this_thread`].
pub fn probe() -> Result<Confined, SandboxError> {
    on_a_thread(|| restrict_for_command(&[]))
}

fn on_a_thread(restrict: fn() -> Result<Confined, SandboxError>) -> Result<Confined, SandboxError> {
    std::thread::spawn(restrict).join().unwrap_or(Err(SandboxError::Unsupported))
}

#[cfg(target_os = "linux")]
fn apply(grants: &[Grant], scoped: bool) -> Result<Confined, SandboxError> {
    if scoped {
        capabilities::renounce().map_err(|error| SandboxError::Refused(error.to_string()))?;
    }
    let confined = landlock::apply(grants, scoped)?;
    if scoped {
        limits::leave_alone().map_err(|error| SandboxError::Refused(error.to_string()))?;
    }
    Ok(confined)
}

/// Nothing of the kind is here.
#[cfg(not(target_os = "linux"))]
fn apply(_: &[Grant], _: bool) -> Result<Confined, SandboxError> {
    Err(SandboxError::Unsupported)
}
