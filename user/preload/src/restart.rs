//! Whether a call that a signal's handler has interrupted goes on (SA_RESTART; signal(7)).
//!
//! # Problem
//! The kernel restarts its own calls if the handler was installed so. Ours waits by ppoll(2), which is never restarted and does
//! not tell which handler ran.
//!
//! # Idea
//! It was one of those that there are. So after an interruption the kernel is asked for the actions of all signals that this thread
//! lets in: if all that have a handler say SA_RESTART, the call goes on. That costs a call for each signal, where a handler ran anyway.
//!
//! Handlers of faults (SIGSEGV and its kin, SIGABRT) do not count: what raises them is no wait.
//!
//! Not here: programs with handlers of both kinds. Their calls say EINTR, which such a program expects of one of them.

use std::ffi::{c_int, c_ulong};
use std::ptr;

/// Signals are numbered from 1.
const SIGNALS_MAX: c_int = 64;
/// What a program raises by a mistake of its own.
const FAULTS: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    flags: c_ulong,
    restorer: usize,
    mask: u64,
}

/// Whether a call goes on that was interrupted just now.
#[cold]
pub fn goes_on() -> bool {
    let blocked = blocked();
    let can_run = |signal: &c_int| blocked & 1 << (signal - 1) == 0 && !FAULTS.contains(signal);
    let restarts = (1..=SIGNALS_MAX).filter(can_run).filter_map(restarts);
    restarts.fold(None, |all, one| Some(all.unwrap_or(true) && one)) == Some(true)
}

/// Whether a signal's handler has interrupted calls restarted; `None` without one.
fn restarts(signal: c_int) -> Option<bool> {
    let mut action = Action::default();
    let at = &raw mut action;
    // SAFETY: nothing is changed, and what there is goes to `action`, which is laid out as the kernel has it.
    let asked = unsafe {
        let none = ptr::null::<Action>();
        libc::syscall(libc::SYS_rt_sigaction, signal, none, at, size_of::<u64>())
    };
    let has_handler = asked == 0 && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.handler);
    has_handler.then_some(action.flags & libc::SA_RESTART as c_ulong != 0)
}

/// The signals that this thread does not let in, one bit each.
fn blocked() -> u64 {
    let mut mask = 0_u64;
    let at = &raw mut mask;
    // SAFETY: nothing is changed, and eight bytes go to `mask`.
    unsafe {
        let none = ptr::null::<u64>();
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            none,
            at,
            size_of::<u64>(),
        );
    }
    mask
}
