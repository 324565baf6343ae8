//! What a CPU does while it has no thread to run: it zeroes memory ahead, and halts.

use crate::{cpu, mem};

/// Opens interrupts, halts until one was handled, closes them again. While there is memory to zero
/// ahead, does a little of that instead of the halt. No interrupt is lost between the caller's last
/// look at its work and the halt. The caller holds no lock. The CPU touches no user address
/// meanwhile, and is asked to leave the program's table if some of it goes; returns whether it
/// still has that.
pub fn wait_for_interrupt() -> bool {
    mem::rest();
    if mem::idle() {
        cpu::take_interrupts();
    } else {
        // SAFETY: the IDT is loaded before the kernel starts, and by **Closed** no lock is
        // held that a handler could want.
        unsafe { arch::instr::enable_and_halt() }
    }
    let has_table = mem::wake();
    cpu::serve();
    has_table
}
