//! Locks the calling thread in, for good: no files, no network, no other processes.
//!
//! Two layers of the Linux kernel, so that a fault in one is not a way out: Landlock takes every right to files, TCP ports
//! and signals; a seccomp filter lets through the few system calls that computing and talking over two pipes need, and
//! answers all others with `EPERM`. No call of the list opens anything or makes memory executable.

use super::frame::Confinement;

/// Locks the calling thread in. Threads that it starts later are locked in too.
///
/// # Errors
/// Says why the filter could not be put in place; the thread may then be locked in by Landlock alone. A kernel without
/// Landlock is no error: the filter keeps every file out of reach by itself.
#[cfg(target_os = "linux")]
pub(super) fn confine() -> Result<Confinement, String> {
    let landlock = linux::renounce_files().map_err(|error| format!("landlock: {error}"))?;
    linux::filter_calls().map_err(|error| format!("seccomp: {error}"))?;
    Ok(if landlock { Confinement::Full } else { Confinement::FilterOnly })
}

/// This system offers nothing to lock a thread in with.
#[cfg(not(target_os = "linux"))]
pub(super) fn confine() -> Result<Confinement, String> {
    Ok(Confinement::None)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    /// The newest Landlock that this code was tried with; older kernels enforce what they know of it.
    const LANDLOCK: ABI = ABI::V6;

    /// What a worker may do without conditions. All of it exists on x86-64 and on aarch64.
    const ALLOWED: [i64; 28] = [
        // The two pipes.
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_ppoll,
        libc::SYS_close,
        // Memory.
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        // Time, chance and waiting.
        libc::SYS_clock_getres,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_gettimeofday,
        libc::SYS_nanosleep,
        libc::SYS_sched_yield,
        // Signals to oneself, and the way out.
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_membarrier,
    ];

    /// Gives up every right that Landlock knows. Answers whether this kernel has Landlock.
    pub(super) fn renounce_files() -> Result<bool, RulesetError> {
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .restrict_self()?;
        Ok(status.ruleset != RulesetStatus::NotEnforced)
    }

    /// Puts the filter of system calls in place.
    pub(super) fn filter_calls() -> Result<(), seccompiler::Error> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        // Memory, but none that can be executed: a fault of the engine must not become code.
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            let executable = libc::PROT_EXEC as u64;
            rules.insert(call, vec![when(2, SeccompCmpOp::MaskedEq(executable), 0)?]);
        }
        // Abort, but nobody else.
        rules.insert(libc::SYS_tgkill, vec![when(0, SeccompCmpOp::Eq, u64::from(std::process::id()))?]);
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Errno(libc::EPERM as u32),
            SeccompAction::Allow,
            std::env::consts::ARCH.try_into()?,
        )?;
        seccompiler::apply_filter(&BpfProgram::try_from(filter)?)
    }

    fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::Error> {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        Ok(SeccompRule::new(vec![condition])?)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::Command;

    /// Locks in a thread of its own: both layers hold for a thread and what it starts, so the test runner stays free.
    fn locked_in<T: Send + 'static>(lock: fn(), attempt: fn() -> std::io::Result<T>) -> Option<ErrorKind> {
        let thread = std::thread::spawn(move || {
            lock();
            attempt().err().map(|error| error.kind())
        });
        thread.join().unwrap()
    }

    fn files() {
        assert!(linux::renounce_files().unwrap(), "this kernel has no Landlock: the test says nothing");
    }

    fn calls() {
        linux::filter_calls().unwrap();
    }

    #[test]
    fn each_layer_alone_keeps_files_out_of_reach() {
        assert!(std::fs::read("/proc/self/status").is_ok(), "readable from outside");
        for lock in [files as fn(), calls] {
            assert_eq!(locked_in(lock, || std::fs::read("/proc/self/status")), Some(ErrorKind::PermissionDenied));
            assert_eq!(locked_in(lock, || std::fs::read_dir("/")), Some(ErrorKind::PermissionDenied));
            assert_eq!(locked_in(lock, || std::fs::write("/tmp/escaped", "x")), Some(ErrorKind::PermissionDenied));
        }
    }

    #[test]
    fn no_sockets_no_processes() {
        assert!(TcpListener::bind("127.0.0.1:0").is_ok(), "possible from outside");
        assert_eq!(locked_in(calls, || TcpListener::bind("127.0.0.1:0")), Some(ErrorKind::PermissionDenied));
        assert_eq!(locked_in(calls, || TcpStream::connect("127.0.0.1:9")), Some(ErrorKind::PermissionDenied));
        assert_eq!(locked_in(calls, || UdpSocket::bind("127.0.0.1:0")), Some(ErrorKind::PermissionDenied));
        assert_eq!(locked_in(calls, || Command::new("/bin/true").spawn()), Some(ErrorKind::PermissionDenied));
    }

    #[test]
    fn what_a_worker_needs_still_works() {
        let thread = std::thread::spawn(|| {
            assert_eq!(confine(), Ok(Confinement::Full));
            let large = vec![1_u8; 64 << 20];
            let now = std::time::Instant::now();
            std::thread::sleep(std::time::Duration::from_millis(1));
            (large.len(), now.elapsed().as_nanos() > 0, std::collections::HashMap::from([(1, 2)]).len())
        });
        assert_eq!(thread.join().unwrap(), (64 << 20, true, 1));
    }
}
