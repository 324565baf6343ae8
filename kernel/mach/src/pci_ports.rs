//! Configuration mechanism #1 of PCI: 256 bytes of each function, behind two ports.
//!
//! The ports (PCI Local Bus 3.0, section 3.2.2.3.2) exist on every PC chipset. Who is there
//! and what it is for: `kernel/pci`.
//!
//! Invariant **Ports**: the address and data ports reach configuration space only, and
//! `CONFIG` is held across the two accesses of each transfer.

use hal::pci::PciAddress;

use crate::sync::Spin;

const ADDRESS_PORT: u16 = 0xcf8;
const DATA_PORT: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;

/// The two ports of configuration space, of which there is one pair.
static CONFIG: Spin<()> = Spin::new(());

fn select(function: PciAddress, offset: u8) -> u32 {
    let place = u32::from(function.requester_id()) << 8;
    ENABLE | place | u32::from(offset & 0xfc)
}

/// Reads the word at `offset`, rounded down to a multiple of four; ones if there is no function.
pub fn read(function: PciAddress, offset: u8) -> u32 {
    let _held = CONFIG.lock();
    // SAFETY: **Ports**.
    unsafe {
        arch::instr::out32(ADDRESS_PORT, select(function, offset));
        arch::instr::in32(DATA_PORT)
    }
}

/// Writes the word at `offset`, rounded down to a multiple of four.
pub fn write(function: PciAddress, offset: u8, value: u32) {
    let _held = CONFIG.lock();
    // SAFETY: **Ports**; a device reaches memory only by the addresses its driver
    // gives it.
    unsafe {
        arch::instr::out32(ADDRESS_PORT, select(function, offset));
        arch::instr::out32(DATA_PORT, value);
    }
}
