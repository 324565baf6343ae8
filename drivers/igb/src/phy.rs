//! The PHY, as far as a link needs it: clause 22 registers behind MDIC (section 3.5).
//!
//! A PHY negotiates by itself after power-up, and a reset of the card leaves it alone; so it
//! is told to negotiate only where there is no link yet. QEMU's card has none until it is
//! told.

use hal::Registers;
use intel::link::{STATUS, STATUS_LINK_UP};

use crate::registers::MDIC;

/// The internal PHY's address.
const ADDRESS: u32 = 1 << 21;
const WRITE: u32 = 0b01 << 26;
const READY: u32 = 1 << 28;
/// Register 0, control (IEEE 802.3, 22.2.4.1): a gigabit, both directions, negotiate, now.
const CONTROL: u32 = 0 << 16;
const NEGOTIATE_ANEW: u32 = 1 << 6 | 1 << 8 | 1 << 9 | 1 << 12;
/// An access takes 64 microseconds; so many reads of MDIC take longer.
const READS_MAX: u32 = 10_000;

/// Negotiates with the other end, unless that has happened. Its result comes later, as
/// a change of the link.
pub(crate) fn negotiate(registers: &impl Registers) {
    if registers.read32(STATUS) & STATUS_LINK_UP != 0 {
        return;
    }
    registers.write32(MDIC, WRITE | ADDRESS | CONTROL | NEGOTIATE_ANEW);
    let is_ready = || registers.read32(MDIC) & READY != 0;
    let _ = (0..READS_MAX).any(|_| is_ready());
}
