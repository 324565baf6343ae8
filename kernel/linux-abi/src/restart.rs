//! Making a call again: by the rules of signal(7) the program counter goes back to the
//! instruction, and the register of the answer gets the call's number again.

use mach::trap::UserRegs;
use sync::Restart;

use crate::call::{Call, Outcome};
use crate::errno::{self, Errno};

/// Length of `syscall` in bytes.
const SYSCALL_BYTES: u64 = 2;

/// What a frame has in `orig_rax` that a trap made, and not a call.
pub const NO_CALL: u64 = u64::MAX;

/// The rule for the call that these registers say was interrupted. A tracer may change them at
/// each stop.
pub fn interrupted_call(regs: &UserRegs) -> Option<Restart> {
    match regs.orig_rax {
        NO_CALL => None,
        _ => errno::restart(regs.rax),
    }
}

/// The call is made again when the program goes on.
pub fn restart(regs: &mut UserRegs) {
    regs.rax = regs.orig_rax;
    regs.rip = regs.rip.wrapping_sub(SYSCALL_BYTES);
}

/// The call is made again after the signal's handler, whatever that was installed with
/// (Linux's ERESTARTNOINTR).
pub fn always(call: Call<'_>) -> Outcome {
    match call.regs.is_complete() {
        true => restart(call.regs),
        false => call.regs.run_again(),
    }
    Err(Errno::IN_FRAME)
}
