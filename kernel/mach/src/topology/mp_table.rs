//! The multiprocessor table of machines without ACPI (Intel MultiProcessor Specification
//! 1.4, chapter 4): small VMMs leave one in low memory.

use arch::layout::DIRECT_MAP;

use super::{IoApicEntry, Topology};

/// Where the floating pointer may lie: the end of base memory, and the firmware's ROM.
const PLACES: [(u64, usize); 2] = [(0x9_fc00, 0x400), (0xf_0000, 0x1_0000)];
const POINTER_BYTES: usize = 16;
const HEADER_BYTES: usize = 44;
const LOW_MEMORY_END: u64 = 1 << 20;

const CPU: u8 = 0;
const CPU_BYTES: usize = 20;
const IO_APIC: u8 = 2;
const OTHER_BYTES: usize = 8;
const ENABLED: u8 = 1;

/// Adds what the table lists; false if there is none.
pub(crate) fn read(topology: &mut Topology) -> bool {
    let Some(table) = PLACES
        .iter()
        .find_map(|&(at, bytes)| find(low_memory(at, bytes)?))
    else {
        return false;
    };
    let mut rest = table.get(HEADER_BYTES..).unwrap_or(&[]);
    while let Some(&kind) = rest.first() {
        let bytes = if kind == CPU { CPU_BYTES } else { OTHER_BYTES };
        let Some(entry) = rest.get(..bytes) else {
            break;
        };
        read_entry(kind, entry, topology);
        rest = &rest[bytes..];
    }
    true
}

fn read_entry(kind: u8, entry: &[u8], topology: &mut Topology) {
    if entry[3] & ENABLED == 0 {
        return;
    }
    match kind {
        CPU => topology.add_cpu(u32::from(entry[1])),
        IO_APIC => {
            let address = u64::from(word(entry, 4));
            topology.add_io_apic(IoApicEntry {
                address,
                first_gsi: 0,
            });
        }
        _ => {}
    }
}

/// The table that a floating pointer in `place` names.
fn find(place: &'static [u8]) -> Option<&'static [u8]> {
    let sums_to_zero = |bytes: &[u8]| bytes.iter().fold(0, |sum: u8, &b| sum.wrapping_add(b)) == 0;
    let mut candidates = place.chunks_exact(POINTER_BYTES);
    let pointer = candidates.find(|at| at.starts_with(b"_MP_") && sums_to_zero(at))?;
    let at = u64::from(word(pointer, 4));
    let header = low_memory(at, HEADER_BYTES).filter(|header| header.starts_with(b"PCMP"))?;
    let bytes = u16::from_le_bytes([header[4], header[5]]);
    low_memory(at, usize::from(bytes))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn low_memory(at: u64, bytes: usize) -> Option<&'static [u8]> {
    if at + bytes as u64 > LOW_MEMORY_END {
        return None;
    }
    // SAFETY: the first MiB is mapped in the direct map, and firmware's notes in it are
    // written by nobody.
    Some(unsafe { core::slice::from_raw_parts((DIRECT_MAP + at) as *const u8, bytes) })
}
