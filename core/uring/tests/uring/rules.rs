//! Who waits for whom, who is meant, which buffer is next.

use std::collections::VecDeque;

use uring::{BufferRing, Counted, Drain, Facts, Key, Link, RingBuffer, Turn};

use crate::world::for_each_seed;

#[test]
fn a_drain_starts_alone_and_the_rest_wait_for_it() {
    let mut drain = Drain::default();
    let submit = |drain: &mut Drain<u32>, name, is_drain| {
        drain.reserve().unwrap();
        drain.submit(name, is_drain)
    };
    assert_eq!(submit(&mut drain, 1, false), Turn::Start(1));
    assert_eq!(submit(&mut drain, 2, true), Turn::Wait);
    assert_eq!(submit(&mut drain, 3, false), Turn::Wait);
    assert_eq!(drain.start_next(), None);
    drain.done();
    assert_eq!((drain.start_next(), drain.start_next()), (Some(2), None));
    drain.done();
    assert_eq!((drain.start_next(), drain.start_next()), (Some(3), None));
}

#[test]
fn no_two_are_under_way_of_which_one_is_a_drain() {
    for_each_seed(|seed, mut random| {
        let mut drain = Drain::default();
        let mut active: VecDeque<(u32, bool)> = VecDeque::new();
        let mut order = 0;
        for name in 0..500 {
            let is_drain = random.below(4) == 0;
            drain.reserve().unwrap();
            let mut started = Vec::new();
            if let Turn::Start(one) = drain.submit((name, is_drain), is_drain) {
                started.push(one);
            }
            if random.below(2) == 0 && !active.is_empty() {
                let at = random.below(active.len() as u64) as usize;
                active.remove(at);
                drain.done();
            }
            while let Some(one) = drain.start_next() {
                started.push(one);
            }
            for one in started {
                assert!(one.0 >= order, "SEED={seed}");
                order = one.0;
                active.push_back(one);
            }
            let drains = active.iter().filter(|(_, is_drain)| *is_drain).count();
            assert!(drains == 0 || active.len() == 1, "SEED={seed} {active:?}");
        }
    });
}

#[test]
fn a_link_goes_on_after_success_or_whatever_happens() {
    assert!(Link::Success.lets_on(true) && !Link::Success.lets_on(false));
    assert!(Link::Done.lets_on(false) && !Link::None.lets_on(true));
}

#[test]
fn a_cancellation_means_what_all_its_conditions_say() {
    let facts = Facts {
        user_data: 1,
        file: Some(2),
        opcode: 3,
    };
    let key = |user_data, file| Key {
        user_data,
        file,
        opcode: None,
    };
    assert!(key(None, None).means(&facts) && key(Some(1), Some(2)).means(&facts));
    assert!(!key(Some(1), Some(3)).means(&facts) && !key(Some(2), None).means(&facts));
}

#[test]
fn a_count_of_completions_wraps_around() {
    let mut counted = Counted::default();
    counted.add(u32::MAX, 2, 'a').unwrap();
    assert_eq!(counted.take_due(0), None);
    assert_eq!(counted.take_due(1), Some('a'));
    assert!(counted.is_empty());
}

#[test]
fn lent_buffers_are_used_in_order_and_around_the_end() {
    assert!(BufferRing::new(3).is_none() && BufferRing::new(0).is_none());
    let mut ring = BufferRing::new(2).unwrap();
    let mut offsets = Vec::new();
    for tail in 1..4 {
        offsets.push(ring.next(tail).unwrap().offset);
        ring.advance();
        assert!(ring.next(tail).is_none());
    }
    assert_eq!(offsets, [0, 16, 0]);
    let buffer = RingBuffer::from_words([9, 5 << 32 | 7]);
    assert_eq!((buffer.address, buffer.len, buffer.number), (9, 7, 5));
}
