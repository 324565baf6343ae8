//! Each flaw, at the smallest program that has it.

use bpf::{CheckError, INSTRUCTIONS_MAX, Program};

use crate::program;

type Code = (u16, u8, u8, u32);

const RETURN: Code = (0x06, 0, 0, 0);

/// Why the instructions, with a return behind them, are refused.
fn error_of(instructions: &[Code]) -> Option<CheckError> {
    let mut code = program(instructions);
    code.extend(program(&[RETURN]));
    Program::check(&code).err()
}

#[test]
fn a_program_has_1_to_4096_instructions() {
    let of = |count| Program::check(&vec![program(&[RETURN])[0]; count]).err();
    assert_eq!(of(0), Some(CheckError::Length { instructions: 0 }));
    assert_eq!(of(INSTRUCTIONS_MAX), None);
    let instructions = INSTRUCTIONS_MAX + 1;
    assert_eq!(of(instructions), Some(CheckError::Length { instructions }));
}

#[test]
fn a_program_ends_with_a_return() {
    let code = program(&[RETURN, (0x00, 0, 0, 1)]);
    assert_eq!(Program::check(&code), Err(CheckError::NoReturn));
}

#[test]
fn exactly_the_codes_of_linux_exist() {
    let exists = |code| {
        error_of(&[(0x02, 0, 0, 1), (code, 0, 0, 1), RETURN])
            != Some(CheckError::Unknown { at: 1, code })
    };
    let calculations = (0..11).flat_map(|op| [op << 4 | 0x04, op << 4 | 0x0c]);
    let tests = (1..5).flat_map(|op| [op << 4 | 0x05, op << 4 | 0x0d]);
    let mut expected: Vec<u16> = calculations
        .filter(|&code| code != 0x8c)
        .chain(tests)
        .chain([0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80])
        .chain([
            0x01, 0x61, 0x81, 0xb1, 0x02, 0x03, 0x05, 0x06, 0x16, 0x07, 0x87,
        ])
        .collect();
    expected.sort();
    let found: Vec<u16> = (0..=u16::MAX).filter(|&code| exists(code)).collect();
    assert_eq!(found, expected);
}

#[test]
fn constants_that_cannot_work_are_refused() {
    for code in [0x34, 0x94] {
        assert_eq!(
            error_of(&[(code, 0, 0, 0)]),
            Some(CheckError::Divisor { at: 0 })
        );
        assert_eq!(error_of(&[(code, 0, 0, 1)]), None);
    }
    for code in [0x64, 0x74] {
        assert_eq!(
            error_of(&[(code, 0, 0, 32)]),
            Some(CheckError::Shift { at: 0, bits: 32 })
        );
        assert_eq!(error_of(&[(code, 0, 0, 31)]), None);
        assert_eq!(error_of(&[(code + 8, 0, 0, 32)]), None, "by X");
    }
    for code in [0x02, 0x03, 0x60, 0x61] {
        assert_eq!(
            error_of(&[(code, 0, 0, 16)]),
            Some(CheckError::Scratch { at: 0, slot: 16 })
        );
    }
}

#[test]
fn jumps_stay_in_the_program() {
    assert_eq!(error_of(&[(0x05, 0, 0, 0)]), None);
    assert_eq!(
        error_of(&[(0x05, 0, 0, 1)]),
        Some(CheckError::Jump { at: 0, skips: 1 })
    );
    assert_eq!(
        error_of(&[(0x05, 0, 0, u32::MAX)]),
        Some(CheckError::Jump {
            at: 0,
            skips: u32::MAX
        })
    );
    assert_eq!(
        error_of(&[(0x15, 1, 0, 0)]),
        Some(CheckError::Jump { at: 0, skips: 1 })
    );
    assert_eq!(
        error_of(&[(0x15, 0, 255, 0)]),
        Some(CheckError::Jump { at: 0, skips: 255 })
    );
    assert_eq!(error_of(&[(0x15, 1, 1, 0), RETURN]), None);
}

#[test]
fn extensions_that_do_not_exist_are_refused() {
    for fact in 0..0x1000 {
        let offset = 0xffff_f000 + fact;
        let exists = fact % 4 == 0 && fact < 64;
        let expected = (!exists).then_some(CheckError::Extension { at: 0, offset });
        assert_eq!(error_of(&[(0x30, 0, 0, offset)]), expected);
    }
    assert_eq!(
        error_of(&[(0x50, 0, 0, 0xffff_ffff)]),
        None,
        "behind X it is an offset"
    );
}

#[test]
fn scratch_memory_is_written_on_all_ways_before_it_is_read() {
    let (store, load, branch) = ((0x02, 0, 0, 3), (0x60, 0, 0, 3), (0x15, 0, 1, 0));
    assert_eq!(error_of(&[store, load]), None);
    assert_eq!(
        error_of(&[load]),
        Some(CheckError::Unwritten { at: 0, slot: 3 })
    );
    assert_eq!(
        error_of(&[branch, store, load]),
        Some(CheckError::Unwritten { at: 2, slot: 3 })
    );
    assert_eq!(error_of(&[store, branch, store, load]), None);
    // Each way writes it: a jump leads around the second write.
    let around = [(0x15, 0, 2, 0), store, (0x05, 0, 0, 1), store, load];
    assert_eq!(error_of(&around), None);
    // The way that jumps has written, the one that falls through has not.
    let skewed = [
        (0x15, 0, 2, 0),
        store,
        (0x05, 0, 0, 1),
        (0x00, 0, 0, 0),
        load,
    ];
    assert_eq!(
        error_of(&skewed),
        Some(CheckError::Unwritten { at: 4, slot: 3 })
    );
}
