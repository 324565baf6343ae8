//! From a trap to a handler and back.

use kernel::error::Restart;
use kernel::sched;
use kernel::task::{Flags, Thread, current};
use mach::trap::UserRegs;

use crate::call::{Call, Outcome};
use crate::errno::Errno;
use crate::{leave, missing, shortage, strace, table};

/// Runs the call that `regs` describe and puts its result into RAX.
pub fn syscall(regs: &mut UserRegs) {
    let thread = current();
    let outcome = if thread.flags().contains(Flags::TRACE) {
        strace::trace(
            &mut Call {
                thread: &thread,
                regs,
            },
            run,
        )
    } else {
        run(&mut Call {
            thread: &thread,
            regs,
        })
    };
    let interrupted = match outcome {
        Ok(value) => {
            regs.rax = value as u64;
            None
        }
        Err(errno) => {
            regs.rax = errno.encode();
            errno.restart()
        }
    };
    sched::run_softirqs();
    if !thread.flags().is_empty() || interrupted.is_some() {
        leave_slowly(&thread, regs, interrupted);
    }
}

#[cold]
fn leave_slowly(thread: &Thread, regs: &mut UserRegs, interrupted: Option<Restart>) {
    thread.clear_flags(Flags::RESTARTED);
    leave::before_user(thread, regs, interrupted);
}

fn run(call: &mut Call<'_>) -> Outcome {
    if mach::mem::is_short() && shortage::refuses(call.regs.orig_rax) {
        return Err(Errno::ENOMEM);
    }
    match table::lookup(call.regs.orig_rax) {
        Some(entry) => (entry.handler)(call),
        None => {
            missing::count_call(call.regs.orig_rax);
            Err(Errno::ENOSYS)
        }
    }
}
