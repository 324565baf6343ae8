//! From a program's call to its handler.
//!
//! The entry code calls [`syscall`] itself. The common case is a few instructions and no branch that a program could train: the
//! number picks a row of the table, one that is too high the row of calls that we lack.

use core::mem::MaybeUninit;

use mach::trap::{Reply, UserRegs};
use sched::Flags;
use task::ptrace;
use task::signal::{self, Info, Signal};
use task::{Thread, current};

use crate::{handlers, shortage, strace};
use linux_abi::call::{Call, Outcome};
use linux_abi::errno::Errno;
use linux_abi::restart::NO_CALL;
use linux_task::seccomp::verdict;

/// States of a thread in which a call takes more than to run it.
const SPECIAL: Flags = Flags::TRACE
    .union(Flags::RESTARTED)
    .union(Flags::CALL_STOPS)
    .union(Flags::STEP)
    .union(Flags::SECCOMP);

/// Runs the call that `regs` describe (`mach::trap::install`).
pub extern "C" fn syscall(regs: &mut UserRegs) -> Reply {
    let current = current();
    let thread: &Thread = &current;
    // One branch for both.
    let special = thread.flags().intersection(SPECIAL).bits() | mach::mem::shortage();
    let number = regs.orig_rax;
    let call = Call { thread, regs };
    let outcome = match special {
        0 => {
            thread.count_call();
            handlers::handler(number)(call)
        }
        _ => run_carefully(call),
    };
    Reply {
        unused: MaybeUninit::uninit(),
        value: match outcome {
            Ok(value) => value as u64,
            Err(errno) => errno.encode(),
        },
    }
}

/// Runs the call that could not go on with incomplete registers, now that all are there.
pub fn run_again(regs: &mut UserRegs) {
    let answer = syscall(regs).value;
    if answer != Errno::IN_FRAME.encode() {
        regs.rax = answer;
    }
}

/// With what is due only in some states of the thread, or while memory is short.
#[cold]
#[inline(never)]
fn run_carefully(call: Call<'_>) -> Outcome {
    let thread = call.thread;
    if !call.regs.is_complete() {
        call.regs.run_again();
        return Err(Errno::IN_FRAME);
    }
    let is_watched = thread
        .flags()
        .intersects(Flags::CALL_STOPS | Flags::STEP | Flags::SECCOMP);
    let outcome = match is_watched {
        true => run_watched(call),
        false => run_told(call),
    };
    thread.clear_flags(Flags::RESTARTED);
    outcome
}

/// Stops for the tracer before and after, which may change the number, the arguments and the
/// answer; in between filters have their say. A number that is none skips the call.
fn run_watched(call: Call<'_>) -> Outcome {
    let Call { thread, regs } = call;
    regs.rax = Errno::ENOSYS.encode();
    if thread.flags().contains(Flags::CALL_STOPS) {
        ptrace::call_entry(thread, regs);
    }
    if thread.flags().contains(Flags::EXIT) {
        return Err(Errno::EINTR);
    }
    if verdict::lets_pass(thread, regs) && regs.orig_rax != NO_CALL {
        let outcome = run_told(Call {
            thread,
            regs: &mut *regs,
        });
        regs.rax = match outcome {
            Ok(value) => value as u64,
            Err(Errno::IN_FRAME) => regs.rax,
            Err(errno) => errno.encode(),
        };
    }
    if thread.flags().contains(Flags::CALL_STOPS) {
        ptrace::call_exit(thread, regs);
    }
    if thread.flags().contains(Flags::STEP) {
        signal::force(thread, Info::kernel(Signal::TRAP));
    }
    Err(Errno::IN_FRAME)
}

/// Counts the call, and reports it where that is asked for.
fn run_told(call: Call<'_>) -> Outcome {
    call.thread.count_call();
    let handler = match mach::mem::is_short() {
        true => unless_short,
        false => handlers::handler(call.regs.orig_rax),
    };
    match call.thread.flags().contains(Flags::TRACE) {
        true => strace::trace(call, handler),
        false => handler(call),
    }
}

/// Looks at memory first.
fn unless_short(call: Call<'_>) -> Outcome {
    shortage::check(&call)?;
    let handler = handlers::handler(call.regs.orig_rax);
    handler(call)
}
