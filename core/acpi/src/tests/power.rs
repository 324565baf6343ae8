use std::vec::Vec;

use super::table;
use crate::{PowerOff, Register, reset};

const FADT_BYTES: usize = 276;

/// A FADT with these bytes at these offsets.
fn fadt(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut fadt = table(b"FACP", 6, &[0; FADT_BYTES - 36]);
    for (at, bytes) in fields {
        fadt[*at..*at + bytes.len()].copy_from_slice(bytes);
    }
    fadt
}

fn generic(space: u8, address: u64) -> Vec<u8> {
    [&[space, 8, 0, 1][..], &address.to_le_bytes()].concat()
}

/// A DSDT in which something stands before and behind.
fn dsdt(aml: &[u8]) -> Vec<u8> {
    table(
        b"DSDT",
        2,
        &[
            b"\x08_S3_\x12\x06\x04\x01\x01\x00\x00",
            aml,
            b"\x10\x05_SB_",
        ]
        .concat(),
    )
}

const S5: &[u8] = b"\x08_S5_\x12\x08\x04\x0a\x05\x0a\x07\x00\x00";

#[test]
fn a_pc_is_turned_off_by_its_control_registers() {
    let pc = fadt(&[
        (48, &0xb2u32.to_le_bytes()),
        (52, &[0xf1]),
        (64, &0x604u32.to_le_bytes()),
        (68, &0x704u32.to_le_bytes()),
    ]);
    assert_eq!(
        PowerOff::parse(&pc, &dsdt(S5)),
        Some(PowerOff::Fixed {
            controls: [
                Some((Register::Port(0x604), 5)),
                Some((Register::Port(0x704), 7))
            ],
            take_over: Some((0xb2, 0xf1)),
        })
    );
    let long = fadt(&[
        (64, &0x604u32.to_le_bytes()),
        (172, &generic(0, 0xfed0_0000)),
    ]);
    assert_eq!(
        PowerOff::parse(&long, &dsdt(S5)),
        Some(PowerOff::Fixed {
            controls: [Some((Register::Memory(0xfed0_0000), 5)), None],
            take_over: None,
        }),
        "the long address comes first"
    );
    assert_eq!(PowerOff::fixed_value(0x1c01, 5), 0x3401);
    assert_eq!(
        PowerOff::fixed_value(0, 0xff),
        0x3c00,
        "no bit outside its field"
    );
}

#[test]
fn reduced_hardware_is_turned_off_by_its_sleep_register() {
    let flags = (1u32 << 20 | 1 << 10).to_le_bytes();
    let reduced = fadt(&[
        (112, &flags),
        (244, &generic(1, 0x600)),
        (64, &[4, 6, 0, 0]),
    ]);
    let off = Some(PowerOff::Reduced {
        control: Register::Port(0x600),
        sleep_type: 5,
    });
    assert_eq!(PowerOff::parse(&reduced, &dsdt(S5)), off);
    assert_eq!(PowerOff::reduced_value(5), 0x34);
    let without = fadt(&[(112, &flags)]);
    assert_eq!(PowerOff::parse(&without, &dsdt(S5)), None);
}

#[test]
fn the_numbers_of_s5_are_read_however_they_are_written() {
    let pc = fadt(&[(64, &0x604u32.to_le_bytes()), (68, &0x704u32.to_le_bytes())]);
    let types = |aml: &[u8]| match PowerOff::parse(&pc, &dsdt(aml))? {
        PowerOff::Fixed { controls, .. } => Some((controls[0]?.1, controls[1]?.1)),
        PowerOff::Reduced { .. } => None,
    };
    assert_eq!(types(b"\x08_S5_\x12\x06\x04\x00\x00\x00\x00"), Some((0, 0)));
    assert_eq!(
        types(b"\x08\\_S5_\x12\x06\x04\x01\x00\x00\x00"),
        Some((1, 0))
    );
    assert_eq!(types(b"\x08_S5_\x12\x04\x01\x0a\x06"), Some((6, 6)));
    assert_eq!(
        types(b"\x08_S5_\x12\x4a\x00\x02\x0b\x07\x00\x0c\x03\x00\x00\x00"),
        Some((7, 3))
    );
    // No number, a number that is a name, nothing at all.
    assert_eq!(types(b"\x08_S5_\x12\x02\x00"), None);
    assert_eq!(types(b"\x08_S5_\x12\x06\x01ABCD"), None);
    assert_eq!(types(b""), None);
}

#[test]
fn the_reset_register_counts_where_a_flag_says_so() {
    let fields: [(usize, &[u8]); 2] = [(116, &generic(1, 0xcf9)), (128, &[0x0f])];
    assert_eq!(reset(&fadt(&fields)), None);
    let flags = (1u32 << 10).to_le_bytes();
    let with = |register: &[u8]| reset(&fadt(&[(112, &flags), (116, register), (128, &[0x0f])]));
    assert_eq!(
        with(&generic(1, 0xcf9)),
        Some((Register::Port(0xcf9), 0x0f))
    );
    assert_eq!(
        with(&generic(0, 0xfed8_0000)),
        Some((Register::Memory(0xfed8_0000), 0x0f))
    );
    assert_eq!(with(&generic(1, 0x1_0000)), None, "no port");
    assert_eq!(
        with(&generic(2, 0xcf9)),
        None,
        "a space that we cannot write to"
    );
    assert_eq!(with(&generic(1, 0)), None);
}

#[test]
fn tables_that_are_cut_off_anywhere_offer_no_wrong_way() {
    let (whole, aml) = (fadt(&[(64, &0x604u32.to_le_bytes())]), dsdt(S5));
    let off = PowerOff::parse(&whole, &aml);
    assert!(off.is_some());
    for end in 0..whole.len() {
        let _ = (PowerOff::parse(&whole[..end], &aml), reset(&whole[..end]));
    }
    for end in 0..aml.len() {
        let cut = PowerOff::parse(&whole, &aml[..end]);
        assert!(cut.is_none() || cut == off || end < aml.len() - 9);
    }
}
