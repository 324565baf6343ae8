//! PTRACE_GET_SYSCALL_INFO: `struct ptrace_syscall_info`.

use base::VirtAddr;
use linux_raw_sys::ptrace::{
    PTRACE_SYSCALL_INFO_ENTRY, PTRACE_SYSCALL_INFO_EXIT, PTRACE_SYSCALL_INFO_NONE,
    PTRACE_SYSCALL_INFO_SECCOMP,
};
use mm::user;
use task::ptrace::{CallStop, Event, Stop, Stopped, Tracee};

use linux_abi::call::Outcome;
use linux_abi::errno;

/// `AUDIT_ARCH_X86_64`.
const ARCHITECTURE: u64 = 0xc000_003e;
/// Words: kind and architecture, instruction, stack, then the call's number and arguments, or
/// its value and whether that is an error, then what a filter says of the call.
const WORDS: usize = 11;
/// How many bytes of them mean something.
const NONE_BYTES: usize = 24;
const ENTRY_BYTES: usize = 80;
const EXIT_BYTES: usize = 33;
const SECCOMP_BYTES: usize = 84;

/// Fills in as much as fits `len` bytes at `to`; the answer is how much there would be.
pub fn get(tracee: &Tracee, len: u64, to: VirtAddr) -> Outcome {
    let message = tracee.message();
    let (words, bytes) = tracee.with_stopped(|stopped| describe(stopped, message))?;
    let shown = bytes.min(len as usize);
    let bytes_of = words.map(u64::to_le_bytes);
    user::copy_out(bytes_of.as_flattened().get(..shown).unwrap_or(&[]), to)?;
    Ok(bytes)
}

fn describe(stopped: &Stopped, message: u64) -> ([u64; WORDS], usize) {
    let r = &stopped.regs;
    let head = |kind: u32| u64::from(kind) | ARCHITECTURE << 32;
    let with = |kind, rest: [u64; 7]| {
        let [a, b, c, d, e, f, g] = rest;
        [head(kind), r.rip, r.rsp, a, b, c, d, e, f, g, message]
    };
    let arguments = [r.orig_rax, r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
    match stopped.stop {
        Stop::Call(CallStop::Entry) => (with(PTRACE_SYSCALL_INFO_ENTRY, arguments), ENTRY_BYTES),
        Stop::Event(Event::Seccomp) => {
            (with(PTRACE_SYSCALL_INFO_SECCOMP, arguments), SECCOMP_BYTES)
        }
        Stop::Call(CallStop::Exit) => {
            let failed = u64::from(errno::is_error(r.rax));
            let answer = [r.rax, failed, 0, 0, 0, 0, 0];
            (with(PTRACE_SYSCALL_INFO_EXIT, answer), EXIT_BYTES)
        }
        _ => (with(PTRACE_SYSCALL_INFO_NONE, [0; 7]), NONE_BYTES),
    }
}
