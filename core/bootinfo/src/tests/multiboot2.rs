use std::vec;
use std::vec::Vec;

use base::PhysAddr;

use crate::multiboot2::{self, INFORMATION_BYTES_MAX, Tag, claimed_bytes, tags};
use crate::{Region, RegionKind, Span};

/// A tag with its padding.
fn tag(kind: u32, fields: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(kind.to_le_bytes());
    bytes.extend((8 + fields.len() as u32).to_le_bytes());
    bytes.extend(fields);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn information(tags: &[Vec<u8>]) -> Vec<u8> {
    let body = tags.concat();
    let mut bytes = Vec::from((8 + body.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

fn module(start: u32, end: u32) -> Vec<u8> {
    tag(
        3,
        &[&start.to_le_bytes()[..], &end.to_le_bytes(), b"name\0"].concat(),
    )
}

fn entry(start: u64, bytes: u64, kind: u32) -> Vec<u8> {
    [
        &start.to_le_bytes()[..],
        &bytes.to_le_bytes(),
        &kind.to_le_bytes(),
        &[0; 4],
    ]
    .concat()
}

fn memory_map(entry_bytes: u32, entries: &[u8]) -> Vec<u8> {
    tag(
        6,
        &[&entry_bytes.to_le_bytes()[..], &[0; 4], entries].concat(),
    )
}

fn span(start: u64, bytes: u64) -> Span {
    Span {
        start: PhysAddr(start),
        bytes,
    }
}

#[test]
fn what_the_kernel_needs_is_read_in_order_and_the_rest_passed_over() {
    let bytes = information(&[
        tag(1, b"init=/bin/x ip=dhcp\0"),
        tag(2, b"GRUB 2.06\0"),
        module(0x100_0000, 0x100_0123),
        module(0x200_0000, 0x200_0000),
        tag(15, b"RSD PTR and so on"),
        tag(0, b""),
        tag(1, b"behind the end\0"),
    ]);
    assert_eq!(claimed_bytes(&bytes), Some(bytes.len()));
    let found: Vec<_> = tags(&bytes).collect();
    assert_eq!(
        found,
        [
            Tag::CommandLine("init=/bin/x ip=dhcp"),
            Tag::Module(span(0x100_0000, 0x123)),
            Tag::Module(span(0x200_0000, 0)),
            Tag::AcpiRoot(b"RSD PTR and so on"),
        ]
    );
}

#[test]
fn entries_of_the_map_may_be_longer_than_we_know() {
    let regions = |bytes: &[u8]| -> Vec<Region> {
        let maps = tags(bytes).filter_map(|tag| match tag {
            Tag::MemoryMap(entries) => Some(entries),
            _ => None,
        });
        maps.flat_map(|map| map.regions()).collect()
    };
    let expected = [
        Region {
            span: span(0, 0x9_fc00),
            kind: RegionKind::Usable,
        },
        Region {
            span: span(0x1_0000_0000, 7 << 30),
            kind: RegionKind::Usable,
        },
        Region {
            span: span(0x7fe_0000, 0x2_0000),
            kind: RegionKind::Acpi,
        },
        Region {
            span: span(0xfffc_0000, 0x4_0000),
            kind: RegionKind::Reserved,
        },
    ];
    let plain = [
        entry(0, 0x9_fc00, 1),
        entry(0x1_0000_0000, 7 << 30, 1),
        entry(0x7fe_0000, 0x2_0000, 3),
        entry(0xfffc_0000, 0x4_0000, 2),
    ];
    let long: Vec<_> = plain
        .iter()
        .map(|entry| [&entry[..], &[9; 8]].concat())
        .collect();
    assert_eq!(
        regions(&information(&[memory_map(24, &plain.concat())])),
        expected
    );
    assert_eq!(
        regions(&information(&[memory_map(32, &long.concat())])),
        expected
    );
    // Entries shorter than their fields are none, and half an entry at the end is none.
    for entry_bytes in [0, 1, 23] {
        assert_eq!(
            regions(&information(&[memory_map(entry_bytes, &plain.concat())])),
            []
        );
    }
    let cut = &plain.concat()[..24 + 23];
    assert_eq!(regions(&information(&[memory_map(24, cut)])), expected[..1]);
}

#[test]
fn a_size_that_is_impossible_ends_the_list() {
    let good = || tag(1, b"x\0");
    for size in [0u32, 1, 7, 1000, u32::MAX, u32::MAX - 6] {
        let mut bad = module(0, 1);
        bad[4..8].copy_from_slice(&size.to_le_bytes());
        let bytes = information(&[good(), bad, good()]);
        assert_eq!(tags(&bytes).count(), 1, "size {size}");
    }
}

#[test]
fn fields_that_are_wrong_leave_their_tag_out() {
    let bytes = information(&[
        tag(1, b"no end"),
        tag(1, b"\xff\xfe\0"),
        module(5, 4),
        tag(3, &[0; 7]),
        tag(6, &[0; 7]),
        tag(1, b"fine\0"),
    ]);
    let found: Vec<_> = tags(&bytes).collect();
    assert_eq!(found, [Tag::CommandLine("fine")]);
}

#[test]
fn a_size_that_no_loader_writes_is_refused() {
    for bytes in [0, 7, INFORMATION_BYTES_MAX as u32 + 1, u32::MAX] {
        assert_eq!(claimed_bytes(&bytes.to_le_bytes()), None);
    }
    assert_eq!(claimed_bytes(&[8, 0, 0]), None);
    assert_eq!(claimed_bytes(&8u32.to_le_bytes()), Some(8));
    assert_eq!(multiboot2::tags(&[]).count(), 0);
}

#[test]
fn information_cut_or_changed_anywhere_ends_without_a_panic() {
    let whole = information(&[
        tag(1, b"init=/bin/x\0"),
        module(0x100_0000, 0x100_0123),
        memory_map(24, &entry(0, 0x9_fc00, 1)),
        tag(14, &[1; 20]),
        tag(0, b""),
    ]);
    let read = |bytes: &[u8]| {
        let walk = tags(bytes).map(|tag| match tag {
            Tag::MemoryMap(entries) => entries.regions().count(),
            _ => 1,
        });
        // Each tag has eight bytes at least.
        assert!(walk.sum::<usize>() <= bytes.len() / 8);
    };
    for end in 0..whole.len() {
        read(&whole[..end]);
    }
    for at in 0..whole.len() {
        for value in [0, 1, 7, 8, 0x18, 0x7f, 0x80, 0xff] {
            let mut changed = vec![0; whole.len()];
            changed.copy_from_slice(&whole);
            changed[at] = value;
            read(&changed);
        }
    }
}
