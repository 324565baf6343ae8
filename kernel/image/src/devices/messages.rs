//! A device's messages (MSI-X): entry `n` is the interrupt of the queues that CPU `n` owns.

use base::CpuId;
use hal::pci::{MsiMessage, Msix};
use mach::irq;
use mach::pci::Function;
use sched::{Softirq, raise_numbered};

/// Lets entry `n` of the device raise `source` on CPU `n`, for so many CPUs, as far as
/// there are entries and vectors. Says for how many.
pub fn route(function: &Function, source: Softirq, cpus: u16) -> u16 {
    let Ok(msix) = Msix::new(function) else {
        return 0;
    };
    let is_routed = |&entry: &u16| route_entry(&msix, entry, source).is_some();
    (0..cpus).take_while(is_routed).count() as u16
}

fn route_entry(msix: &Msix, entry: u16, source: Softirq) -> Option<()> {
    let vector = irq::allocate(raise_numbered, source as usize)?;
    let (address, data) = irq::msi_message(vector, CpuId(entry.into()));
    msix.route(entry, MsiMessage { address, data }).ok()
}
