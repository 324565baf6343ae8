//! What a CPU does while it has no thread to run: it zeroes memory ahead, and halts.

use crate::{cpu, mem};

/// Opens interrupts, halts until one was handled, closes them again. While there is
/// memory to zero ahead, does a little of that instead of the halt.
///
/// No interrupt is lost between the caller's last look at its work and the halt. The
/// caller holds no lock. Nobody interrupts the CPU for a TLB meanwhile: it touches no
/// user address.
pub fn wait_for_interrupt() {
    mem::rest();
    if mem::idle() {
        cpu::take_interrupts();
    } else {
        // SAFETY: the IDT is loaded before the kernel starts, and by **Closed** no lock is
        // held that a handler could want.
        unsafe { arch::instr::enable_and_halt() }
    }
    mem::wake();
    cpu::serve();
}
