//! What is made of SRAT and SLIT.

use std::vec;
use std::vec::Vec;

use super::table;
use crate::{CPUS_MAX, MemoryRange, NODES_MAX, Numa, NumaError, RANGES_MAX};

const GIB: u64 = 1 << 30;
const ENABLED: u32 = 1;

fn memory_with(flags: u32, domain: u32, start: u64, bytes: u64) -> Vec<u8> {
    let mut entry = vec![1, 40];
    entry.extend(domain.to_le_bytes());
    entry.extend([0; 2]);
    entry.extend(start.to_le_bytes());
    entry.extend(bytes.to_le_bytes());
    entry.extend([0; 4]);
    entry.extend(flags.to_le_bytes());
    entry.resize(40, 0);
    entry
}

fn memory(domain: u32, start: u64, bytes: u64) -> Vec<u8> {
    memory_with(ENABLED, domain, start, bytes)
}

fn cpu(domain: u32, apic_id: u8) -> Vec<u8> {
    let [low, high @ ..] = domain.to_le_bytes();
    let mut entry = vec![0, 16, low, apic_id];
    entry.extend(ENABLED.to_le_bytes());
    entry.push(0);
    entry.extend(high);
    entry.extend([0; 4]);
    entry
}

fn x2apic(domain: u32, apic_id: u32) -> Vec<u8> {
    let mut entry = vec![2, 24, 0, 0];
    entry.extend(domain.to_le_bytes());
    entry.extend(apic_id.to_le_bytes());
    entry.extend(ENABLED.to_le_bytes());
    entry.resize(24, 0);
    entry
}

fn srat_of(revision: u8, entries: &[Vec<u8>]) -> Vec<u8> {
    let body = [vec![0; 12], entries.concat()].concat();
    table(b"SRAT", revision, &body)
}

fn srat(entries: &[Vec<u8>]) -> Vec<u8> {
    srat_of(3, entries)
}

fn slit(localities: u64, matrix: &[u8]) -> Vec<u8> {
    let body = [&localities.to_le_bytes()[..], matrix].concat();
    table(b"SLIT", 1, &body)
}

/// As QEMU writes it for two nodes: low memory has a hole.
fn two_nodes() -> Vec<u8> {
    srat(&[
        cpu(0, 0),
        cpu(1, 1),
        memory(0, 0, 0xa_0000),
        memory(0, 0x10_0000, GIB - 0x10_0000),
        memory(1, GIB, GIB),
        memory_with(0, 0, 0, 0),
    ])
}

#[test]
fn memory_and_cpus_have_their_nodes() {
    let numa = Numa::read(&two_nodes(), None).unwrap();
    assert_eq!(numa.nodes(), 2);
    let last = MemoryRange {
        start: GIB,
        end: 2 * GIB,
        node: 1,
    };
    assert_eq!(numa.memory().len(), 3);
    assert_eq!(numa.memory()[2], last);
    assert_eq!(
        [0, 1, 2].map(|apic_id| numa.node_of_cpu(apic_id)),
        [0, 1, 0]
    );
}

#[test]
fn nodes_are_numbered_by_their_domains_and_large_numbers_are_read() {
    let tables = srat(&[
        x2apic(0x1_0007, 300),
        memory(0x1_0007, GIB, GIB),
        cpu(0x203, 4),
    ]);
    let numa = Numa::read(&tables, None).unwrap();
    assert_eq!(numa.nodes(), 2);
    assert_eq!((numa.node_of_cpu(300), numa.node_of_cpu(4)), (1, 0));
    assert_eq!(numa.memory()[0].node, 1);
}

#[test]
fn in_the_first_revision_a_domain_has_8_bits() {
    let numa = Numa::read(&srat_of(1, &[cpu(0xabc0_0001, 0), memory(1, 0, GIB)]), None);
    assert_eq!(numa.unwrap().nodes(), 1);
}

#[test]
fn distances_are_those_of_the_firmware_where_they_can_be() {
    let distances = |slit: Option<&[u8]>| {
        let numa = Numa::read(&two_nodes(), slit).unwrap();
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| numa.distance(from, to))
    };
    assert_eq!(distances(None), [10, 20, 20, 10]);
    assert_eq!(
        distances(Some(&slit(2, &[10, 31, 17, 10]))),
        [10, 31, 17, 10]
    );
    assert_eq!(
        distances(Some(&slit(2, &[11, 10, 9, 255]))),
        [10, 20, 20, 10]
    );
    assert_eq!(
        distances(Some(&slit(2, &[10, 31]))),
        [10, 31, 20, 10],
        "cut off"
    );
    assert_eq!(
        distances(Some(&slit(u64::MAX, &[10, 31]))),
        [10, 31, 20, 10]
    );
    assert_eq!(distances(Some(&slit(1, &[10]))), [10, 20, 20, 10]);
}

#[test]
fn contradictions_and_excess_are_errors() {
    let read = |entries: &[Vec<u8>]| Numa::read(&srat(entries), None).map(|numa| numa.nodes());
    assert_eq!(read(&[]), Err(NumaError::Empty));
    assert_eq!(
        read(&[memory(1, GIB, GIB), memory(0, 0, GIB + 1)]),
        Err(NumaError::Overlap { at: GIB })
    );
    let start = u64::MAX;
    assert_eq!(
        read(&[memory(0, start, 2)]),
        Err(NumaError::Endless { start })
    );
    let many = |count: usize, make: fn(u32) -> Vec<u8>| {
        read(&(0..count as u32).map(make).collect::<Vec<_>>())
    };
    assert_eq!(many(NODES_MAX, |n| x2apic(n, n)), Ok(NODES_MAX));
    assert_eq!(
        many(NODES_MAX + 1, |n| x2apic(n, n)),
        Err(NumaError::TooManyNodes)
    );
    let page = |n: u32| memory(0, u64::from(n) << 12, 1 << 12);
    assert_eq!(many(RANGES_MAX, page), Ok(1));
    assert_eq!(many(RANGES_MAX + 1, page), Err(NumaError::TooManyRanges));
    assert_eq!(
        many(CPUS_MAX + 1, |n| x2apic(0, n)),
        Err(NumaError::TooManyCpus)
    );
}

#[test]
fn what_is_not_enabled_or_cut_off_does_not_count() {
    let whole = two_nodes();
    for len in 0..whole.len() {
        if let Ok(numa) = Numa::read(&whole[..len], None) {
            assert!((1..=2).contains(&numa.nodes()));
        }
    }
    let off = srat(&[memory_with(2, 5, 0, GIB), cpu(0, 0)]);
    assert_eq!(Numa::read(&off, None).unwrap().memory(), []);
}
