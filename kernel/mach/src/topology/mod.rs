//! Which CPUs and I/O APICs the machine has, and where its old devices' interrupts arrive: from
//! ACPI's MADT, else from the older multiprocessor table, else one of each at the customary
//! place.

mod madt;
mod mp_table;

use acpi::{ISA_INTERRUPTS, IsaPin};
use base::CPUS_MAX;

use crate::sync::Lazy;

const IO_APICS_MAX: usize = 4;
const CUSTOMARY_IO_APIC: IoApicEntry = IoApicEntry {
    address: 0xfec0_0000,
    first_gsi: 0,
};

/// An I/O APIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IoApicEntry {
    /// Physical address of its registers.
    pub address: u64,
    /// The first global interrupt that it serves.
    pub first_gsi: u32,
}

/// What the firmware lists. What does not fit is left out.
#[derive(Debug)]
pub(crate) struct Topology {
    cpus: [u32; CPUS_MAX],
    cpu_count: usize,
    io_apics: [IoApicEntry; IO_APICS_MAX],
    io_apic_count: usize,
    isa: [IsaPin; ISA_INTERRUPTS],
}

/// The interval timer's interrupt on the ISA bus.
pub(crate) const TIMER: u8 = 0;
/// Where machines without ACPI connect it.
const TIMER_PIN: u8 = 2;

/// As PCs without ACPI connect their old devices.
const fn customary_isa() -> [IsaPin; ISA_INTERRUPTS] {
    let mut pins = identical_isa();
    pins[TIMER as usize] = IsaPin::customary(TIMER_PIN);
    pins
}

const fn identical_isa() -> [IsaPin; ISA_INTERRUPTS] {
    let mut pins = [IsaPin::customary(0); ISA_INTERRUPTS];
    let mut number = 0;
    while number < ISA_INTERRUPTS {
        pins[number] = IsaPin::customary(number as u8);
        number += 1;
    }
    pins
}

/// The machine's, as its firmware tells.
static TOPOLOGY: Lazy<Topology> = Lazy::new(|| {
    let mut topology = Topology {
        cpus: [0; CPUS_MAX],
        cpu_count: 0,
        io_apics: [CUSTOMARY_IO_APIC; IO_APICS_MAX],
        io_apic_count: 0,
        isa: customary_isa(),
    };
    let _found = madt::read(&mut topology) || mp_table::read(&mut topology);
    topology.io_apic_count = topology.io_apic_count.max(1);
    topology
});

/// The machine's topology, read when first asked for.
pub(crate) fn get() -> &'static Topology {
    &TOPOLOGY
}

impl Topology {
    /// APIC numbers of the CPUs that can be used, usually the boot CPU among them.
    pub(crate) fn cpus(&self) -> &[u32] {
        &self.cpus[..self.cpu_count]
    }

    /// The I/O APICs, at least one.
    pub(crate) fn io_apics(&self) -> &[IoApicEntry] {
        &self.io_apics[..self.io_apic_count]
    }

    /// Where interrupt `number` of the ISA bus arrives; `None` if there is no such.
    pub(crate) fn isa(&self, number: u8) -> Option<IsaPin> {
        self.isa.get(usize::from(number)).copied()
    }

    /// ACPI has a custom of its own, and overrides where the machine differs.
    pub(crate) fn isa_is_as_customary(&mut self) {
        self.isa = identical_isa();
    }

    pub(crate) fn lead_isa(&mut self, number: u8, pin: IsaPin) {
        if let Some(slot) = self.isa.get_mut(usize::from(number)) {
            *slot = pin;
        }
    }

    pub(crate) fn add_cpu(&mut self, apic_id: u32) {
        if let Some(slot) = self.cpus.get_mut(self.cpu_count) {
            *slot = apic_id;
            self.cpu_count += 1;
        }
    }

    pub(crate) fn add_io_apic(&mut self, entry: IoApicEntry) {
        if let Some(slot) = self.io_apics.get_mut(self.io_apic_count) {
            *slot = entry;
            self.io_apic_count += 1;
        }
    }
}
