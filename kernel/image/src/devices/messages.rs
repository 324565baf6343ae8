//! A device's messages (MSI-X), which the first CPU takes.

use base::CpuId;
use hal::pci::{MsiMessage, Msix};
use kernel::sched::{Softirq, raise};
use mach::irq;
use mach::pci::Function;

/// Lets this entry of the device raise `source`; all others stay silent.
pub fn route(function: &Function, entry: u16, source: Softirq) -> Option<()> {
    let msix = Msix::new(function).ok()?;
    let vector = irq::allocate(raise_numbered, source as usize)?;
    let (address, data) = irq::msi_message(vector, CpuId(0));
    msix.route(entry, MsiMessage { address, data }).ok()
}

/// An interrupt handler, whose argument is the source's number.
pub fn raise_numbered(source: usize) {
    if let Some(source) = Softirq::from_number(source) {
        raise(source);
    }
}
