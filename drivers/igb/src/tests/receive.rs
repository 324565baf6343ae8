//! Frames from the card.

extern crate std;

use std::vec;
use std::vec::Vec;

use hal::{FramePort, NicControl};
use mbuf::{Checksum, RxFrame};

use super::frames::ethernet;
use super::model_rx::Fate;
use super::rig::{MAC, Rig, receive};

fn frame(byte: u8, len: usize) -> Vec<u8> {
    ethernet(MAC, [0x88, 0xb5], &vec![byte; len])
}

#[test]
fn frames_arrive_in_order_while_the_ring_wraps() {
    let rig = Rig::new(600);
    let (mut pairs, _control) = rig.start(1).unwrap();
    for round in 0..200u8 {
        let sent: Vec<_> = (0..7).map(|number| frame(round, 50 + number)).collect();
        for frame in &sent {
            assert_eq!(rig.with(|model| model.receive(frame)), Fate::Stored(0));
        }
        assert_eq!(receive(&mut pairs[0]), sent);
    }
    assert_eq!(pairs[0].counters().rx_frames, 1400);
    rig.assert_no_complaints();
}

#[test]
fn a_checksum_that_the_card_verified_is_not_summed_again() {
    let rig = Rig::new(600);
    let (mut pairs, _control) = rig.start(1).unwrap();
    rig.with(|model| model.receive(&frame(1, 60)));
    let mut seen = None;
    pairs[0].receive(1, &mut |frame: RxFrame| seen = Some(frame.checksum));
    assert_eq!(seen, Some(Checksum::Verified));
}

#[test]
fn a_full_ring_drops_its_own_frames_counted_and_nobody_elses() {
    let rig = Rig::new(3000);
    let (mut pairs, _control) = rig.start(2).unwrap();
    for _ in 0..255 {
        assert_eq!(
            rig.with(|model| model.receive(&frame(1, 60))),
            Fate::Stored(0)
        );
    }
    for _ in 0..10 {
        assert_eq!(
            rig.with(|model| model.receive(&frame(2, 60))),
            Fate::Dropped(0)
        );
    }
    let other = [0, 60 << 32 | 0x23];
    assert!(rig.with(|model| model.store(1, &frame(3, 46), other)));
    assert_eq!(receive(&mut pairs[1]).len(), 1);
    assert_eq!(pairs[0].counters().rx_ring_empty, 10);
    assert_eq!(pairs[1].counters().rx_ring_empty, 0);
    while !receive(&mut pairs[0]).is_empty() {}
    pairs[0].arm();
    assert_eq!(pairs[0].counters().rx_ring_empty, 10, "counted once");
    assert_eq!(pairs[0].counters().rx_frames, 255);
    // All but some that it is not shown yet.
    rig.with(|model| assert!(model.buffers(0) >= 128));
}

#[test]
fn without_memory_frames_are_lost_and_the_ring_stays_full() {
    let rig = Rig::new(256);
    let (mut pairs, _control) = rig.start(1).unwrap();
    for _ in 0..20 {
        rig.with(|model| model.receive(&frame(1, 60)));
    }
    let mut kept = Vec::new();
    pairs[0].receive(64, &mut |frame| kept.push(frame));
    assert_eq!(kept.len(), 1, "one buffer was left to replace a filled one");
    assert_eq!(pairs[0].counters().rx_no_memory, 19);
    pairs[0].arm();
    rig.with(|model| {
        assert!(
            model.buffers(0) > 255 - 32,
            "all but some that it is not shown yet"
        )
    });
}

#[test]
fn the_cards_counters_are_summed_up_though_reading_clears_them() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    for _ in 0..3 {
        rig.with(|model| model.receive(&frame(1, 46)));
        control.counters().unwrap();
    }
    rig.with(|model| {
        model.put(0x4088 + 4, 1);
        model.put(0x4010, 4);
        model.put(0x4000, 2);
        model.put(0x400c, 3);
        model.put(0x40ac, 1);
        model.put(0x4020, 6);
    });
    let counted = control.counters().unwrap();
    assert_eq!(counted.rx_frames, 3);
    assert_eq!(counted.rx_bytes, 3 * 64 + (1 << 32));
    assert_eq!((counted.rx_missed, counted.rx_damaged), (4, 5));
    assert_eq!((counted.rx_bad_length, counted.tx_collided), (1, 6));
    assert_eq!(control.counters().unwrap(), counted);
}
