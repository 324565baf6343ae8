//! When messages come, and when they do not.

extern crate std;

use std::vec::Vec;

use base::Duration;
use hal::{FramePort, NicControl, NicError};

use super::frames::ethernet;
use super::model::Window;
use super::model_rx::GOOD;
use super::rig::{MAC, Rig, receive};
use crate::Pair;
use crate::registers::{EIMS, eitr};

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

#[test]
fn an_armed_pair_interrupts_once_and_is_then_silent_while_it_is_polled() {
    let (rig, mut pairs) = rig();
    assert!(!pairs[1].arm());
    for _ in 0..5 {
        store(&rig, 1);
    }
    store(&rig, 0);
    store(&rig, 2);
    assert_eq!(messages(&rig), [0, 1, 0]);
    pairs[1].disarm();
    assert_eq!(receive(&mut pairs[1]).len(), 5);
    store(&rig, 1);
    assert_eq!(receive(&mut pairs[1]).len(), 1);
    assert_eq!(messages(&rig), [0, 1, 0]);
    assert!(!pairs[1].arm());
    assert_eq!(messages(&rig), [0, 1, 0], "what was polled is no news");
    store(&rig, 1);
    assert_eq!(messages(&rig), [0, 2, 0]);
}

#[test]
fn a_card_that_does_not_mask_by_itself_is_silent_once_disarmed() {
    let (rig, mut pairs) = rig();
    rig.with(|model| model.ignores_auto_mask = true);
    pairs[1].arm();
    store(&rig, 1);
    store(&rig, 1);
    assert_eq!(messages(&rig), [0, 2, 0]);
    pairs[1].disarm();
    store(&rig, 1);
    assert_eq!(messages(&rig), [0, 2, 0]);
}

#[test]
fn disarming_one_pair_leaves_the_others_armed() {
    let (rig, mut pairs) = rig();
    for pair in &mut pairs {
        pair.arm();
    }
    pairs[0].disarm();
    rig.with(|model| assert_eq!(model.get(EIMS), 0b110));
    pairs[0].disarm();
    for queue in 0..3 {
        store(&rig, queue);
    }
    assert_eq!(messages(&rig), [0, 1, 1]);
}

#[test]
fn arming_tells_of_a_frame_that_is_there_already() {
    let (rig, mut pairs) = rig();
    store(&rig, 0);
    assert!(pairs[0].arm());
    assert_eq!(receive(&mut pairs[0]).len(), 1);
    assert!(!pairs[0].arm());
    rig.with(|model| assert_eq!(model.buffers(0), 255, "arming hands back all buffers"));
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
