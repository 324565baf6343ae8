//! Frames from the card.

extern crate std;

use std::vec;
use std::vec::Vec;

use hal::FramePort;
use mbuf::{Checksum, RxFrame};

use super::card::{Card, GOOD, Port};
use intel::filters::{RCTL, RCTL_ALL_MULTICAST, RCTL_BROADCAST};

fn rig() -> (Card, Port) {
    let card = Card::new(600);
    let port = card.start().unwrap();
    (card, port)
}

fn receive(port: &mut Port) -> Vec<(Vec<u8>, Checksum)> {
    let mut got = Vec::new();
    port.receive(64, &mut |frame: RxFrame| {
        got.push((frame.chain.as_single().unwrap().to_vec(), frame.checksum));
    });
    got
}

#[test]
fn frames_arrive_in_order_while_the_ring_wraps() {
    let (mut card, mut port) = rig();
    for round in 0..200u8 {
        for number in 0..7 {
            assert!(card.store(&[round, number, 3].repeat(20 + usize::from(number))));
        }
        let got = receive(&mut port);
        assert_eq!(got.len(), 7);
        for (number, (bytes, checksum)) in (0..).zip(got) {
            assert_eq!(bytes, [round, number, 3].repeat(20 + usize::from(number)));
            assert_eq!(checksum, Checksum::Verified);
        }
    }
    assert_eq!(port.counters().rx_frames, 1400);
}

#[test]
fn arming_tells_of_a_frame_that_is_there_already() {
    let (mut card, mut port) = rig();
    assert!(!port.arm());
    card.store(&[1; 60]);
    assert!(port.arm());
    assert_eq!(receive(&mut port).len(), 1);
    assert!(!port.arm());
    assert_eq!(card.buffers(), 254, "it is shown new ones in batches");
}

#[test]
fn what_cannot_be_is_dropped_and_counted() {
    let (mut card, mut port) = rig();
    card.store_with(&[1; 60], 60, GOOD, 1);
    card.store_with(&[1; 60], 13, GOOD, 0);
    card.store_with(&[1; 60], u16::MAX, GOOD, 0);
    card.store_with(&[1; 60], 60, GOOD & !2, 0);
    card.store_with(&[1; 60], 60, GOOD, 0);
    card.store_with(&[2; 60], 60, GOOD, 0);
    assert_eq!(receive(&mut port), [(vec![2; 60], Checksum::Verified)]);
    let counters = port.counters();
    assert_eq!(counters.rx_damaged, 1);
    assert_eq!(counters.rx_bad_length, 2);
    assert_eq!(counters.rx_too_long, 2, "a frame in two buffers");
}

#[test]
fn without_memory_frames_are_lost_and_the_ring_stays_full() {
    let mut card = Card::new(256);
    let mut port = card.start().unwrap();
    let mut kept = Vec::new();
    for _ in 0..20 {
        card.store(&[1; 60]);
    }
    port.receive(64, &mut |frame| kept.push(frame));
    assert_eq!(kept.len(), 1, "one buffer was left to replace a filled one");
    assert_eq!(port.counters().rx_no_memory, 19);
    port.arm();
    assert!(
        card.buffers() >= 128,
        "all but some that it is not shown yet"
    );
}

#[test]
fn the_rest_of_a_long_frame_is_no_frame_even_if_its_start_found_no_memory() {
    let mut card = Card::new(256);
    let mut port = card.start().unwrap();
    let mut kept = Vec::new();
    card.store(&[1; 60]);
    port.receive(64, &mut |frame| kept.push(frame));
    card.store_with(&[2; 60], 60, GOOD & !2, 0);
    assert_eq!(receive(&mut port), []);
    assert_eq!(port.counters().rx_no_memory, 1);
    drop(kept);
    card.store(&[3; 60]);
    assert_eq!(receive(&mut port), []);
    assert_eq!(port.counters().rx_too_long, 1);
    card.store(&[4; 60]);
    assert_eq!(receive(&mut port), [(vec![4; 60], Checksum::Verified)]);
}

#[test]
fn the_card_lets_frames_to_groups_in() {
    let (card, _port) = rig();
    let wanted = RCTL_ALL_MULTICAST | RCTL_BROADCAST;
    assert_eq!(card.registers.read32(RCTL) & wanted, wanted);
}

#[test]
fn a_tag_comes_beside_the_frame() {
    let (mut card, mut port) = rig();
    assert!(card.store_tagged(&[1; 60], 0x6007) && card.store(&[2; 60]));
    let mut tags = Vec::new();
    port.receive(64, &mut |frame: RxFrame| tags.push(frame.tag));
    assert_eq!(tags, [Some(0x6007), None]);
}
