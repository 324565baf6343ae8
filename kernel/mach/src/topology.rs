//! Which CPUs and I/O APICs the machine has: from ACPI's MADT, else from the older
//! multiprocessor table, else one of each at the customary place.

use arch::layout::MAX_CPUS;

use crate::sync::Lazy;
use crate::{acpi, mp_table};

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
    cpus: [u32; MAX_CPUS],
    cpu_count: usize,
    io_apics: [IoApicEntry; IO_APICS_MAX],
    io_apic_count: usize,
}

static TOPOLOGY: Lazy<Topology> = Lazy::new(|| {
    let mut topology = Topology {
        cpus: [0; MAX_CPUS],
        cpu_count: 0,
        io_apics: [CUSTOMARY_IO_APIC; IO_APICS_MAX],
        io_apic_count: 0,
    };
    let _found = acpi::read_madt(&mut topology) || mp_table::read(&mut topology);
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
