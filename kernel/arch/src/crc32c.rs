//! CRC-32C by the processor's instruction (Intel SDM volume 2, CRC32).
//!
//! Invariant **present**: [`fold_present`] leaves this module only where CPUID names the instruction.

use core::arch::asm;

use crate::cpuid;

/// Bytes of a turn of the loop.
const TURN_BYTES: usize = 64;

/// Goes on with a CRC-32C's register by bytes; `None` if the processor has no instruction for it.
pub fn fold() -> Option<fn(u32, &[u8]) -> u32> {
    cpuid::has_crc32().then_some(fold_present)
}

fn fold_present(register: u32, bytes: &[u8]) -> u32 {
    let (turns, rest) = bytes.as_chunks::<TURN_BYTES>();
    let (words, rest) = rest.as_chunks::<8>();
    let mut crc = u64::from(register);
    if !turns.is_empty() {
        // SAFETY: present; reads the turns, of which there is at least one.
        unsafe {
            asm!(
                "2:",
                "crc32 {crc}, qword ptr [{at}]",
                "crc32 {crc}, qword ptr [{at} + 8]",
                "crc32 {crc}, qword ptr [{at} + 16]",
                "crc32 {crc}, qword ptr [{at} + 24]",
                "crc32 {crc}, qword ptr [{at} + 32]",
                "crc32 {crc}, qword ptr [{at} + 40]",
                "crc32 {crc}, qword ptr [{at} + 48]",
                "crc32 {crc}, qword ptr [{at} + 56]",
                "add {at}, 64",
                "dec {left}",
                "jnz 2b",
                crc = inout(reg) crc,
                at = inout(reg) turns.as_ptr() => _,
                left = inout(reg) turns.len() => _,
                options(nostack, readonly),
            );
        }
    }
    for word in words {
        let word = u64::from_le_bytes(*word);
        // SAFETY: present; touches registers only.
        unsafe {
            asm!("crc32 {}, {}", inout(reg) crc, in(reg) word, options(pure, nomem, nostack, preserves_flags));
        }
    }
    for &byte in rest {
        // SAFETY: as above.
        unsafe {
            asm!("crc32 {:r}, {}", inout(reg) crc, in(reg_byte) byte, options(pure, nomem, nostack, preserves_flags));
        }
    }
    crc as u32
}
