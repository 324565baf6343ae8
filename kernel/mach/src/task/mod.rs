//! Threads as the machine sees them: a kernel stack and registers.
//!
//! [`Context`] is what is saved of a thread while it does not run; [`CurrentSlot`] is how
//! the kernel finds the thread that does; [`enter_user`] goes to user mode for the first
//! time. Vector registers are saved when a thread leaves its CPU after it was in user
//! mode, and loaded on its way back only if the CPU holds somebody else's.

mod context;
mod current;
mod fpu;

pub use crate::mem::STACK_BYTES;
pub use context::Context;
pub use current::{Current, CurrentSlot};
pub use fpu::{BadState, area_bytes as fpu_area_bytes, features as fpu_features};

pub(crate) use context::before_user_mode;

use arch::UserRegs;

/// Leaves the kernel for the program described by `regs`; whatever is on this thread's
/// kernel stack is forgotten.
pub fn enter_user(regs: &UserRegs) -> ! {
    let mut regs = *regs;
    regs.sanitise();
    before_user_mode();
    // SAFETY: the registers are sanitised and the caller's thread runs on its own kernel
    // stack, whose top the area names (the crate `arch`'s invariant **Stack**).
    unsafe { arch::trap::enter_user(&regs) }
}

/// Stores the running thread's vector registers for a signal frame.
///
/// Writes [`fpu_area_bytes`] bytes in the processor's own format; false if `to` is shorter.
pub fn fpu_save_to(to: &mut [u8]) -> bool {
    context::with_current_fpu(|fpu| fpu.save_to(to))
}

/// Loads the running thread's vector registers from a signal frame.
pub fn fpu_restore_from(from: &[u8]) -> Result<(), BadState> {
    context::with_current_fpu(|fpu| fpu.restore_from(from))
}

/// Gives the running thread fresh vector registers (`execve`).
pub fn fpu_reset() {
    context::with_current_fpu(|fpu| fpu.reset());
}
