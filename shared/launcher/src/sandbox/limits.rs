//! Limits of other processes: Landlock keeps a command from signalling them, and lets it set their limits.
//!
//! A process of the same user whose limit of open files, of file sizes or of processor time is put to nothing ends at its
//! next step, so that this would be a signal by another name. The filter refuses to set the limits of a process that is
//! given by its number; everybody's own go by 0, and to look at limits is free. All other system calls pass.

use seccompiler::sock_filter;

/// `prlimit64` by what the kernel calls the architecture (`AUDIT_ARCH_…`): a processor runs programs of several. All of
/// them have the lower half of a number first.
const CALLS: [(u32, u32); 6] = [
    // x86-64, its form with short pointers, and x86.
    (0xc000_003e, 302),
    (0xc000_003e, 0x4000_0000 | 302),
    (0x4000_0003, 340),
    // ARM, with 64 and with 32 bits.
    (0xc000_00b7, 261),
    (0x4000_0028, 369),
    // RISC-V.
    (0xc000_00f3, 261),
];

/// Where a filter finds what it looks at (`struct seccomp_data`), in bytes.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const PROCESS: u32 = 16;
const NEW_LIMIT_LOW: u32 = 32;
const NEW_LIMIT_HIGH: u32 = 36;

/// `SECCOMP_RET_ALLOW`.
const PASS: u32 = 0x7fff_0000;
/// `SECCOMP_RET_ERRNO` with `EPERM`.
const REFUSE: u32 = 0x0005_0000 | 1;

/// Keeps the calling thread, and all that it starts, from setting the limits of others.
pub(super) fn leave_alone() -> Result<(), seccompiler::Error> {
    let mut program: Vec<sock_filter> = CALLS.into_iter().flat_map(|(of, call)| block(of, call)).collect();
    program.push(answer(PASS));
    seccompiler::apply_filter(&program)
}

/// Refuses one system call, and goes on behind itself for every other one.
fn block(architecture: u32, call: u32) -> [sock_filter; 11] {
    [
        load(ARCHITECTURE),
        skip(architecture, 0, 9),
        load(NUMBER),
        skip(call, 0, 7),
        load(PROCESS),
        skip(0, 5, 0),
        load(NEW_LIMIT_LOW),
        skip(0, 0, 2),
        load(NEW_LIMIT_HIGH),
        skip(0, 1, 0),
        answer(REFUSE),
    ]
}

/// Takes up four bytes (`BPF_LD | BPF_W | BPF_ABS`).
fn load(at: u32) -> sock_filter {
    sock_filter { code: 0x20, jt: 0, jf: 0, k: at }
}

/// Skips so many instructions if what was taken up is this, else so many (`BPF_JMP | BPF_JEQ | BPF_K`).
fn skip(value: u32, if_so: u8, else_so: u8) -> sock_filter {
    sock_filter { code: 0x15, jt: if_so, jf: else_so, k: value }
}

/// Ends with an answer (`BPF_RET | BPF_K`).
fn answer(value: u32) -> sock_filter {
    sock_filter { code: 0x06, jt: 0, jf: 0, k: value }
}
