//! Where configuration space lies.

use std::vec;
use std::vec::Vec;

use super::table;
use crate::{Mcfg, RequesterId};

/// Eight bytes that mean nothing, then these allocations: base, segment, first and last bus.
fn mcfg(allocations: &[(u64, u16, u8, u8)]) -> Vec<u8> {
    let mut body = vec![0; 8];
    for (base, segment, first, last) in allocations {
        body.extend(base.to_le_bytes());
        body.extend(segment.to_le_bytes());
        body.extend([*first, *last, 0, 0, 0, 0]);
    }
    table(b"MCFG", 1, &body)
}

fn space(table: &[u8], bus: u8, device: u8, function: u8) -> Option<u64> {
    let function = RequesterId::new(bus, device, function)?;
    Mcfg::read(table)?.space_of(0, function)
}

#[test]
fn each_function_has_a_page_behind_its_segments_base() {
    let table = mcfg(&[(0x7000_0000, 1, 0, 255), (0xb000_0000, 0, 0, 255)]);
    assert_eq!(space(&table, 0, 0, 0), Some(0xb000_0000));
    assert_eq!(space(&table, 0, 18, 2), Some(0xb009_2000));
    assert_eq!(space(&table, 3, 0, 1), Some(0xb030_1000));
}

#[test]
fn a_bus_that_is_not_listed_has_no_space() {
    let table = mcfg(&[(0xb000_0000, 0, 4, 7)]);
    assert_eq!(space(&table, 4, 0, 0), Some(0xb040_0000));
    assert_eq!(space(&table, 3, 0, 0), None);
    assert_eq!(space(&table, 8, 0, 0), None);
    assert_eq!(space(&mcfg(&[(0xb000_0000, 0, 7, 4)]), 5, 0, 0), None);
}

#[test]
fn a_base_that_cannot_be_is_not_believed() {
    assert_eq!(space(&mcfg(&[(0, 0, 0, 255)]), 0, 0, 0), None);
    assert_eq!(space(&mcfg(&[(0xb000_1000, 0, 0, 255)]), 0, 0, 0), None);
    let last = !0 << 20;
    assert_eq!(space(&mcfg(&[(last, 0, 0, 255)]), 1, 0, 0), None);
}

#[test]
fn a_table_that_is_cut_off_ends_there() {
    let whole = mcfg(&[(0xb000_0000, 0, 0, 255)]);
    assert_eq!(space(&whole[..whole.len() - 1], 0, 0, 0), None);
    assert!(Mcfg::read(&whole[..40]).is_none());
}
