//! SRAT: which memory and which CPUs are near to each other (ACPI 6.5, 5.2.16).

use crate::bytes::{long, word};
use crate::structures;

const REVISION: usize = 8;
const STRUCTURES: usize = 48;
/// Since then a proximity domain has 32 bits instead of 8.
const REVISION_WITH_WIDE_DOMAINS: u8 = 2;

const LOCAL_APIC: u8 = 0;
const MEMORY: u8 = 1;
const LOCAL_X2APIC: u8 = 2;
/// In the flags of each.
const ENABLED: u32 = 1;

/// What is near to a proximity domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affinity {
    /// Physical memory, in bytes.
    Memory { domain: u32, start: u64, bytes: u64 },
    /// The CPU with this number on the APIC bus.
    Cpu { domain: u32, apic_id: u32 },
}

/// What the table says and is enabled. Structures that are too short, or of a kind that
/// is neither memory nor a CPU, are left out.
pub(crate) fn affinities(srat: &[u8]) -> impl Iterator<Item = Affinity> {
    let is_wide = srat
        .get(REVISION)
        .is_some_and(|&revision| revision >= REVISION_WITH_WIDE_DOMAINS);
    let mask = if is_wide { u32::MAX } else { 0xff };
    structures(srat, STRUCTURES).filter_map(move |(kind, entry)| match kind {
        LOCAL_APIC => local_apic(entry, mask),
        MEMORY => memory(entry, mask),
        LOCAL_X2APIC => local_x2apic(entry),
        _ => None,
    })
}

fn is_enabled(entry: &[u8], at: usize) -> bool {
    word(entry, at).is_some_and(|flags| flags & ENABLED != 0)
}

/// 5.2.16.1: the domain's low byte and its high ones lie apart.
fn local_apic(entry: &[u8], mask: u32) -> Option<Affinity> {
    let (low, high) = (*entry.get(2)?, word(entry, 8)? & !0xff);
    is_enabled(entry, 4).then_some(Affinity::Cpu {
        domain: (high | u32::from(low)) & mask,
        apic_id: u32::from(*entry.get(3)?),
    })
}

/// 5.2.16.2.
fn memory(entry: &[u8], mask: u32) -> Option<Affinity> {
    is_enabled(entry, 28).then_some(Affinity::Memory {
        domain: word(entry, 2)? & mask,
        start: long(entry, 8)?,
        bytes: long(entry, 16)?,
    })
}

/// 5.2.16.3.
fn local_x2apic(entry: &[u8]) -> Option<Affinity> {
    is_enabled(entry, 12).then_some(Affinity::Cpu {
        domain: word(entry, 4)?,
        apic_id: word(entry, 8)?,
    })
}
