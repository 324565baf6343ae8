//! When messages come, and when they do not.

extern crate std;

use std::vec::Vec;

use base::Duration;
use hal::{FramePort, NicControl, NicError};

use super::frames::ethernet;
use super::model::{TAIL, Window};
use super::model_rx::GOOD;
use super::rig::{MAC, Rig, receive};
use crate::Pair;
use crate::registers::{EICR, EIMC, EIMS, eitr, rx_ring};

fn store(rig: &Rig, queue: usize) {
    let frame = ethernet(MAC, [8, 6], &[1; 46]);
    let words = [0, u64::from(GOOD) | 60 << 32];
    assert!(rig.with(|model| model.store(queue, &frame, words)));
}

fn messages(rig: &Rig) -> [u32; 3] {
    rig.with(|model| [model.messages[0], model.messages[1], model.messages[2]])
}

fn rig() -> (Rig, Vec<Pair<Window>>) {
    let rig = Rig::new(3000);
    let (pairs, _) = rig.start(3).unwrap();
    (rig, pairs)
}

#[test]
fn nothing_interrupts_before_it_is_armed() {
    let (rig, _pairs) = rig();
    store(&rig, 0);
    store(&rig, 1);
    assert_eq!(messages(&rig), [0, 0, 0]);
}

/// A frame comes and is found by polling, so many times.
fn find(rig: &Rig, pair: &mut Pair<Window>, queue: usize, times: u32) {
    for _ in 0..times {
        store(rig, queue);
        assert_eq!(receive(pair).len(), 1);
    }
}

/// How often a message's registers were written since the last question.
fn register_writes(rig: &Rig) -> usize {
    rig.with(|model| {
        let writes = std::mem::take(&mut model.writes).into_iter();
        writes
            .filter(|(at, _)| [EICR, EIMC, EIMS].contains(at))
            .count()
    })
}

#[test]
fn an_armed_pair_interrupts_once_and_is_silent_until_it_is_armed_again() {
    let (rig, mut pairs) = rig();
    assert!(!pairs[1].arm());
    store(&rig, 0);
    store(&rig, 2);
    assert_eq!(messages(&rig), [0, 0, 0]);
    find(&rig, &mut pairs[1], 1, 9);
    assert_eq!(messages(&rig), [0, 1, 0]);
    assert!(!pairs[1].arm());
    assert_eq!(messages(&rig), [0, 1, 0], "what was polled is no news");
    store(&rig, 1);
    assert_eq!(messages(&rig), [0, 2, 0]);
}

#[test]
fn frames_that_come_together_are_one_message() {
    let (rig, mut pairs) = rig();
    pairs[1].arm();
    (0..5).for_each(|_| store(&rig, 1));
    assert_eq!(receive(&mut pairs[1]).len(), 5);
    assert_eq!(messages(&rig), [0, 1, 0]);
}

#[test]
fn who_waits_for_each_frame_writes_one_register_for_that() {
    let (rig, mut pairs) = rig();
    pairs[1].arm();
    register_writes(&rig);
    for _ in 0..20 {
        pairs[1].disarm();
        find(&rig, &mut pairs[1], 1, 1);
        assert!(!pairs[1].arm());
        assert_eq!(register_writes(&rig), 1);
    }
    assert_eq!(messages(&rig), [0, 20, 0]);
}

#[test]
fn arming_again_without_a_frame_meanwhile_writes_no_register() {
    let (rig, mut pairs) = rig();
    pairs[1].arm();
    register_writes(&rig);
    for _ in 0..20 {
        pairs[1].disarm();
        assert_eq!(receive(&mut pairs[1]).len(), 0);
        assert!(!pairs[1].arm());
    }
    assert_eq!(register_writes(&rig), 0);
    store(&rig, 1);
    assert_eq!(messages(&rig), [0, 1, 0]);
}

#[test]
fn arming_one_pair_leaves_the_others_silent() {
    let (rig, mut pairs) = rig();
    for (queue, pair) in pairs.iter_mut().enumerate() {
        pair.arm();
        find(&rig, pair, queue, 2);
    }
    pairs[0].arm();
    for queue in 0..3 {
        store(&rig, queue);
    }
    assert_eq!(messages(&rig), [2, 1, 1]);
}

#[test]
fn a_pair_that_is_dropped_is_masked() {
    let (rig, mut pairs) = rig();
    pairs[2].arm();
    pairs.clear();
    rig.with(|model| assert_eq!(model.get(EIMS) & 0b111, 0));
}

#[test]
fn arming_tells_of_a_frame_that_is_there_already() {
    let (rig, mut pairs) = rig();
    store(&rig, 0);
    assert!(pairs[0].arm());
    assert_eq!(receive(&mut pairs[0]).len(), 1);
    assert!(!pairs[0].arm());
}

#[test]
fn a_card_keeps_half_of_its_buffers_and_hears_of_many_at_once() {
    let (rig, mut pairs) = rig();
    let tails = |rig: &Rig| {
        rig.with(|model| {
            let writes = std::mem::take(&mut model.writes).into_iter();
            let tail = rx_ring(0) + TAIL;
            writes.filter(|(at, _)| *at == tail).count()
        })
    };
    tails(&rig);
    for _ in 0..127 {
        find(&rig, &mut pairs[0], 0, 1);
        pairs[0].arm();
        rig.with(|model| assert!(model.buffers(0) >= 128));
    }
    assert_eq!(tails(&rig), 0);
    find(&rig, &mut pairs[0], 0, 1);
    assert_eq!(tails(&rig), 1);
    rig.with(|model| assert_eq!(model.buffers(0), 255));
}

#[test]
fn moderation_is_in_microseconds_rounded_up_and_limited() {
    let rig = Rig::new(3000);
    let (_pairs, mut control) = rig.start(2).unwrap();
    let mut set = |ring, spacing| {
        control.set_moderation(ring, spacing).unwrap();
        rig.with(|model| model.get(eitr(ring)) & 0x7fff)
    };
    assert_eq!(set(1, Duration::from_micros(125)), 125 << 2);
    assert_eq!(set(0, Duration::from_nanos(125_001)), 126 << 2);
    assert_eq!(set(0, Duration::from_secs(5)), 8191 << 2);
    assert_eq!(set(0, Duration::ZERO), 0);
    rig.with(|model| assert_eq!(model.get(eitr(1)) & 0x7fff, 125 << 2));
    let outside = control.set_moderation(2, Duration::ZERO);
    assert_eq!(outside, Err(NicError::Unsupported));
}

#[test]
fn moderation_that_outlived_the_reset_is_ended() {
    let rig = Rig::new(3000);
    rig.with(|model| (0..25).for_each(|message| model.put(eitr(message), 500 << 2)));
    let _parts = rig.start(3).unwrap();
    rig.with(|model| assert!((0..=3).all(|message| model.get(eitr(message)) == 0)));
}
