//! Reading the data page.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::field;

const PAGE_BYTES: usize = 4096;

fn word(index: usize) -> &'static AtomicU64 {
    let image: *const u8;
    // SAFETY: an address is computed. The symbol is the linker's, for the image's start.
    unsafe {
        asm!("lea {}, [rip + __ehdr_start]", out(reg) image,
             options(nomem, nostack, preserves_flags, pure));
    }
    // SAFETY: **Data**.
    unsafe { &*image.sub(PAGE_BYTES).cast::<AtomicU64>().add(index) }
}

fn read(index: usize) -> u64 {
    word(index).load(Ordering::Relaxed)
}

/// The counter, read after everything before it.
#[inline(always)]
fn ticks() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reading the counter has no effect.
    unsafe { asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack)) };
    high << 32 | low
}

/// Nanoseconds of a line at this moment and the wall clock's offset, from one state of the
/// page; `None` if the kernel must be asked.
#[inline(always)]
fn consistent(line: usize) -> Option<(u64, u64)> {
    loop {
        let before = word(field::SEQUENCE).load(Ordering::Acquire);
        let usable = read(field::CLOCK_USABLE);
        let elapsed = ticks().wrapping_sub(read(line + field::BASE_TICKS));
        let scaled = u128::from(elapsed) * u128::from(read(line + field::MULTIPLIER));
        let offset = read(field::WALL_OFFSET);
        let nanos = ((scaled >> 32) as u64).wrapping_add(read(line + field::BASE_NANOS));
        core::sync::atomic::fence(Ordering::Acquire);
        if before & 1 == 0 && before == read(field::SEQUENCE) {
            return (usable != 0).then_some((nanos, offset));
        }
        core::hint::spin_loop();
    }
}

/// Nanoseconds since the machine's start.
#[inline(always)]
pub fn monotonic() -> Option<u64> {
    consistent(field::MONOTONIC).map(|(nanos, _)| nanos)
}

/// The same as nobody corrected them.
#[inline(always)]
pub fn raw() -> Option<u64> {
    consistent(field::RAW).map(|(nanos, _)| nanos)
}

/// Nanoseconds since 1970.
#[inline(always)]
pub fn wall() -> Option<u64> {
    consistent(field::MONOTONIC).map(|(nanos, offset)| nanos.wrapping_add(offset))
}

/// The numbers of the CPU that runs this and of its node.
pub fn cpu() -> Option<(u32, u32)> {
    let number: u64;
    match read(field::CPU_BY) {
        // SAFETY: the kernel says that the processor has the instruction.
        field::CPU_BY_RDPID => unsafe {
            asm!("rdpid {}", out(reg) number, options(nomem, nostack, preserves_flags));
        },
        // SAFETY: as above.
        field::CPU_BY_RDTSCP => unsafe {
            asm!("rdtscp", out("rcx") number, out("rax") _, out("rdx") _,
                 options(nomem, nostack, preserves_flags));
        },
        _ => return None,
    }
    let number = number as u32;
    let node = number >> field::NODE_SHIFT;
    Some((number - (node << field::NODE_SHIFT), node))
}
