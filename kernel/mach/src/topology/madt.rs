//! The CPUs and I/O APICs that ACPI's MADT lists, and where old devices' interrupts arrive
//! (ACPI 6.5, 5.2.12).

use ::acpi::{IsaPin, SOURCE_OVERRIDE, structures, word};

use super::{IoApicEntry, Topology};
use crate::acpi;

const ENTRIES: usize = 44;
const LOCAL_APIC: u8 = 0;
const IO_APIC: u8 = 1;
const LOCAL_X2APIC: u8 = 9;

/// Adds what the table lists; false if there is none.
pub(crate) fn read(topology: &mut Topology) -> bool {
    let Some(table) = acpi::find(*b"APIC") else {
        return false;
    };
    topology.isa_is_as_customary();
    for (kind, entry) in structures(table, ENTRIES) {
        read_entry(kind, entry, topology);
    }
    true
}

fn read_entry(kind: u8, entry: &[u8], topology: &mut Topology) {
    match kind {
        LOCAL_APIC if enabled(entry, 4) => topology.add_cpu(u32::from(entry[3])),
        LOCAL_X2APIC if enabled(entry, 8) => {
            topology.add_cpu(word(entry, 4).unwrap_or_default());
        }
        SOURCE_OVERRIDE => {
            if let Some((number, pin)) = IsaPin::parse(entry) {
                topology.lead_isa(number, pin);
            }
        }
        IO_APIC => {
            if let (Some(address), Some(first_gsi)) = (word(entry, 4), word(entry, 8)) {
                topology.add_io_apic(IoApicEntry {
                    address: u64::from(address),
                    first_gsi,
                });
            }
        }
        _ => {}
    }
}

fn enabled(entry: &[u8], at: usize) -> bool {
    word(entry, at).is_some_and(|flags| flags & 1 != 0)
}
