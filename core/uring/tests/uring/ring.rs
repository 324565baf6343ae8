//! Entries go in, completions come out, none is lost.

use std::collections::VecDeque;

use base::SharedMemory;
use uring::{
    CompletionQueue, Cqe, CqeFlags, Geometry, Next, Refusal, SqFlags, SubmissionQueue, offset,
};

use crate::world::{Program, for_each_seed};

fn named(user_data: u64) -> Cqe {
    Cqe {
        user_data,
        result: 7,
        flags: CqeFlags::empty(),
    }
}

#[test]
fn sizes_are_powers_of_two_within_their_limits() {
    let sizes = |entries, completions, clamp| {
        Geometry::check(entries, completions, clamp).map(|g| (g.sq_entries(), g.cq_entries()))
    };
    assert_eq!(sizes(5, None, false), Ok((8, 16)));
    assert_eq!(sizes(8, Some(9), false), Ok((8, 16)));
    assert_eq!(sizes(0, None, true), Err(Refusal::Entries));
    assert_eq!(sizes(40_000, None, false), Err(Refusal::Entries));
    assert_eq!(sizes(40_000, None, true), Ok((32_768, 65_536)));
    assert_eq!(sizes(8, Some(4), false), Err(Refusal::Completions));
}

#[test]
fn entries_are_taken_in_order() {
    let program = Program::new(4, None);
    let mut queue = SubmissionQueue::new(program.geometry);
    for round in 0..10 {
        (0..4).for_each(|n| program.give(round * 4 + n));
        for n in 0..4 {
            let Next::Entry(sqe) = queue.take(&program.rings, &program.sqes) else {
                panic!("an entry was given");
            };
            assert_eq!(sqe.user_data, round * 4 + n);
        }
        assert_eq!(queue.take(&program.rings, &program.sqes), Next::Empty);
    }
}

#[test]
fn an_index_that_is_none_is_dropped_and_counted() {
    let program = Program::new(4, None);
    let mut queue = SubmissionQueue::new(program.geometry);
    program.give(1);
    program.rings.store(program.geometry.array(), 4);
    assert_eq!(queue.take(&program.rings, &program.sqes), Next::Dropped);
    assert_eq!(program.rings.load(offset::SQ_DROPPED), 1);
    assert_eq!(program.rings.load(offset::SQ_HEAD), 1);
}

#[test]
fn an_entry_that_was_put_back_comes_again() {
    let program = Program::new(4, None);
    let mut queue = SubmissionQueue::new(program.geometry);
    program.give(9);
    let first = queue.take(&program.rings, &program.sqes);
    queue.put_back(&program.rings);
    assert_eq!(queue.take(&program.rings, &program.sqes), first);
}

#[test]
fn a_request_that_goes_on_posts_only_where_there_is_room() {
    let program = Program::new(1, None);
    let mut queue = CompletionQueue::new(program.geometry);
    assert!(queue.post_more(&program.rings, named(1)));
    assert!(queue.post_more(&program.rings, named(2)));
    assert!(!queue.post_more(&program.rings, named(3)));
    assert_eq!(queue.posted(), 2);
    assert!(!queue.has_overflow());
}

#[test]
fn completions_come_in_order_whatever_the_program_takes_when() {
    for_each_seed(|seed, mut random| {
        let program = Program::new(2, Some(1 << random.below(4).max(1)));
        let mut queue = CompletionQueue::new(program.geometry);
        let mut expected = VecDeque::new();
        for name in 0..2000 {
            match random.below(4) {
                0 | 1 => {
                    queue.reserve().unwrap();
                    queue.post(&program.rings, named(name));
                    expected.push_back(name);
                }
                2 => {
                    let is_flushed = queue.flush(&program.rings);
                    let flags = SqFlags::from_bits_retain(program.rings.load(offset::SQ_FLAGS));
                    assert_eq!(
                        flags.contains(SqFlags::CQ_OVERFLOW),
                        !is_flushed,
                        "SEED={seed}"
                    );
                }
                _ => {
                    if let Some((taken, result)) = program.take() {
                        assert_eq!(
                            (Some(taken), result),
                            (expected.pop_front(), 7),
                            "SEED={seed}"
                        );
                    }
                }
            }
            assert_eq!(
                queue.owed() + queue.ready(&program.rings) as usize,
                expected.len()
            );
        }
        while let Some(next) = expected.pop_front() {
            queue.flush(&program.rings);
            assert_eq!(program.take(), Some((next, 7)), "SEED={seed}");
        }
    });
}
