//! The CPUs and I/O APICs that ACPI's MADT lists (ACPI 6.5, 5.2.12).

use arch::layout::{BOOT_DIRECT_MAP_BYTES, DIRECT_MAP};

use crate::topology::{IoApicEntry, Topology};

const ENTRIES: usize = 44;
const LOCAL_APIC: u8 = 0;
const IO_APIC: u8 = 1;
const LOCAL_X2APIC: u8 = 9;

/// Adds what the table lists; false if there is none.
pub(crate) fn read(topology: &mut Topology) -> bool {
    let Some(table) = find(*b"APIC") else {
        return false;
    };
    let mut rest = table.get(ENTRIES..).unwrap_or(&[]);
    while let [kind, bytes, ..] = *rest {
        let Some(entry) = rest
            .get(..usize::from(bytes))
            .filter(|entry| entry.len() >= 2)
        else {
            break;
        };
        read_entry(kind, entry, topology);
        rest = &rest[entry.len()..];
    }
    true
}

fn read_entry(kind: u8, entry: &[u8], topology: &mut Topology) {
    match kind {
        LOCAL_APIC if enabled(entry, 4) => topology.add_cpu(u32::from(entry[3])),
        LOCAL_X2APIC if enabled(entry, 8) => {
            topology.add_cpu(word(entry, 4).unwrap_or_default());
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

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

fn enabled(entry: &[u8], at: usize) -> bool {
    word(entry, at).is_some_and(|flags| flags & 1 != 0)
}

/// The table with this signature, found from the RSDP.
fn find(signature: [u8; 4]) -> Option<&'static [u8]> {
    let rsdp = physical(crate::boot::info().rsdp?.0, 36)?;
    let revision = rsdp[15];
    let (root, entry_bytes) = if revision >= 2 {
        (
            u64::from(word(rsdp, 24)?) | u64::from(word(rsdp, 28)?) << 32,
            8,
        )
    } else {
        (u64::from(word(rsdp, 16)?), 4)
    };
    let entries = table(root)?.get(36..)?.chunks_exact(entry_bytes);
    let address = |entry: &[u8]| {
        let high = word(entry, 4).unwrap_or(0);
        Some(u64::from(word(entry, 0)?) | u64::from(high) << 32)
    };
    entries
        .filter_map(|entry| table(address(entry)?))
        .find(|table| table[..4] == signature)
}

fn table(address: u64) -> Option<&'static [u8]> {
    let bytes = word(physical(address, 36)?, 4)?;
    physical(address, bytes as usize).filter(|table| table.len() >= 36)
}

fn physical(address: u64, bytes: usize) -> Option<&'static [u8]> {
    let end = address.checked_add(bytes as u64)?;
    if end > BOOT_DIRECT_MAP_BYTES {
        return None;
    }
    // SAFETY: the firmware's tables lie below 4 GiB in memory that nobody writes.
    Some(unsafe { core::slice::from_raw_parts((DIRECT_MAP + address) as *const u8, bytes) })
}
