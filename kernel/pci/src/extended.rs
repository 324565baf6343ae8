//! Configuration space in memory: 4096 bytes of each function, where the firmware's MCFG says.

use acpi::{Mcfg, RequesterId};
use base::PhysAddr;
use hal::Mmio;
use hal::pci::PciAddress;
use mach::mem::map_device;

/// The group of buses that the ports reach.
const SEGMENT: u16 = 0;
/// Bytes of a function's space.
pub const EXTENDED_BYTES: u16 = 4096;

/// The space of a function, if this machine has it in memory.
pub fn map(function: PciAddress) -> Option<Mmio> {
    let table = Mcfg::read(mach::acpi::find(*b"MCFG")?)?;
    let at = table.space_of(SEGMENT, RequesterId(function.requester_id()))?;
    map_device(PhysAddr(at), EXTENDED_BYTES.into())
}
