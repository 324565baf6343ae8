//! A card that stops sending.

extern crate std;

use base::{Duration, Instant};
use hal::{FramePort, Remedy, STALL_MAX};

use super::card::{Card, Port};
use super::transmit::{frame, plain, rig};

/// Looks every two seconds until something is found.
fn watch(port: &mut Port, from: Instant) -> hal::Stall {
    let looks = (0..10).map(|look| from + Duration::from_secs(2 * look));
    let mut found = looks.filter_map(|now| port.watch(now));
    found.next().expect("it stands still")
}

/// A card that has three frames and sends none.
fn hung() -> (Card, Port) {
    let (card, mut port) = rig();
    for byte in 0..3 {
        port.transmit(frame(&card, byte, None)).unwrap();
    }
    port.kick();
    (card, port)
}

#[test]
fn a_queue_that_stands_still_is_reset_counted_and_works_again() {
    let (mut card, mut port) = hung();
    let stall = watch(&mut port, Instant::START);
    assert_eq!((stall.frames, stall.remedy), (3, Remedy::CardReset));
    assert!(stall.duration >= STALL_MAX);
    let counters = port.counters();
    assert_eq!((counters.tx_stalls, counters.tx_reset), (1, 3));
    assert_eq!(card.buffers(), 255, "it can receive");
    port.transmit(frame(&card, 9, None)).unwrap();
    port.kick();
    assert_eq!(card.send(), plain(9), "what was lost is not sent");
    assert!(card.store(&[7; 60]));
    assert_eq!(port.receive(64, &mut |_| ()), 1);
}

#[test]
fn frames_that_came_before_the_reset_and_were_not_taken_are_counted() {
    let (mut card, mut port) = hung();
    assert!(card.store(&[1; 60]) && card.store(&[2; 60]));
    watch(&mut port, Instant::START);
    assert_eq!(port.receive(64, &mut |_| ()), 0);
    assert_eq!(port.counters().rx_reset, 2);
}

#[test]
fn all_buffers_of_a_queue_that_was_reset_come_home() {
    let (card, _) = rig();
    let before = card.pool.free();
    let mut port = card.start().unwrap();
    port.transmit(frame(&card, 1, None)).unwrap();
    watch(&mut port, Instant::START);
    drop(port);
    assert_eq!(card.pool.free(), before);
}

#[test]
fn a_card_that_does_not_obey_keeps_what_it_has() {
    let (card, mut port) = hung();
    card.ignores_reset.set(true);
    let stall = watch(&mut port, Instant::START);
    assert_eq!(stall.remedy, Remedy::Failed);
    assert_eq!(port.unsent(), 3);
    assert_eq!(port.counters().tx_reset, 0);
}

#[test]
fn a_card_that_sends_is_left_alone() {
    let (mut card, mut port) = rig();
    for second in 0..30 {
        port.transmit(frame(&card, 1, None)).unwrap();
        port.kick();
        assert_eq!(
            port.watch(Instant::START + Duration::from_secs(second)),
            None
        );
        card.send();
    }
}
