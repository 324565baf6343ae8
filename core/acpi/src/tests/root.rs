use std::vec::Vec;

use crate::{ISA_INTERRUPTS, IsaPin, Root};

/// A root pointer whose sums are right.
fn pointer(revision: u8, short: u32, long: u64) -> Vec<u8> {
    let mut bytes = Vec::from(*b"RSD PTR \0OEMID_");
    bytes.push(revision);
    bytes.extend(short.to_le_bytes());
    fix(&mut bytes, 8);
    bytes.extend(36u32.to_le_bytes());
    bytes.extend(long.to_le_bytes());
    bytes.extend([0; 4]);
    fix(&mut bytes, 32);
    bytes
}

/// Makes the sum zero by the byte at `at`.
fn fix(bytes: &mut [u8], at: usize) {
    let sum = bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
    bytes[at] = bytes[at].wrapping_sub(sum);
}

const SHORT: Root = Root {
    entry_bytes: 4,
    at: 0x7fe_1234,
};
const LONG: Root = Root {
    entry_bytes: 8,
    at: 0x1_0000_5678,
};

#[test]
fn a_pointer_leads_to_the_table_with_the_longest_addresses() {
    let new = pointer(2, 0x7fe_1234, LONG.at);
    assert_eq!(Root::parse(&new), Some(LONG));
    assert_eq!(Root::parse(&pointer(0, 0x7fe_1234, LONG.at)), Some(SHORT));
    assert_eq!(Root::parse(&pointer(2, 0x7fe_1234, 0)), Some(SHORT));
    assert_eq!(
        Root::parse(&new[..20]),
        Some(SHORT),
        "the copy of an old loader"
    );
    assert!(LONG > SHORT);
}

#[test]
fn a_pointer_whose_sum_is_wrong_is_none() {
    let mut new = pointer(2, 0x7fe_1234, LONG.at);
    new[33] ^= 1;
    assert_eq!(Root::parse(&new), Some(SHORT), "its old part is whole");
    new[16] ^= 1;
    assert_eq!(Root::parse(&new), None);
    let mut other = pointer(2, 0x7fe_1234, LONG.at);
    other[0] = b'X';
    fix(&mut other[..20], 8);
    assert_eq!(Root::parse(&other), None, "not its signature");
    for end in 0..20 {
        assert_eq!(Root::parse(&other[..end]), None);
    }
}

#[test]
fn an_override_says_where_an_interrupt_of_the_isa_bus_arrives() {
    let parse = |source: u8, flags: u8| IsaPin::parse(&[2, 10, 0, source, 2, 0, 0, 0, flags, 0]);
    let customary = IsaPin::customary(2);
    assert_eq!(parse(0, 0), Some((0, customary)));
    assert_eq!(parse(0, 0b0101), Some((0, customary)), "said outright");
    let (_, level) = parse(9, 0b1101).expect("it is whole");
    assert!(level.is_level && !level.is_active_low);
    let (_, low) = parse(9, 0b0011).expect("it is whole");
    assert!(low.is_active_low && !low.is_level);
    assert_eq!(parse(ISA_INTERRUPTS as u8, 0), None);
    assert_eq!(
        IsaPin::parse(&[2, 10, 1, 0, 2, 0, 0, 0, 0, 0]),
        None,
        "another bus"
    );
    assert_eq!(IsaPin::parse(&[2, 8, 0, 0, 2, 0, 0, 0]), None, "cut off");
}
