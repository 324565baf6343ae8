use std::vec::Vec;

use base::PhysAddr;

use crate::{MemoryMap, REGIONS_MAX, RESERVED_MAX, Region, RegionKind, Span};

const USABLE: RegionKind = RegionKind::Usable;

fn span(start: u64, end: u64) -> Span {
    Span {
        start: PhysAddr(start),
        bytes: end - start,
    }
}

fn map(regions: &[(RegionKind, u64, u64)]) -> MemoryMap {
    let mut map = MemoryMap::new();
    for &(kind, start, end) in regions {
        map.add(Region {
            span: span(start, end),
            kind,
        });
    }
    map
}

fn ram(regions: &[(RegionKind, u64, u64)]) -> Vec<(u64, u64)> {
    let map = map(regions);
    map.ram().map(|span| (span.start.0, span.end().0)).collect()
}

#[test]
fn ram_comes_sorted_and_joined_whatever_order_it_was_listed_in() {
    let holes = [
        (USABLE, 0x1_0000_0000, 0x2_4000_0000),
        (USABLE, 0, 0x9_fc00),
        (RegionKind::Acpi, 0x7fe_0000, 0x7ff_0000),
        (USABLE, 0x10_0000, 0x400_0000),
        (USABLE, 0x400_0000, 0x7fe_0000),
    ];
    assert_eq!(
        ram(&holes),
        [
            (0, 0x9_fc00),
            (0x10_0000, 0x7fe_0000),
            (0x1_0000_0000, 0x2_4000_0000)
        ]
    );
}

#[test]
fn what_one_region_denies_is_not_ram_though_another_grants_it() {
    let over = [
        (USABLE, 0x1000, 0x9000),
        (RegionKind::Reserved, 0x3000, 0x4000),
        (RegionKind::Acpi, 0x3800, 0x5000),
        (USABLE, 0x8000, 0xa000),
        (RegionKind::Reserved, 0, 0x1800),
    ];
    assert_eq!(ram(&over), [(0x1800, 0x3000), (0x5000, 0xa000)]);
    let whole = [
        (USABLE, 0x1000, 0x2000),
        (RegionKind::Reserved, 0, u64::MAX),
    ];
    assert_eq!(ram(&whole), []);
}

#[test]
fn regions_at_the_end_of_all_addresses_and_empty_ones_do_no_harm() {
    let mut map = map(&[(USABLE, 0x5000, 0x5000)]);
    map.add(Region {
        span: Span {
            start: PhysAddr(u64::MAX - 5),
            bytes: u64::MAX,
        },
        kind: USABLE,
    });
    let ram: Vec<_> = map.ram().collect();
    assert_eq!(ram, [span(u64::MAX - 5, u64::MAX)]);
}

#[test]
fn every_map_agrees_with_asking_byte_by_byte() {
    // A linear congruential generator: the same maps each time.
    let mut state = 1u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for round in 0..500 {
        let regions: Vec<_> = (0..next(8))
            .map(|_| {
                let kind =
                    [USABLE, USABLE, RegionKind::Acpi, RegionKind::Reserved][next(4) as usize];
                let start = next(30);
                (kind, start, start + next(12))
            })
            .collect();
        let is_ram = |at: u64| {
            let inside = |&&(_, start, end): &&(RegionKind, u64, u64)| (start..end).contains(&at);
            let mut over = regions.iter().filter(inside).peekable();
            over.peek().is_some() && over.all(|&(kind, ..)| kind == USABLE)
        };
        let listed = ram(&regions);
        for at in 0..50 {
            let is_listed = listed
                .iter()
                .any(|&(start, end)| (start..end).contains(&at));
            assert_eq!(
                is_listed,
                is_ram(at),
                "round {round}, byte {at}: {regions:?}"
            );
        }
        let is_apart = listed.windows(2).all(|pair| pair[0].1 < pair[1].0);
        assert!(is_apart, "round {round}: {listed:?}");
    }
}

#[test]
fn a_free_page_lies_in_ram_and_beside_what_is_reserved() {
    let mut map = map(&[(USABLE, 0x200, 0x9_fc00), (USABLE, 0x10_0000, 0x20_0000)]);
    let limit = PhysAddr(0xa_0000);
    let page = |map: &MemoryMap| map.free_page(PhysAddr(0x1000), limit).map(|page| page.0);
    assert_eq!(page(&map), Some(0x1000));
    assert!(map.reserve(span(0x1fff, 0x4001)));
    assert_eq!(page(&map), Some(0x5000));
    assert!(map.reserve(span(0x5000, 0x9_e001)));
    assert_eq!(page(&map), None, "the last page is cut off at 0x9fc00");
}

#[test]
fn full_lists_take_no_more() {
    let mut map = MemoryMap::new();
    for number in 0..2 * REGIONS_MAX as u64 {
        map.add(Region {
            span: span(number * 0x2000, number * 0x2000 + 0x1000),
            kind: USABLE,
        });
    }
    assert_eq!(map.ram().count(), REGIONS_MAX);
    for _ in 0..RESERVED_MAX {
        assert!(map.reserve(span(0, 1)));
    }
    assert!(!map.reserve(span(0, 1)));
    assert!(map.reserve(span(7, 7)), "nothing needs no room");
}
