//! From a trap to a handler and back.

use kernel::task::current;
use mach::trap::UserRegs;

use crate::call::{Call, Outcome};
use crate::errno::Errno;
use crate::{missing, table};

/// Runs the call that `regs` describe and puts its result into RAX.
pub fn syscall(regs: &mut UserRegs) {
    let thread = current();
    let number = regs.orig_rax;
    let outcome = run(&mut Call { thread: &thread, regs });
    regs.rax = match outcome {
        Ok(value) => value as u64,
        Err(errno) => errno.encode(),
    };
    let _ = number;
}

fn run(call: &mut Call<'_>) -> Outcome {
    match table::lookup(call.regs.orig_rax) {
        Some(entry) => (entry.handler)(call),
        None => {
            missing::count_call(call.regs.orig_rax);
            Err(Errno::ENOSYS)
        }
    }
}
