//! A unit that is simulated, caches and all, and what the driver makes of it.

mod faults;
mod interrupts;
mod mapping;
mod model;
mod oracle;
mod start;

use hal::pci::PciAddress;
use hal::sim::SimMemory;

use crate::{DomainId, Unit};
use model::{Model, SimRegisters};

/// A unit that translates, and the model behind it.
struct Rig {
    model: Model,
    unit: Unit<SimMemory, SimRegisters>,
}

impl Rig {
    fn new(model: Model) -> Self {
        let memory = model.memory();
        let mut unit = Unit::open(model.registers(), memory).expect("the unit works");
        unit.translate().expect("it translates");
        Self { model, unit }
    }

    /// A function with a domain of its own.
    fn attach(&mut self, function: PciAddress) -> DomainId {
        let domain = self.unit.new_domain().expect("a domain");
        self.unit.attach(function, domain).expect("attached");
        domain
    }
}

fn function(bus: u8, device: u8, function: u8) -> PciAddress {
    PciAddress {
        bus,
        device,
        function,
    }
}
