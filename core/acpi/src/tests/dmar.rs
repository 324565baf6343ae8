//! What is made of a DMAR table.

use core::ops::RangeInclusive;
use std::vec;
use std::vec::Vec;

use super::table;
use crate::{Dmar, RequesterId};

const ENDPOINT: u8 = 1;
const HIERARCHY: u8 = 2;
const IO_APIC: u8 = 3;

fn id(bus: u8, device: u8, function: u8) -> RequesterId {
    RequesterId::new(bus, device, function).expect("on a bus")
}

/// A bridge at 00:1c.0 leads to buses 2 to 4, one at 02:00.0 to bus 3.
fn buses(bridge: RequesterId) -> Option<RangeInclusive<u8>> {
    match bridge {
        bridge if bridge == id(0, 0x1c, 0) => Some(2..=4),
        bridge if bridge == id(2, 0, 0) => Some(3..=3),
        _ => None,
    }
}

fn scope(kind: u8, bus: u8, path: &[[u8; 2]]) -> Vec<u8> {
    let path = path.concat();
    let mut scope = vec![kind, 6 + path.len() as u8, 0, 0, 0, bus];
    scope.extend(path);
    scope
}

fn structure(kind: u16, fixed: &[u8], scopes: &[Vec<u8>]) -> Vec<u8> {
    let scopes = scopes.concat();
    let mut structure = Vec::from(kind.to_le_bytes());
    structure.extend((4 + fixed.len() as u16 + scopes.len() as u16).to_le_bytes());
    structure.extend(fixed);
    structure.extend(scopes);
    structure
}

fn unit(flags: u8, segment: u16, registers: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
    let mut fixed = vec![flags, 0];
    fixed.extend(segment.to_le_bytes());
    fixed.extend(registers.to_le_bytes());
    structure(0, &fixed, scopes)
}

fn reserved(start: u64, limit: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
    let mut fixed = vec![0; 4];
    fixed.extend(start.to_le_bytes());
    fixed.extend(limit.to_le_bytes());
    structure(1, &fixed, scopes)
}

fn dmar(structures: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![47, 1];
    body.resize(12, 0);
    body.extend(structures.concat());
    table(b"DMAR", 1, &body)
}

/// A unit for two devices, one for a bridge, and one for the rest.
fn three_units() -> Vec<u8> {
    dmar(&[
        unit(0, 0, 0xfed9_0000, &[scope(ENDPOINT, 0, &[[2, 0]])]),
        unit(
            0,
            0,
            0xfed9_1000,
            &[
                scope(IO_APIC, 0, &[[3, 0]]),
                scope(HIERARCHY, 0, &[[0x1c, 0]]),
            ],
        ),
        unit(1, 0, 0xfed9_2000, &[]),
    ])
}

#[test]
fn units_are_read_with_their_registers() {
    let bytes = three_units();
    let dmar = Dmar::read(&bytes).expect("a table");
    assert_eq!(dmar.address_bits(), 48);
    let units: Vec<_> = dmar
        .units()
        .map(|unit| (unit.registers, unit.takes_the_rest))
        .collect();
    assert_eq!(
        units,
        [
            (0xfed9_0000, false),
            (0xfed9_1000, false),
            (0xfed9_2000, true)
        ]
    );
}

#[test]
fn the_interrupt_controller_is_behind_the_unit_that_names_it_if_there_is_one() {
    let bytes = three_units();
    let dmar = Dmar::read(&bytes).expect("a table");
    assert_eq!(dmar.io_apic(&buses), Some((1, id(0, 3, 0))));
    let of = |scopes: &[Vec<u8>]| dmar_of_one(scopes);
    let (none, two) = (
        of(&[]),
        of(&[
            scope(IO_APIC, 0, &[[3, 0]]),
            scope(IO_APIC, 0xff, &[[0, 0]]),
        ]),
    );
    for bytes in [none, two] {
        let dmar = Dmar::read(&bytes).expect("a table");
        assert_eq!(dmar.io_apic(&buses), None);
    }
}

fn dmar_of_one(scopes: &[Vec<u8>]) -> Vec<u8> {
    dmar(&[unit(1, 0, 0xfed9_0000, scopes)])
}

#[test]
fn a_device_is_behind_the_unit_that_names_it_or_a_bridge_above_it_else_the_one_for_the_rest() {
    let bytes = three_units();
    let dmar = Dmar::read(&bytes).expect("a table");
    let unit_of = |function| dmar.unit_of(0, function, &buses);
    assert_eq!(unit_of(id(0, 2, 0)), Some(0));
    assert_eq!(unit_of(id(0, 2, 1)), Some(2), "another function");
    assert_eq!(unit_of(id(0, 0x1c, 0)), Some(1), "the bridge itself");
    assert_eq!(unit_of(id(4, 9, 3)), Some(1), "behind the bridge");
    assert_eq!(unit_of(id(5, 9, 3)), Some(2), "behind another");
    assert_eq!(
        unit_of(id(0, 3, 0)),
        Some(2),
        "an interrupt controller's number is none of a function"
    );
    assert_eq!(
        dmar.unit_of(1, id(0, 2, 0), &buses),
        None,
        "no such segment"
    );
}

#[test]
fn a_path_leads_over_bridges_and_ends_where_one_is_none() {
    let path = |hops: &[[u8; 2]]| {
        let bytes = dmar(&[unit(0, 0, 0x1000, &[scope(ENDPOINT, 0, hops)])]);
        let dmar = Dmar::read(&bytes).expect("a table");
        dmar.unit_of(0, id(3, 7, 1), &buses)
    };
    assert_eq!(path(&[[0x1c, 0], [0, 0], [7, 1]]), Some(0));
    assert_eq!(path(&[[0x1c, 0], [7, 1]]), None, "one bridge short");
    assert_eq!(path(&[[0x1d, 0], [0, 0], [7, 1]]), None, "no bridge");
    assert_eq!(path(&[[0x1c, 8], [0, 0], [7, 1]]), None, "no function 8");
    assert_eq!(path(&[[32, 0]]), None, "no device 32");
    assert_eq!(path(&[]), None);
}

#[test]
fn reserved_memory_is_whole_pages_that_a_firmware_can_need() {
    let read = |start, limit| {
        let bytes = dmar(&[reserved(start, limit, &[scope(ENDPOINT, 0, &[[0x1d, 0]])])]);
        let dmar = Dmar::read(&bytes).expect("a table");
        dmar.reserved().next().map(|memory| {
            assert!(memory.scopes.hold(id(0, 0x1d, 0), &buses));
            assert!(!memory.scopes.hold(id(0, 0x1d, 1), &buses));
            (memory.start, memory.end)
        })
    };
    assert_eq!(read(0xe_8000, 0xe_8fff), Some((0xe_8000, 0xe_9000)));
    assert_eq!(read(0xe_8000, 0xe_8ffe), None, "not whole pages");
    assert_eq!(read(0xe_8001, 0xe_8fff), None, "not whole pages");
    assert_eq!(read(0xe_9000, 0xe_8fff), None, "empty");
    assert_eq!(read(0xe_a000, 0xe_8fff), None, "ends before it begins");
    assert_eq!(read(0, u64::MAX), None, "it wraps");
    assert_eq!(read(0, (4 << 30) - 1), Some((0, 4 << 30)));
    assert_eq!(read(0, (4 << 30) + 4095), None, "too long");
}

#[test]
fn a_unit_without_registers_is_none() {
    for registers in [0, 0xfed9_0010] {
        let bytes = dmar(&[unit(1, 0, registers, &[])]);
        let dmar = Dmar::read(&bytes).expect("a table");
        assert_eq!(dmar.units().count(), 0, "{registers:#x}");
        assert_eq!(dmar.unit_of(0, id(0, 2, 0), &buses), None);
    }
}

#[test]
fn a_length_that_is_impossible_ends_the_table() {
    let good = unit(1, 0, 0x1000, &[]);
    for (bad, why) in [
        (vec![9, 0, 3, 0], "too short for itself"),
        (vec![9, 0, 0, 0], "it would never end"),
        (vec![9, 0, 200, 0], "out of the table"),
        (vec![9], "cut off"),
    ] {
        let bytes = dmar(&[good.clone(), bad, good.clone()]);
        let dmar = Dmar::read(&bytes).expect("a table");
        assert_eq!(dmar.units().count(), 1, "{why}");
    }
}

#[test]
fn no_bytes_make_it_panic_or_go_on_for_ever() {
    let whole = three_units();
    let look = |bytes: &[u8]| {
        let Some(dmar) = Dmar::read(bytes) else {
            return;
        };
        let units = dmar.units().count() + dmar.reserved().count();
        assert!(units <= bytes.len() / 4);
        assert!(dmar.address_bits() <= 256);
        // A bridge that points back.
        let round = |_| Some(0..=u8::MAX);
        for function in [0, 0x1234, u16::MAX].map(RequesterId) {
            dmar.unit_of(0, function, &round);
            dmar.reserved().for_each(|memory| {
                memory.scopes.hold(function, &round);
            });
        }
    };
    for len in 0..=whole.len() {
        look(&whole[..len]);
    }
    for at in 36..whole.len() {
        for value in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            look(&bytes);
        }
    }
}
