//! Which function raises which interrupt: an entry of its unit's table for each vector.
//!
//! A message that names a vector and no entry is refused, so all must name entries or none: interrupts
//! are remapped where every unit can, and the one I/O APIC is behind a unit. What else raises
//! interrupts (units themselves, other CPUs) passes by the units.

use core::sync::atomic::Ordering::Relaxed;

use mach::irq::{self, Destination, InterruptRemapper, Source};
use mach::klog;
use vtd::{Interrupt, message_of};

use crate::machine::Machine;

/// Remaps interrupts, if that can be. Before any function is told a message.
pub fn start(machine: &'static Machine) {
    let can = |(_, remapper): (_, &crate::machine::Remapper)| {
        remapper.unit.lock().capabilities().remaps_interrupts
    };
    let is_one = machine.pins.is_some() && irq::controllers() == 1;
    if !is_one || !machine.units().all(can) {
        klog!("iommu: interrupts pass as they are");
        return;
    }
    for (_, remapper) in machine.units() {
        match remapper.unit.lock().remap_interrupts() {
            Ok(()) => remapper.remaps_interrupts.store(true, Relaxed),
            Err(error) => klog!(
                "iommu: the unit at {:#x} passes interrupts as they are: {error:?}",
                remapper.registers
            ),
        }
    }
    irq::remap_by(machine);
}

impl Machine {
    /// The unit behind which a source is, and its number there.
    fn source(&self, source: Source) -> Option<(usize, u16)> {
        match source {
            Source::Function(address) => {
                let function = self.find(address)?;
                Some((function.unit, address.requester_id()))
            }
            Source::Pins => self.pins.map(|(place, id)| (place, id.0)),
        }
    }
}

impl InterruptRemapper for Machine {
    fn lead(&self, source: Source, to: Destination) -> Option<(u64, u32)> {
        let (place, number) = self.source(source)?;
        let remapper = self.unit(place)?;
        if !remapper.remaps_interrupts.load(Relaxed) {
            return None;
        }
        let interrupt = Interrupt {
            vector: to.vector,
            is_nmi: to.is_nmi,
            is_level: to.is_level,
            apic_id: u8::try_from(to.apic_id).ok()?,
            source: number,
        };
        let led = remapper.unit.lock().lead(to.vector, interrupt);
        if let Err(error) = led {
            klog!("iommu: vector {} of {number:#x}: {error:?}", to.vector);
        }
        let message = message_of(to.vector);
        Some((message.address, message.data))
    }
}
