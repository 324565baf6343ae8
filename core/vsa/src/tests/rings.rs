//! Both ends of a ring, over memory that either may spoil.

use core::cell::RefCell;
use std::vec;
use std::vec::Vec;

use base::SharedMemory;
use models::for_each_seed;

use crate::ring::{
    Completer, Nonsense, Operation, Outcome, Program, RingSize, Submission, Taker, WORDS,
};

struct Memory(RefCell<Vec<u8>>);

impl SharedMemory for &Memory {
    fn load(&self, at: usize) -> u32 {
        let bytes = self.0.borrow();
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn store(&self, at: usize, value: u32) {
        self.0.borrow_mut()[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }
}

fn flush(cookie: u64) -> Submission {
    Submission {
        operation: Operation::Flush,
        first: 0,
        count: 0,
        memory: 0,
        cookie,
    }
}

#[test]
fn what_is_submitted_is_completed_once_and_in_the_rings_bounds() {
    for_each_seed(300, |_, mut random| {
        let size = RingSize::new(1 << random.below(5u32)).unwrap();
        let memory = Memory(RefCell::new(vec![0; size.bytes()]));
        let mut program = Program::new(&memory, size);
        let (mut taker, mut completer) = (Taker::new(size), Completer::new(size));
        let (mut next, mut under_way, mut done) = (0, Vec::new(), Vec::new());
        for _ in 0..400 {
            match random.below(4u32) {
                0 if program.has_room() => {
                    program.push(&flush(next));
                    next += 1;
                }
                1 => _ = program.show(),
                2 => {
                    let filled = taker.filled(&&memory).unwrap();
                    for _ in 0..completer.reserve(&&memory, filled).unwrap() {
                        under_way.push(Submission::decode(&taker.peek(&&memory)).unwrap().cookie);
                        taker.take();
                    }
                    taker.show(&&memory);
                }
                _ => {
                    if !under_way.is_empty() {
                        let cookie = under_way.swap_remove(random.below(under_way.len()));
                        completer.put(&&memory, cookie, Outcome::Revoked);
                    }
                    if random.below(2u32) == 0 {
                        completer.show(&&memory);
                    }
                    while random.below(2u32) == 0
                        && let Some((cookie, outcome)) = program.pop()
                    {
                        assert_eq!(outcome, Outcome::Revoked);
                        done.push(cookie);
                    }
                }
            }
            assert_eq!(completer.reserved() as usize, under_way.len());
        }
        let count = done.len();
        done.sort_unstable();
        done.dedup();
        assert!(done.len() == count && next >= count as u64);
    });
}

#[test]
fn indexes_that_jump_are_nonsense() {
    let size = RingSize::new(4).unwrap();
    let memory = Memory(RefCell::new(vec![0; size.bytes()]));
    let (taker, mut completer) = (Taker::new(size), Completer::new(size));
    (&memory).store(WORDS.submission_tail, 5);
    assert_eq!(taker.filled(&&memory), Err(Nonsense));
    (&memory).store(WORDS.completion_head, 1);
    assert_eq!(completer.reserve(&&memory, 1), Err(Nonsense));
    assert_eq!(completer.filled(&&memory), Err(Nonsense));
}

#[test]
fn whoever_sleeps_hears_of_what_came_before_it_said_so() {
    let size = RingSize::new(4).unwrap();
    let memory = Memory(RefCell::new(vec![0; size.bytes()]));
    let mut program = Program::new(&memory, size);
    let (mut taker, mut completer) = (Taker::new(size), Completer::new(size));
    assert!(!taker.sleep(&&memory));
    program.push(&flush(1));
    assert!(program.show(), "the driver sleeps");
    assert!(!program.show(), "it was told already");
    assert!(taker.sleep(&&memory), "something is there");
    taker.wake(&&memory);
    taker.take();
    program.push(&flush(2));
    assert!(!program.show(), "the driver is awake");
    assert!(program.arm());
    assert_eq!(completer.reserve(&&memory, 9), Ok(4));
    completer.put(&&memory, 1, Outcome::Done);
    assert_eq!(completer.filled(&&memory), Ok(0), "it was not shown");
    assert_eq!(completer.show(&&memory), 1);
    assert_eq!(completer.show(&&memory), 0, "it was told already");
    assert!(completer.program_sleeps(&&memory));
    assert!(!program.arm(), "a completion is there");
    program.disarm();
    assert!(!completer.program_sleeps(&&memory));
    assert_eq!(program.pop(), Some((1, Outcome::Done)));
}
