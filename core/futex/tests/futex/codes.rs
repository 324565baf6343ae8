//! The codes of `FUTEX_WAKE_OP`, and lists of robust locks.

use std::collections::BTreeMap;

use futex::Operation;
use futex::pi::{OWNER_DIED, WAITERS};
use futex::robust::{Kind, LOCKS_MAX, is_to_wake, walk, without_owner};

fn code(change: u32, test: u32, operand: i32, against: i32) -> Operation {
    let code = change << 28 | test << 24 | (operand as u32 & 0xfff) << 12 | against as u32 & 0xfff;
    Operation::decode(code).expect("both exist")
}

#[test]
fn each_change_has_its_number() {
    let changed = |change, operand| code(change, 0, operand, 0).change(0b1100);
    assert_eq!(changed(0, 5), 5);
    assert_eq!(changed(1, -1), 0b1011);
    assert_eq!(changed(2, 0b11), 0b1111);
    assert_eq!(changed(3, 0b0100), 0b1000);
    assert_eq!(changed(4, 0b0110), 0b1010);
    assert_eq!(changed(8, 31), 1 << 31);
    assert_eq!(changed(8 + 2, 1), 0b1110);
}

#[test]
fn each_test_has_its_number_and_compares_signed_numbers() {
    let passes = |test: u32| {
        let operation = code(0, test, 0, -3);
        [-4i32, -3, 2].map(|old| operation.is_second_woken(old as u32))
    };
    assert_eq!(passes(0), [false, true, false]);
    assert_eq!(passes(1), [true, false, true]);
    assert_eq!(passes(2), [true, false, false]);
    assert_eq!(passes(3), [true, true, false]);
    assert_eq!(passes(4), [false, false, true]);
    assert_eq!(passes(5), [false, true, true]);
}

#[test]
fn what_has_no_number_is_refused() {
    for change in 5..8 {
        assert!(Operation::decode(change << 28).is_none());
    }
    for test in 6..16 {
        assert!(Operation::decode(test << 24).is_none());
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Unreadable;

/// The words of a program's list, by address.
fn released(words: &[(u64, u64)]) -> (Vec<(u64, Kind)>, Result<(), Unreadable>) {
    let words: BTreeMap<u64, u64> = words.iter().copied().collect();
    let mut released = Vec::new();
    let outcome = walk(
        0x100,
        |at| words.get(&at).copied().ok_or(Unreadable),
        |word, kind| {
            released.push((word, kind));
            Ok(())
        },
    );
    (released, outcome)
}

#[test]
fn each_lock_of_the_list_is_released_and_the_pending_one_last() {
    let offset = (0x108, 8_u64.wrapping_neg());
    let list = [
        (0x100, 0x200),
        offset,
        (0x110, 0x301),
        (0x200, 0x301),
        (0x300, 0x100),
    ];
    let expected = vec![(0x1f8, Kind::Plain), (0x2f8, Kind::Inheriting)];
    assert_eq!(released(&list), (expected, Ok(())));
}

#[test]
fn a_list_that_cannot_be_read_ends_there() {
    let list = [(0x100, 0x200), (0x108, 0), (0x110, 0), (0x200, 0x300)];
    assert_eq!(
        released(&list),
        (vec![(0x200, Kind::Plain)], Err(Unreadable))
    );
}

#[test]
fn a_list_without_end_is_left_after_so_many_locks() {
    let list = [(0x100, 0x200), (0x108, 0), (0x110, 0), (0x200, 0x200)];
    let (released, outcome) = released(&list);
    assert_eq!((released.len(), outcome), (LOCKS_MAX, Ok(())));
}

#[test]
fn only_the_dead_threads_locks_lose_their_owner() {
    assert_eq!(without_owner(7 | WAITERS, 7), WAITERS | OWNER_DIED);
    assert_eq!(without_owner(7, 7), OWNER_DIED);
    assert_eq!(without_owner(8 | WAITERS, 7), 8 | WAITERS);
    assert!(is_to_wake(7 | WAITERS, 7, Kind::Plain));
    assert!(!is_to_wake(7 | WAITERS, 7, Kind::Inheriting));
    assert!(!is_to_wake(7, 7, Kind::Plain));
    assert!(!is_to_wake(8 | WAITERS, 7, Kind::Plain));
}
