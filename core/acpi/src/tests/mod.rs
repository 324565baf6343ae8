//! Tables made by hand, whole and broken.

mod dmar;
mod mcfg;
mod numa;
mod power;
mod root;

use std::vec::Vec;

use crate::structures;

/// A table of this signature: the header, then `body`.
fn table(signature: &[u8; 4], revision: u8, body: &[u8]) -> Vec<u8> {
    let mut table = Vec::from(*signature);
    table.extend((36 + body.len() as u32).to_le_bytes());
    table.push(revision);
    table.resize(36, 0);
    table.extend(body);
    table
}

#[test]
fn a_length_that_is_impossible_ends_the_table() {
    let walk = |bytes: &[u8]| {
        structures(bytes, 0)
            .map(|(kind, _)| kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(walk(&[1, 3, 0, 2, 2, 3, 4, 0, 0]), [1, 2, 3]);
    assert_eq!(walk(&[1, 3, 0, 2, 0, 3, 2]), [1], "too short for itself");
    assert_eq!(walk(&[1, 3, 0, 2, 1, 3, 2]), [1], "too short for itself");
    assert_eq!(walk(&[1, 3, 0, 2, 9, 0]), [1], "out of the table");
    assert_eq!(walk(&[7]), []);
    assert_eq!(structures(&[1, 2], 3).count(), 0);
}
