//! Memory types (Intel SDM volume 3, 12.12) and the cache.

use core::arch::asm;

use crate::msr;

const UNCACHED: u64 = 0;
const WRITE_COMBINING: u64 = 1;
const WRITE_BACK: u64 = 6;
const UNCACHED_UNLESS_MTRR: u64 = 7;
const LINE_BYTES: usize = 64;

/// The types that the PCD and PWT bits of an entry choose; the PAT bit is left 0. The
/// second is write-through after reset, which nobody wants.
const TYPES: [u64; 4] = [WRITE_BACK, WRITE_COMBINING, UNCACHED_UNLESS_MTRR, UNCACHED];

/// Sets this CPU's types. All CPUs must agree.
///
/// # Safety
/// No entry that the CPU may have used has PWT set without PCD.
pub unsafe fn init() {
    let half = TYPES.iter().rev().fold(0, |word, kind| word << 8 | kind);
    // SAFETY: every 64-bit processor has the register, and the values are defined.
    unsafe { msr::write(msr::PAT, half << 32 | half) };
}

/// Writes back what the caches hold of `bytes` bytes at `start` and forgets it.
///
/// # Safety
/// The range is mapped.
pub unsafe fn flush(start: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(LINE_BYTES) {
        // SAFETY: the caller vouches for the line; no content changes.
        unsafe {
            asm!("clflush [{}]", in(reg) start.wrapping_add(offset), options(nostack, preserves_flags));
        }
    }
    // SAFETY: orders the flushes before what follows.
    unsafe { asm!("mfence", options(nostack, preserves_flags)) };
}
