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
pub use context::{Context, begin_look, look_before_user};
pub use current::{Current, CurrentPart, CurrentSlot};
pub use fpu::{area_bytes as fpu_area_bytes, features as fpu_features};

pub(crate) use context::before_user_mode;

use arch::UserRegs;
use base::VirtAddr;

use crate::mem::Fault;

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

/// Stores the running thread's vector registers in a signal frame at `to`, aligned to 64:
/// [`fpu_area_bytes`] bytes in the processor's own format, of which the 48 that the
/// processor leaves to software and the reserved ones of the header stay as they were.
pub fn fpu_save_to_user(to: VirtAddr) -> Result<(), Fault> {
    context::with_current_fpu(|fpu, owner| fpu.save_to_user(owner, to))
}

/// Loads the running thread's vector registers from a signal frame at `from`, aligned to
/// 64: all, or only those of FXSAVE's format. A state that the processor refuses is a
/// fault, too.
pub fn fpu_load_from_user(from: VirtAddr, all: bool) -> Result<(), Fault> {
    context::with_current_fpu(|fpu, owner| fpu.load_from_user(owner, from, all))
}

/// Copies the running thread's vector registers into `image`, in the processor's own format
/// (XSAVE, not compacted; [`fpu_area_bytes`] bytes, or as many as fit).
pub fn fpu_read(image: &mut [u8]) {
    context::with_current_fpu(|fpu, _| fpu.read(image));
}

/// Gives the running thread the vector registers of `image`, of that length or of the 512 bytes
/// that FXSAVE writes; false, and nothing is changed, if the processor would refuse them.
pub fn fpu_write(image: &[u8]) -> bool {
    let mut is_taken = false;
    context::with_current_fpu(|fpu, _| is_taken = fpu.write(image));
    is_taken
}

/// Gives the running thread fresh vector registers (`execve`).
pub fn fpu_reset() {
    context::with_current_fpu(|fpu, _| fpu.reset());
}
