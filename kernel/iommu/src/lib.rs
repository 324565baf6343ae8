//! Which device reaches which memory: a domain for each function, on the machine's IOMMUs.
//!
//! # Problem
//! The DMA contract (`core/hal`) keeps *drivers* from telling a device a wrong address. A
//! device that errs by itself, or that a program drives, still reaches all memory.
//!
//! # Idea
//! Where the firmware describes IOMMUs, each PCI function gets a domain of its own that maps
//! nothing. A driver's memory says for whom it is (`mach::mem::DmaMemory`): what is for one
//! function, its rings, is mapped in that function's domain, and what is for all, packet
//! buffers, in the domains of all functions that have a driver ([`memory_of`]). Both happen
//! where memory is made, not for each packet: so an IOMMU costs a packet nothing but what
//! the hardware takes to translate.
//!
//! A device sees memory where it lies. Memory is somebody else's only after the unit has said
//! that it forgot it; if it does not say so, the memory is nobody's for good.
//!
//! A function without a driver may be lent to a program (`programs`), which says what it reaches.
//!
//! What is refused is counted, and named with device and address in the log, at a bounded
//! rate (`faults`). No one else notices.
//!
//! Lock order: the list of shared memory, then a unit.
//!
//! Interrupts are remapped where all units can (`interrupts`): a function raises its own.
//!
//! Not here: tables and registers (`drivers/vtd`), which unit is whose (`core/acpi`). Functions behind a bridge to conventional PCI, whose requests all
//! carry the bridge's name, reach nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod discover;
mod faults;
mod functions;
mod interrupts;
mod machine;
mod programs;
mod report;

pub use functions::Refused;
pub use programs::{LendError, Lent, LentError, can_lend, group_of, is_there, lend};
pub use report::write;
pub use vtd::{Pages, Rights};

use acpi::Dmar;
use mach::mem::{DmaMemory, remap_by};
use mach::sync::Once;
use pci::Function;

use crate::machine::Machine;

/// The machine's IOMMUs, if it has any: found once at boot.
static MACHINE: Once<Machine> = Once::new();

/// Puts all functions behind the IOMMUs that the firmware describes. Before any memory for
/// devices is made.
pub fn init() {
    let table = mach::acpi::find(*b"DMAR").and_then(Dmar::read);
    let Some(machine) = table.and_then(discover::machine) else {
        return;
    };
    let machine = MACHINE.call_once(|| machine);
    remap_by(machine);
    machine.start();
}

/// Memory for a function that gets a driver now: from here on it also reaches packet buffers.
pub fn memory_of(function: &Function) -> DmaMemory {
    let address = function.address();
    if let Some(machine) = MACHINE.get() {
        machine.drive(address);
    }
    DmaMemory::Of(address)
}
