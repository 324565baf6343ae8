//! Filters over system calls.

use bpf::{Action, CallData, CallFilter, CheckError, Verdict};

use crate::program;

type Code = (u16, u8, u8, u32);

const CALL: CallData = CallData {
    number: 59,
    architecture: 0xc000_003e,
    instruction: 0x1122_3344_5566_7788,
    arguments: [0x0102_0304_0506_0708, 1, 2, 3, 4, 0xfedc_ba98_7654_3210],
};

fn run(instructions: &[Code]) -> Verdict {
    CallFilter::check(&program(instructions))
        .unwrap()
        .run(&CALL)
}

/// Whether the word at `offset` is `value`.
fn holds(offset: u32, value: u32) -> bool {
    let code = [
        (0x20, 0, 0, offset),
        (0x15, 0, 1, value),
        (0x06, 0, 0, 0x7fff_0000),
        (0x06, 0, 0, 0),
    ];
    run(&code).action == Action::Allow
}

#[test]
fn words_of_the_call_are_read_in_the_order_of_the_machine() {
    assert!(holds(0, 59) && holds(4, 0xc000_003e));
    assert!(holds(8, 0x5566_7788) && holds(12, 0x1122_3344));
    assert!(holds(16, 0x0506_0708) && holds(20, 0x0102_0304));
    assert!(holds(56, 0x7654_3210) && holds(60, 0xfedc_ba98));
    assert!(!holds(0, 58));
}

#[test]
fn the_length_is_that_of_the_data() {
    let code = [(0x80, 0, 0, 0), (0x16, 0, 0, 0)];
    assert_eq!(run(&code).data, 64);
}

#[test]
fn loads_that_are_not_whole_words_of_it_are_refused() {
    let flaw = |code, k| CallFilter::check(&program(&[(code, 0, 0, k), (0x06, 0, 0, 0)])).err();
    let refused = Some(CheckError::NotForCalls { at: 0 });
    assert_eq!(flaw(0x20, 60), None);
    for (code, k) in [
        (0x20, 64),
        (0x20, 2),
        (0x20, -0x1000_i32 as u32),
        (0x28, 0),
        (0x30, 0),
        (0x40, 0),
        (0x48, 0),
        (0x50, 0),
        (0xb1, 0),
        (0x94, 3),
        (0x9c, 0),
    ] {
        assert_eq!(flaw(code, k), refused, "{code:#x} {k:#x}");
    }
}

#[test]
fn verdicts_are_those_of_linux_and_strange_ones_kill() {
    let verdict = |value| run(&[(0x06, 0, 0, value)]);
    let of = |action, data| Verdict { action, data };
    assert_eq!(verdict(0x0005_0001), of(Action::Errno, 1));
    assert_eq!(verdict(0x0003_0007), of(Action::Trap, 7));
    assert_eq!(verdict(0x7ff0_ffff), of(Action::Trace, 0xffff));
    assert_eq!(verdict(0x7ffc_0000), of(Action::Log, 0));
    assert_eq!(verdict(5), of(Action::KillThread, 5));
    assert_eq!(verdict(0x8000_0000), of(Action::KillProcess, 0));
    assert_eq!(verdict(0x1234_0000).action, Action::KillProcess);
}

#[test]
fn a_division_by_zero_kills_the_thread() {
    let code = [(0x01, 0, 0, 0), (0x3c, 0, 0, 0), (0x06, 0, 0, 0x7fff_0000)];
    assert_eq!(run(&code).action, Action::KillThread);
}

#[test]
fn strictness_is_ordered_as_linux_orders_the_numbers() {
    let numbers = [
        0x8000_0000,
        0,
        0x3_0000,
        0x5_0000,
        0x7fc0_0000,
        0x7ff0_0000,
        0x7ffc_0000,
        0x7fff_0000,
    ];
    let actions = numbers.map(|number: u32| Action::from_number(number).unwrap());
    assert!(actions.is_sorted());
    assert!(numbers.map(|number| number as i32).is_sorted());
    assert_eq!(Action::from_number(0x7fc1_0000), None);
}
